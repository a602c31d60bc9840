// Gradient mode: whether operations on a thread are recorded for a backward. Initially on, on each thread.
//
// Inference mode is gradient mode off, and more: what is computed in it can never take part in a backward. It is a
// property of the memory (Storage::is_inference), so views share it and tensors made before stay what they are. Both
// modes are one list of scopes: the innermost open guard of either kind decides. Inside of inference mode gradients
// cannot be switched on, except by InferenceMode(false).
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
    (scoped ? scoped->is_enabled : outside_) = on && !(scoped && scoped->is_inference);
  }

 private:
  friend class AutoGradMode;
  friend class InferenceMode;
  struct Scoped {
    bool is_enabled;
    bool is_inference;
  };
  static inline constinit thread_local bool outside_ = true;
};

/// While it lives, the thread that made it is in inference mode; with on = false it is as without any guard. In the mode
/// gradients are off, and new tensors, but not views of older ones, are marked. Outside of it a marked tensor cannot be
/// saved for a backward, written to in place or made to require a gradient; clone() gives a normal one. libtorch's name.
class InferenceMode {
 public:
  explicit InferenceMode(bool on = true) : guard_({!on, on}) {}
  static bool is_enabled() {
    const GradMode::Scoped* scoped = OpenScopes<GradMode::Scoped>::innermost();
    return scoped && scoped->is_inference;
  }

 private:
  OpenScopes<GradMode::Scoped>::Guard guard_;
};

/// Sets the mode of the thread that makes it, as long as it lives. Guards may end in any order: of those that live, the
/// last one made decides.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool on) : guard_(scoped(on)) {}

 private:
  static GradMode::Scoped scoped(bool on) {
    const bool is_inference = InferenceMode::is_enabled();
    return {on && !is_inference, is_inference};
  }

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
