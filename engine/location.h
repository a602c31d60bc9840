// The place of a call in the user's program.
//
// Public functions take their first tensor through a converting parameter type (`Operand`, engine/tensor.h) whose
// constructor captures the caller's file and line as default arguments: a default argument of a converting constructor
// is evaluated at the call, so `x * y` and `rg::tanh(x)` report the user's own line. A function that is itself made of
// public functions (a module, a loss) opens a `CallScope` with its caller's location. The outermost scope wins, so that
// no line inside the library is ever reported.
//
// __builtin_FILE and __builtin_LINE are used instead of std::source_location because clang 14 with libstdc++ 12 lacks
// the latter.
#pragma once

#include <string>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct SourceLocation {
  const char* file = nullptr;  // a string literal: never owned
  int line = 0;

  static constexpr SourceLocation current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  explicit operator bool() const { return file != nullptr; }
};

/// "mlp.cc:44": the last path component and the line; "?" when unknown.
std::string to_string(SourceLocation where);

namespace detail {
inline thread_local constinit SourceLocation outer_location{};
}

/// The location to record for a call made at `where`: that of the outermost open CallScope, else `where` itself.
inline SourceLocation effective_location(SourceLocation where) {
  return detail::outer_location.file ? detail::outer_location : where;
}

/// While open, every call made on this thread reports the location given to the outermost scope.
class CallScope {
 public:
  explicit CallScope(SourceLocation where) : owner_(!detail::outer_location.file) {
    if (owner_) detail::outer_location = where;
  }
  ~CallScope() {
    if (owner_) detail::outer_location = {};
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  /// While open, CallScopes have no effect: for user code that the library calls back, whose own lines are reported.
  class Suspend {
   public:
    Suspend() : saved_(detail::outer_location) { detail::outer_location = {}; }
    ~Suspend() { detail::outer_location = saved_; }
    Suspend(const Suspend&) = delete;

   private:
    SourceLocation saved_;
  };

 private:
  bool owner_;
};

}  // namespace retrograd
#pragma GCC visibility pop
