// Limits how deep calls of the library nest in user code that it calls: a backward in a hook, a compiled step in a hook
// of its own.
#pragma once

#include <string_view>

#include "engine/location.h"

namespace retrograd::inline v0 {

/// A call that may run user code, which may make such a call again. Error(bad_argument) beyond kMost of them on one
/// thread, and when they leave little of its stack.
class Nesting {
 public:
  static constexpr int kMost = 1000;

  explicit Nesting(std::string_view op, SourceLocation where = {});
  ~Nesting();
  Nesting(const Nesting&) = delete;
};

}  // namespace retrograd
