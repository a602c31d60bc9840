// See data/worker_exception.h.
#include "data/worker_exception.h"

#include <string>

namespace retrograd::inline v0::data {
namespace {

std::string text_of(const std::exception_ptr& original) {
  constexpr const char* kText = "a worker thread of a data loader has caught an exception";
  try {
    std::rethrow_exception(original);
  } catch (const std::exception& e) {
    return std::string(kText) + ": " + e.what();
  } catch (...) {
    return std::string(kText) + " that is no std::exception";
  }
}

}  // namespace

WorkerException::WorkerException(std::exception_ptr original)
    : Exception(text_of(original)), original_exception(std::move(original)) {}

}  // namespace retrograd::inline v0::data
