// The errors of the library. There are three types, because three different people have to act:
//   Error         the caller did something that is not allowed (wrong shape, freed graph). category() says what, in the
//                 terms of the conformance format.
//   RuntimeError  the machine failed (memory, file, device).
//   InternalError a bug of this library; the text asks for a report.
// All derive from Exception, a std::exception. Texts name the op, the operands with dtype, shape and device, the user's
// file and line, and a hint where there is one. Library code never catches an error to go on; it only adds context
// (add_context) and rethrows.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/location.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

enum class Category : uint8_t {
  shape_mismatch,
  dtype_mismatch,
  bad_dim,
  index_out_of_range,
  bad_argument,
  view_incompatible,
  overlapping_write,
  singular_matrix,
  not_positive_definite,
  backward_twice_freed,
  version_mismatch,
  non_scalar_backward_without_cotangent,
  cotangent_mismatch,
  no_grad_fn,
  unused_input,
  leaf_inplace,
  view_inplace_forbidden,
  requires_grad_forbidden,
  hook_forbidden,
  hook_bad_result,
  unsupported,
};

std::string_view to_string(Category category);

/// Base of all exceptions of the library. what() may grow while the exception travels (see add_context).
class Exception : public std::exception {
 public:
  explicit Exception(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  /// The same: texts have no stack trace. libtorch's names.
  const char* what_without_backtrace() const noexcept { return what(); }
  const std::string& msg() const noexcept { return text_; }
  /// Keeps the first few lines, which are the innermost: each of several backwards that nest in hooks adds one.
  void add_context(std::string_view line) {
    if (contexts_ > kMaxContexts) return;
    text_.append("\n  ").append(contexts_++ < kMaxContexts ? line : "... and so on, further out");
  }

 private:
  static constexpr int kMaxContexts = 4;
  std::string text_;
  int contexts_ = 0;
};

/// A call that is not allowed.
class Error : public Exception {
 public:
  Error(Category category, std::string text) : Exception(std::move(text)), category_(category) {}
  Category category() const { return category_; }

 private:
  Category category_;
};

/// The machine failed: memory, file, device.
class RuntimeError : public Exception {
 public:
  using Exception::Exception;
};

/// A file could not be read or written, or its content is not what it should be.
class FileError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

/// An allocation was refused: by the system, or by the limit of memory::set_limit.
class OutOfMemory : public RuntimeError {
 public:
  OutOfMemory(int64_t requested, int64_t live, int64_t limit);
  const int64_t requested, live, limit;  // bytes
};

/// A bug of this library.
class InternalError : public Exception {
 public:
  using Exception::Exception;
};

/// Throws Error(category, "OP: TEXT (called at FILE:LINE)").
[[noreturn]] void fail(Category category, std::string_view op, std::string_view text,
                       SourceLocation where = {});
[[noreturn]] void internal_failure(const char* file, int line, const char* condition);

}  // namespace retrograd
#pragma GCC visibility pop

// An invariant of the library itself.
#define RG_ASSERT(condition)                    \
  (__builtin_expect(!!(condition), 1) ? (void)0 \
                                      : ::retrograd::internal_failure(__FILE__, __LINE__, #condition))
