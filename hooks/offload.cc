// See hooks/stock.h and hooks/offload.h.
//
// A payload is an Offloaded: the tensor's elements in host memory, once each, row by row in the order that they had in
// memory; and, from begin() to unpack, the tensor that they are copied back to.
//
// A copy of the tensor, made on the device in program order, is transferred to the host: the tensor may be written to,
// or a plan may reuse its memory, before the transfer is done. The copy costs a few percent of the transfer, and takes
// memory only while that runs.
//
// Devices copy by their executor (Executor::keep_on_host); the CPU keeps the first copy and copies it again.
#include "hooks/offload.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "engine/runner.h"
#include "hooks/memory_order.h"
#include "hooks/stock.h"
#include "hooks/stock_pair.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

class Counters {
 public:
  OffloadStats get() const {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset() {
    std::lock_guard lock(mutex_);
    stats_ = {.in_flight = stats_.in_flight,
              .bytes_in_flight = stats_.bytes_in_flight,
              .most_in_flight = stats_.in_flight,
              .most_bytes_in_flight = stats_.bytes_in_flight};
  }
  void stayed() {
    std::lock_guard lock(mutex_);
    ++stats_.stayed;
  }
  void went(int64_t bytes) {
    std::lock_guard lock(mutex_);
    stats_.bytes_to_host += bytes;
  }
  void comes_back(int64_t bytes, bool is_early) {
    std::lock_guard lock(mutex_);
    stats_.bytes_back += bytes;
    if (!is_early) return;
    ++stats_.early;
    stats_.most_in_flight = std::max(stats_.most_in_flight, ++stats_.in_flight);
    stats_.bytes_in_flight += bytes;
    stats_.most_bytes_in_flight = std::max(stats_.most_bytes_in_flight, stats_.bytes_in_flight);
  }
  void landed(int64_t bytes) {
    std::lock_guard lock(mutex_);
    --stats_.in_flight;
    stats_.bytes_in_flight -= bytes;
  }

 private:
  mutable std::mutex mutex_;
  OffloadStats stats_;
};

Counters& counters() {
  static Counters all;
  return all;
}

class Offloaded {
 public:
  explicit Offloaded(const Tensor& x) : type_(x.impl().type()) {
    const Tensor once = without_repeats(x);
    const MemoryOrder order(once);
    kept_ = clone(order.flatten(once));
    bytes_ = kept_.nbytes();
    block_ = kept_.impl().type();
    strides_ = expand(order.restore(kept_), x.sizes()).strides();
    copy_ = executor().keep_on_host(kept_.impl());
    if (copy_) kept_.reset();
    counters().went(bytes_);
  }
  ~Offloaded() { drop(); }
  Offloaded(const Offloaded&) = delete;

  int64_t bytes() const { return bytes_; }
  void begin() {
    std::lock_guard lock(mutex_);
    if (coming_.defined()) return;
    coming_ = bring();
    counters().comes_back(bytes_, true);
  }
  void drop() noexcept {
    std::lock_guard lock(mutex_);
    try {
      if (coming_.defined()) land();
    } catch (const Exception&) {
      // The device is lost: nothing runs there any more.
    }
  }
  Tensor take() {
    std::lock_guard lock(mutex_);
    if (coming_.defined()) return land();
    Tensor back = bring();
    counters().comes_back(bytes_, false);
    if (copy_) copy_->wait();
    return back;
  }

 private:
  Executor& executor() const { return executor_of(block_.device); }
  // Also waits for a copy that is not used: otherwise its memory would be reused while the copy writes to it.
  Tensor land() {
    Tensor back = std::exchange(coming_, Tensor());
    counters().landed(bytes_);
    if (copy_) copy_->wait();
    return back;
  }
  // A tensor in memory of its own, in the original layout.
  Tensor bring() const {
    RefPtr<TensorImpl> cell = TensorImpl::make();
    if (copy_) {
      cell->set_type(block_.dtype, block_.device, block_.shape);
      executor().allocate(*cell);
      copy_->begin(*cell);
    } else {
      cell->set_storage(clone(kept_).impl().storage());
    }
    cell->set_type(type_.dtype, type_.device, type_.shape);
    std::ranges::copy(strides_, cell->mutable_strides());
    return Tensor(std::move(cell));
  }

  const TensorType type_;  // of the saved tensor
  TensorType block_;       // of its elements, once each
  IntArray strides_;
  int64_t bytes_ = 0;
  std::unique_ptr<HostCopy> copy_;
  Tensor kept_;  // used instead of copy_ where host memory is the device's memory
  std::mutex mutex_;
  Tensor coming_;
};

struct OffloadFormat {
  using Packed = std::shared_ptr<Offloaded>;
  bool takes(const Tensor& x) const { return is_worth_moving(x); }
  Packed pack(const Tensor& x) const {
    try {
      return std::make_shared<Offloaded>(x);
    } catch (const OutOfMemory&) {
      counters().stayed();
      return nullptr;
    }
  }
  Tensor unpack(const Packed& p) const { return p->take(); }
  void begin(Offloaded& x) const { x.begin(); }
};

}  // namespace

RefPtr<SavedTensorHooks> make_offload(const Tensors& keep, PrefetchOptions prefetch) {
  return make_stock(OffloadFormat{}, keep, prefetch);
}

OffloadStats offload_stats() { return counters().get(); }
void reset_offload_stats() { counters().reset(); }

}  // namespace retrograd
