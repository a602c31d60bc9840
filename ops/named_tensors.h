// What functions give that have several results: tensors with names that are a std::tuple too, as libtorch's are.
//
//   const ValuesAndIndices r = sort(x);      r.values, r.indices
//   auto [values, indices] = sort(x);
//   std::tie(values, indices) = sort(x);     std::get<1>(sort(x))
//
// RG_NAMED_PAIR(Name, first, second) and RG_NAMED_TRIPLE define such a struct. The names are references to the elements
// of the tuple, hence the copies that are written out.
#pragma once

#include <concepts>
#include <tuple>

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// The base of these structs.
template <class... Elements>
struct NamedTensors : std::tuple<Elements...> {
  using Tuple = std::tuple<Elements...>;
  using Tuple::Tuple;
  static constexpr size_t kCount = sizeof...(Elements);
  // The elements, for compiled functions that take or give them (tracer/function/parts.h).
  std::tuple<Elements&...> members() { return as_references(static_cast<Tuple&>(*this)); }
  std::tuple<const Elements&...> members() const { return as_references(static_cast<const Tuple&>(*this)); }

 private:
  static auto as_references(auto& elements) {
    return std::apply([](auto&... each) { return std::tie(each...); }, elements);
  }
};

namespace detail {
template <class... Elements>
void is_named(const NamedTensors<Elements...>&);
}
template <class T>
concept IsNamedTensors = requires(const T& t) {
  detail::is_named(t);
};

}  // namespace retrograd
#pragma GCC visibility pop

// For structured bindings.
template <retrograd::IsNamedTensors T>
struct std::tuple_size<T> : std::integral_constant<size_t, T::kCount> {};
template <size_t I, retrograd::IsNamedTensors T>
struct std::tuple_element<I, T> : std::tuple_element<I, typename T::Tuple> {};

#define RG_COPIES_OF_NAMED(NAME)                                  \
  NAME() = default;                                               \
  NAME(const NAME& other) : NamedTensors(other) {}                \
  NAME(NAME&& other) noexcept : NamedTensors(std::move(other)) {} \
  NAME& operator=(const NAME& other) {                            \
    Tuple::operator=(other);                                      \
    return *this;                                                 \
  }                                                               \
  NAME& operator=(NAME&& other) noexcept {                        \
    Tuple::operator=(std::move(other));                           \
    return *this;                                                 \
  }
#define RG_NAMED_PAIR(NAME, FIRST, SECOND)                                                   \
  struct NAME : NamedTensors<Tensor, Tensor> {                                               \
    RG_COPIES_OF_NAMED(NAME)                                                                 \
    NAME(Tensor first, Tensor second) : NamedTensors(std::move(first), std::move(second)) {} \
    Tensor &FIRST = std::get<0>(*this), &SECOND = std::get<1>(*this);                        \
  }
#define RG_NAMED_TRIPLE(NAME, FIRST, SECOND, THIRD)                                                \
  struct NAME : NamedTensors<Tensor, Tensor, Tensor> {                                             \
    RG_COPIES_OF_NAMED(NAME)                                                                       \
    NAME(Tensor first, Tensor second, Tensor third)                                                \
        : NamedTensors(std::move(first), std::move(second), std::move(third)) {}                   \
    Tensor &FIRST = std::get<0>(*this), &SECOND = std::get<1>(*this), &THIRD = std::get<2>(*this); \
  }
