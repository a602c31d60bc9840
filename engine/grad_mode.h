// Gradient mode: whether operations on a thread are recorded for a backward. Initially on, on each thread.
#pragma once

#include "engine/open_scopes.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// The gradient mode of this thread: with it off, Taper records nothing.
class GradMode {
 public:
  static bool is_enabled() {
    const Scoped* scoped = OpenScopes<Scoped>::innermost();
    return scoped ? scoped->is_enabled : outside_;
  }
  /// Holds until the innermost open guard ends; without a guard, from now on.
  static void set_enabled(bool on) {
    Scoped* scoped = OpenScopes<Scoped>::innermost();
    (scoped ? scoped->is_enabled : outside_) = on;
  }

 private:
  friend class AutoGradMode;
  struct Scoped {
    bool is_enabled;
  };
  static inline constinit thread_local bool outside_ = true;
};

/// Sets the mode of the thread that makes it, as long as it lives. Guards may end in any order: of those that live, the
/// last one made decides.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool on) : guard_({on}) {}

 private:
  OpenScopes<GradMode::Scoped>::Guard guard_;
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
struct EnableGradGuard : AutoGradMode {
  EnableGradGuard() : AutoGradMode(true) {}
};

}  // namespace retrograd
#pragma GCC visibility pop
