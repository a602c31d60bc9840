// CalledLike: the call operators of a wrapper of a function (vmap, func::grad): it is called like the function.
//
// Derived has `call(arguments, where)` for the arguments as a tuple of values, and `made_at()`, the line that made it.
// Errors name the line of the call, which the first argument carries. A generic function may take any structure as its
// first argument: then errors name the line of the wrapper.
#pragma once

#include "tracer/function/parts.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::detail {

template <class Derived, class F>
class CalledLike {
 public:
  using Wrapped = F;

  template <class... Rest>
  auto operator()(CallArgument<typename ArgumentsOf<F>::First> first, Rest&&... rest) const {
    const SourceLocation where = first.where();
    return self().call(arguments_for<F>(std::move(first).take(), std::forward<Rest>(rest)...), where);
  }
  template <class First, class... Rest>
  requires(std::is_void_v<typename ArgumentsOf<F>::Type> && !std::convertible_to<First, Tensor>) auto
  operator()(First&& first, Rest&&... rest) const {
    return self().call(std::tuple<ArgumentOf<First>, ArgumentOf<Rest>...>(std::forward<First>(first),
                                                                          std::forward<Rest>(rest)...),
                       self().made_at());
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace retrograd::detail
#pragma GCC visibility pop
