// Derivatives of functions as functions, with the meaning of torch.func.
//
//   const auto loss = [](const Tensor& w, const Tensor& x) { return rg::sum(rg::square(rg::mv(w, x))); };
//   func::grad(loss)(w, x)                            // by the first argument: a tensor like w
//   func::grad<0, 1>(loss)(w, x)                      // by both: a tuple
//   vmap(func::grad(loss), {nullopt, 0})(w, xs)       // a gradient for each sample
//   const auto [y, vjp_fn] = func::vjp(f, x);  vjp_fn(v)
//   func::jvp(f, x, t), func::jacrev(f)(x), func::jacfwd(f)(x), func::hessian(f)(x)
//
// All compose with each other, with vmap and with compile(). PyTorch's argnums are template arguments, since the type
// of the result depends on them. Arguments are tensors or structures of tensors (tracer/function/parts.h); the
// gradient of a structure is a structure. nn::functional_call makes a function of a module's parameters. Functions run
// in gradient mode. A result has a history where gradients are on and it depends on a tensor from outside that
// requires a gradient: so derivatives can be differentiated again, and nothing is recorded where nobody can.
// autograd/functional.h has the same derivatives of functions of lists, row by row, and products with Hessians.
#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "autograd/called_like.h"
#include "autograd/functional.h"
#include "autograd/vmap.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace func {

using retrograd::vmap;

namespace detail {

using retrograd::detail::ArgumentParts;
using retrograd::detail::CalledLike;
using retrograd::detail::TensorReplacer;
using retrograd::detail::visit_parts;

/// f at a point, with its history: gives gradients for cotangents, any number of times.
class Pullback {
 public:
  /// `op` for errors. `only_once`: the history is released by the first call.
  Pullback(std::string_view op, const autograd::VectorFunction& f, const Tensors& inputs, bool only_once,
           SourceLocation where);
  /// f(inputs).
  Tensors outputs() const;
  /// The gradients of the inputs, zeros where they have none. A cotangent for each output, of its type; undefined:
  /// zero.
  Tensors operator()(const Tensors& cotangents) const;
  /// Of a single output without dims.
  Tensors of_scalar() const;

 private:
  std::string_view op_;
  SourceLocation where_;
  Tensors inputs_, outputs_;
  bool records_ = false;  // gradients are on outside
  bool has_outer_history_ = false;
  bool only_once_;
};

/// Tangents, with zeros in place of undefined ones.
Tensors or_zeros(Tensors tangents, const Tensors& outputs, SourceLocation where);

/// The tensors of some elements of a tuple, and other tensors in their place.
template <size_t... at, class Arguments>
Tensors tensors_of(Arguments& arguments) {
  Tensors tensors;
  std::vector<FixedPart> fixed;
  ArgumentParts(tensors, fixed).add(std::get<at>(arguments)...);
  return tensors;
}
template <size_t... at, class Arguments>
void replace_tensors(Arguments& arguments, const Tensors& tensors) {
  TensorReplacer replacer(tensors);
  (visit_parts(std::get<at>(arguments), replacer), ...);
}
/// One element, or several as a tuple.
template <size_t first, size_t... more, class Arguments>
auto chosen(Arguments arguments) {
  if constexpr (sizeof...(more) == 0)
    return std::get<first>(std::move(arguments));
  else
    return std::make_tuple(std::get<first>(arguments), std::get<more>(arguments)...);
}

/// A structure of tensors as a list, and a list in its place.
template <class T>
Tensors listed(T& value) {
  auto one = std::tie(value);
  return tensors_of<0>(one);
}
template <class T>
T with_tensors(T value, const Tensors& tensors) {
  TensorReplacer replacer(tensors);
  visit_parts(value, replacer);
  return value;
}

/// `function` of the tensors in some of its arguments. `result` receives what it gives.
template <size_t... at, class F, class Arguments, class Result>
autograd::VectorFunction function_of(const F& function, const Arguments& arguments,
                                     std::optional<Result>& result) {
  return [&function, &arguments, &result](const Tensors& tensors) {
    Arguments given = arguments;
    replace_tensors<at...>(given, tensors);
    result = std::apply(function, given);
    return listed(*result);
  };
}
template <class F, class Arguments>
using ResultOf =
    std::remove_cvref_t<decltype(std::apply(std::declval<const F&>(), std::declval<Arguments&>()))>;

template <bool has_value, class F, size_t... argnums>
class Gradient : public CalledLike<Gradient<has_value, F, argnums...>, F> {
 public:
  Gradient(F function, SourceLocation where) : function_(std::move(function)), made_at_(where) {}

  template <class Arguments>
  auto call(Arguments arguments, SourceLocation where) const {
    std::optional<ResultOf<F, Arguments>> result;
    const Pullback pullback("grad", function_of<argnums...>(function_, arguments, result),
                            tensors_of<argnums...>(arguments), true, where);
    const Tensor value = pullback.outputs().at(0);
    replace_tensors<argnums...>(arguments, pullback.of_scalar());
    if constexpr (has_value)
      return std::pair(chosen<argnums...>(std::move(arguments)), value);
    else
      return chosen<argnums...>(std::move(arguments));
  }
  SourceLocation made_at() const { return made_at_; }

 private:
  F function_;
  SourceLocation made_at_;
};

/// The Jacobian of one tensor by another, of f: x -> y; row by row of y, or column by column of x, all in one vmap.
Tensor jacobian_by_rows(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                        std::optional<int64_t> chunk_size, SourceLocation where);
Tensor jacobian_by_columns(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                           std::string_view randomness, SourceLocation where);

template <bool by_rows, class F, size_t... argnums>
class Jacobian : public CalledLike<Jacobian<by_rows, F, argnums...>, F> {
 public:
  Jacobian(F function, std::optional<int64_t> chunk_size, std::string_view randomness, SourceLocation where)
      : function_(std::move(function)), chunk_size_(chunk_size), randomness_(randomness), made_at_(where) {}

  template <class Arguments>
  auto call(Arguments arguments, SourceLocation where) const {
    return chosen_jacobians(std::make_tuple(by<argnums>(arguments, where)...));
  }
  SourceLocation made_at() const { return made_at_; }

 private:
  template <size_t at, class Arguments>
  Tensor by(const Arguments& arguments, SourceLocation where) const {
    const auto f = [&](const Tensor& x) -> Tensor {
      Arguments given = arguments;
      std::get<at>(given) = x;
      return std::apply(function_, given);
    };
    if constexpr (by_rows)
      return jacobian_by_rows(f, std::get<at>(arguments), chunk_size_, where);
    else
      return jacobian_by_columns(f, std::get<at>(arguments), randomness_, where);
  }
  template <class Jacobians>
  static auto chosen_jacobians(Jacobians all) {
    if constexpr (std::tuple_size_v<Jacobians> == 1)
      return std::get<0>(std::move(all));
    else
      return all;
  }

  F function_;
  std::optional<int64_t> chunk_size_;
  std::string randomness_;
  SourceLocation made_at_;
};

}  // namespace detail

/// A function that gives the gradient of `function`, which returns one tensor without dims, by its arguments `argnums`
/// (default: the first). Error(non_scalar_backward_without_cotangent) for another result. torch.func.grad.
template <size_t... argnums, class F>
auto grad(F function, SourceLocation where = SourceLocation::current()) {
  if constexpr (sizeof...(argnums) == 0)
    return detail::Gradient<false, F, 0>(std::move(function), where);
  else
    return detail::Gradient<false, F, argnums...>(std::move(function), where);
}

/// The same with the value: (gradient, value). torch.func.grad_and_value.
template <size_t... argnums, class F>
auto grad_and_value(F function, SourceLocation where = SourceLocation::current()) {
  if constexpr (sizeof...(argnums) == 0)
    return detail::Gradient<true, F, 0>(std::move(function), where);
  else
    return detail::Gradient<true, F, argnums...>(std::move(function), where);
}

/// function(primals...), and a function of its cotangent, which gives a tuple of the primals' gradients. Both are
/// structures. Errors: cotangent_mismatch. torch.func.vjp.
template <class F, class... Primals>
auto vjp(const F& function, const Primals&... primals) {
  std::tuple<retrograd::detail::ArgumentOf<Primals>...> arguments(primals...);
  using Arguments = decltype(arguments);
  return [&]<size_t... at>(std::index_sequence<at...>) {
    std::optional<detail::ResultOf<F, Arguments>> result;
    auto pullback =
        std::make_shared<detail::Pullback>("vjp", detail::function_of<at...>(function, arguments, result),
                                           detail::tensors_of<at...>(arguments), false, SourceLocation());
    auto vjp_fn = [pullback, arguments](detail::ResultOf<F, Arguments> cotangent) {
      Arguments gradients = arguments;
      detail::replace_tensors<at...>(gradients, (*pullback)(detail::listed(cotangent)));
      return gradients;
    };
    return std::pair(detail::with_tensors(std::move(*result), pullback->outputs()), std::move(vjp_fn));
  }
  (std::index_sequence_for<Primals...>());
}

/// function(primals...) and its tangent, for tuples of primals and of tangents of their types. torch.func.jvp.
template <class F, class... Primals>
auto jvp(const F& function, const std::tuple<Primals...>& primals, const std::tuple<Primals...>& tangents,
         SourceLocation where = SourceLocation::current()) {
  return [&]<size_t... at>(std::index_sequence<at...>) {
    std::optional<detail::ResultOf<F, std::tuple<Primals...>>> result;
    auto points = primals, directions = tangents;
    const autograd::JvpResult given =
        autograd::jvp(detail::function_of<at...>(function, points, result), detail::tensors_of<at...>(points),
                      detail::tensors_of<at...>(directions), where);
    auto tangent = detail::with_tensors(*result, detail::or_zeros(given.tangents, given.outputs, where));
    return std::pair(std::move(*result), std::move(tangent));
  }
  (std::index_sequence_for<Primals...>());
}
/// The same for one tensor.
template <class F>
auto jvp(const F& function, const Tensor& primal, const Tensor& tangent,
         SourceLocation where = SourceLocation::current()) {
  return jvp(function, std::tuple(primal), std::tuple(tangent), where);
}

/// The Jacobian of a function that returns a tensor, by arguments that are tensors: the result's dims followed by the
/// argument's, at most 8 together. jacrev: a backward for each element of the result, at most chunk_size at once;
/// jacfwd: forward mode for each element of the argument. torch.func.jacrev, torch.func.jacfwd.
template <size_t... argnums, class F>
auto jacrev(F function, std::optional<int64_t> chunk_size = {},
            SourceLocation where = SourceLocation::current()) {
  if constexpr (sizeof...(argnums) == 0)
    return detail::Jacobian<true, F, 0>(std::move(function), chunk_size, "error", where);
  else
    return detail::Jacobian<true, F, argnums...>(std::move(function), chunk_size, "error", where);
}
template <size_t... argnums, class F>
auto jacfwd(F function, std::string_view randomness = "error",
            SourceLocation where = SourceLocation::current()) {
  if constexpr (sizeof...(argnums) == 0)
    return detail::Jacobian<false, F, 0>(std::move(function), std::nullopt, randomness, where);
  else
    return detail::Jacobian<false, F, argnums...>(std::move(function), std::nullopt, randomness, where);
}

/// The Hessian by one argument: forward mode over a backward. torch.func.hessian.
template <size_t argnum = 0, class F>
auto hessian(F function, SourceLocation where = SourceLocation::current()) {
  return jacfwd<argnum>(jacrev<argnum>(std::move(function), std::nullopt, where), "error", where);
}

}  // namespace func
}  // namespace retrograd
#pragma GCC visibility pop
