// The name that errors report for a call, as engine/location.h has its place: that of the function which the user
// called.
//
// A public function that is made of other functions opens a NamedCall with its name. Errors of the functions it calls
// then begin with that name and end with the caller's line, as if it were one op. The outermost one wins; user code
// that the library calls back (CallScope::Suspend) has none.
// This header is for source files.
#pragma once

#include <string_view>

#include "engine/error.h"
#include "engine/location.h"

namespace retrograd::inline v0 {

/// Throws an Error from code that knows neither the op nor its place, such as the arithmetic of sizes. Uses those of
/// the open call, if any.
[[noreturn]] void fail_somewhere(Category category, std::string_view text);

class NamedCall {
 public:
  /// `name` must outlive the scope: a literal.
  NamedCall(std::string_view name, SourceLocation where) : scope_(where), before_(outermost_) {
    const SourceLocation here = effective_location(where);
    if (!is_of(here)) outermost_ = {name, here};
  }
  ~NamedCall() { outermost_ = before_; }
  NamedCall(const NamedCall&) = delete;
  NamedCall& operator=(const NamedCall&) = delete;

  /// The name to report for a failure of `op` at `where`, which is an effective location. `op` itself when no call is
  /// open; an empty `op` stays empty.
  static std::string_view name_for(std::string_view op, SourceLocation where) {
    return is_of(where) ? outermost_.name : op;
  }

 private:
  struct Call {
    std::string_view name;
    SourceLocation where;
  };
  // Whether the name is that of the call at this place. It is not while user code runs, which has places of its own.
  static bool is_of(SourceLocation where) {
    return outermost_.where.file && detail::outer_location.file && outermost_.where.file == where.file &&
           outermost_.where.line == where.line;
  }

  static inline thread_local constinit Call outermost_{};
  CallScope scope_;
  Call before_;
};

}  // namespace retrograd
