// WorkerException: what a loader throws when one of its worker threads has caught an exception.
#pragma once

#include <exception>

#include "engine/error.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data {

/// Carries the exception of the worker: std::rethrow_exception(e.original_exception) throws it with its own type. The
/// text has the original one's.
struct WorkerException : Exception {
  explicit WorkerException(std::exception_ptr original);

  std::exception_ptr original_exception;
};

}  // namespace retrograd::inline v0::data
#pragma GCC visibility pop
