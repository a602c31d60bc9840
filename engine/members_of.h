// members_of: references to the members of a struct, for code that looks for the tensors in a value, such as the inputs
// and results of modules (nn/call.h).
//
// A struct is an aggregate with at most 8 members and no base class, or any class with
//
//   auto members() { return std::tie(input, mask); }
#pragma once

#include <array>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class Tensor;

namespace parts {

template <class T, template <class...> class Of>
inline constexpr bool is_of = false;
template <class... T, template <class...> class Of>
inline constexpr bool is_of<Of<T...>, Of> = true;
template <class T>
inline constexpr bool is_std_array = false;
template <class T, size_t n>
inline constexpr bool is_std_array<std::array<T, n>> = true;

template <class T>
concept AnyTensor = std::derived_from<T, Tensor>;
template <class T>
concept HasMembers = requires(T& value) {
  value.members();
};

// Stands for an initialiser of any type: counts the members of an aggregate.
struct AnyMember {
  template <class T>
  requires(!std::same_as<T, AnyMember>) operator T() const;
};
template <class T, size_t... I>
constexpr bool can_hold(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyMember{})...}; };
}
template <class T, size_t n = 9>
constexpr size_t member_count() {
  if constexpr (n == 0 || can_hold<T>(std::make_index_sequence<n>()))
    return n;
  else
    return member_count<T, n - 1>();
}

/// References to the members of a struct.
template <class T>
auto members_of(T& value) {
  if constexpr (HasMembers<T>) {
    return value.members();
  } else {
    constexpr size_t n = member_count<std::remove_const_t<T>>();
    static_assert(n <= 8, "a struct of more than 8 members needs `auto members() { return std::tie(...); }`");
    if constexpr (n == 0) {
      return std::tuple<>();
    } else if constexpr (n == 1) {
      auto& [a] = value;
      return std::tie(a);
    } else if constexpr (n == 2) {
      auto& [a, b] = value;
      return std::tie(a, b);
    } else if constexpr (n == 3) {
      auto& [a, b, c] = value;
      return std::tie(a, b, c);
    } else if constexpr (n == 4) {
      auto& [a, b, c, d] = value;
      return std::tie(a, b, c, d);
    } else if constexpr (n == 5) {
      auto& [a, b, c, d, e] = value;
      return std::tie(a, b, c, d, e);
    } else if constexpr (n == 6) {
      auto& [a, b, c, d, e, f] = value;
      return std::tie(a, b, c, d, e, f);
    } else if constexpr (n == 7) {
      auto& [a, b, c, d, e, f, g] = value;
      return std::tie(a, b, c, d, e, f, g);
    } else {
      auto& [a, b, c, d, e, f, g, h] = value;
      return std::tie(a, b, c, d, e, f, g, h);
    }
  }
}

}  // namespace parts
}  // namespace retrograd
#pragma GCC visibility pop
