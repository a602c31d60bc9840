// See cuda/faults.h.
#include "cuda/faults.h"

#include <cstring>

#include <fmt/format.h>

#include "cuda/gpu.h"
#include "ir/op.h"

namespace retrograd::cuda {

FaultNote Faults::note(const OpInfo& op) {
  {
    std::lock_guard lock(mutex_);
    if (!block_) {
      Allocator::Block* const block = gpu_.memory().allocate(sizeof(Fault), "faults");
      const Fault none{};
      gpu_.upload_now(block->data, &none, sizeof(none));  // a graph would forget a fault whenever it starts
      block_ = block;
    }
  }
  is_noted_.store(true, std::memory_order_relaxed);
  return {reinterpret_cast<Fault*>(block_->data), reinterpret_cast<uint64_t>(&op)};
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
  const auto* op = reinterpret_cast<const OpInfo*>(found.op);
  const std::string where = fmt::format("found on cuda:{} since it was last waited for", gpu_.index());
  if (found.is_index)
    fail(Category::index_out_of_range, op->name,
         fmt::format("index {} is out of range for {} entries ({})", found.index, found.entries, where));
  fail(
      Category::bad_argument, op->name,
      fmt::format("the value {} is not between {} and {} ({})", found.value, found.least, found.most, where));
}

}  // namespace retrograd::cuda
