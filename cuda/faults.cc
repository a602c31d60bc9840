// See cuda/faults.h.
#include "cuda/faults.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cuda/gpu.h"
#include "engine/op.h"

namespace retrograd::inline v0::cuda {
namespace {

constinit thread_local const Faults* noted_by_thread = nullptr;  // for the next launch

// The same messages as on the CPU: cpu/kernels/linalg.cc.
[[noreturn]] void raise_matrix(const Fault& found, std::string_view op, std::string_view where) {
  std::string_view what;
  Category category{};
  switch (found.failure) {
    case MatrixFailure::none: break;
    case MatrixFailure::no_permutation:
      category = Category::bad_argument;
      what = "has row numbers, operand 2, that are no permutation";
      break;
    case MatrixFailure::singular:
      category = Category::singular_matrix;
      what = "is singular";
      break;
    case MatrixFailure::not_positive_definite:
      category = Category::not_positive_definite;
      what = "is not positive definite";
      break;
  }
  RG_ASSERT(!what.empty());
  fail(category, op,
       found.is_batch ? fmt::format("matrix {} of the batch {} ({})", found.index, what, where)
                      : fmt::format("the matrix {} ({})", what, where));
}

[[noreturn]] void raise(const Fault& found, std::string_view where) {
  const std::string_view op = reinterpret_cast<const OpInfo*>(found.op)->name;
  switch (found.kind) {
    case FaultKind::index:
      fail(Category::index_out_of_range, op,
           fmt::format("index {} is out of range for {} entries ({})", found.index, found.entries, where));
    case FaultKind::value:
      fail(Category::bad_argument, op,
           fmt::format("the value {} is not between {} and {} ({})", found.value, found.least, found.most,
                       where));
    case FaultKind::matrix: raise_matrix(found, op, where);
  }
  RG_ASSERT(false);
}

}  // namespace

FaultNote Faults::note(const OpInfo& op) {
  {
    std::lock_guard lock(mutex_);
    if (!block_) {
      Allocator::Block* const block = gpu_.memory().allocate(sizeof(Fault), "faults");
      const Fault none{};
      gpu_.upload_now(block->data, &none, sizeof(none));  // a graph would clear a fault at each start
      block_ = block;
    }
  }
  noted_by_thread = this;
  return {reinterpret_cast<Fault*>(block_->data), reinterpret_cast<uint64_t>(&op)};
}

void Faults::launched() {
  if (std::exchange(noted_by_thread, nullptr) == this) is_noted_.store(true, std::memory_order_relaxed);
}

void Faults::note_again() {
  std::lock_guard lock(mutex_);
  if (block_) is_noted_.store(true, std::memory_order_relaxed);
}

void Faults::look() {
  if (!is_noted_.exchange(false, std::memory_order_relaxed)) return;
  Fault found;
  gpu_.read(&found, block_->data, sizeof(found));
  if (!found.is_taken) return;
  const Fault none{};
  gpu_.upload(block_->data, &none, sizeof(none));
  // The call that waits is not the call that caused the error.
  const SourceLocation waits = effective_location({});
  const CallScope::Suspend of_another_call;
  raise(found, fmt::format("found on cuda:{} since it was last waited for{}", gpu_.index(),
                           waits ? ", at " + to_string(waits) : ""));
}

}  // namespace retrograd::cuda
