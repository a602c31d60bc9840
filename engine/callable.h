// User functions that are kept to be called later: an empty one is refused, with the line that passes it.
#pragma once

#include <functional>
#include <string_view>
#include <type_traits>

#include "engine/error.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Error(bad_argument) unless there is a function to call.
inline void require_function(bool is_there, std::string_view op, SourceLocation where) {
  if (!is_there) fail(Category::bad_argument, op, "the function is empty: there is nothing to call", where);
}

namespace detail {

template <class F>
inline constexpr bool is_std_function = false;
template <class R, class... Args>
inline constexpr bool is_std_function<std::function<R(Args...)>> = true;
/// Whether a callable that may be empty is so: a pointer, or a std::function.
template <class F>
bool is_empty_function(const F& f) {
  if constexpr (std::is_pointer_v<F> || is_std_function<F>) return !f;
  return false;
}

}  // namespace detail
}  // namespace retrograd
#pragma GCC visibility pop
