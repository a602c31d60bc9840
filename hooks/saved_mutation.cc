// See hooks/saved_mutation.h. A payload is a shared Kept. The scope's State lists it under its memory until it is
// dropped or copied. before_write() is called before each in-place write of the thread (WriteWatcher in
// engine/storage.h).
#include "hooks/saved_mutation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "engine/recording.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

// The byte range of a storage that a set of tensors on it shows.
struct Bytes {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;

  void add(const TensorImpl& x) {
    int64_t last = x.storage_offset();
    for (int i = 0; i < x.rank(); ++i) {
      if (x.shape()[i].raw() == 0) return;
      last += (x.shape()[i].raw() - 1) * x.strides()[i];
    }
    const auto size = static_cast<int64_t>(element_size(x.dtype()));
    begin = std::min(begin, x.storage_offset() * size / kAlignment * kAlignment);
    end = std::max(end, (last + 1) * size);
  }
  bool empty() const { return begin >= end; }
  RefPtr<Storage> copy(const TensorImpl& of) const {
    RefPtr<TensorImpl> bytes = TensorImpl::make();
    bytes->set_type(kUInt8, of.device(), {Dim(end - begin)});
    contiguous_strides(bytes->shape(), bytes->mutable_strides());
    bytes->set_storage(of.storage());
    bytes->set_storage_offset(begin);
    const NoGradGuard no_grad;
    const Emitter::Scope plain(eager_runner());
    return clone(Tensor(std::move(bytes))).impl().storage();
  }

 private:
  static constexpr int64_t kAlignment = 8;  // an offset in elements of any dtype
};

// `x` on `memory`, which begins at byte `begin` of x's storage.
Tensor moved(const TensorImpl& x, const RefPtr<Storage>& memory, int64_t begin) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(x);
  cell->set_storage(memory);
  cell->set_storage_offset(x.storage_offset() - begin / static_cast<int64_t>(element_size(x.dtype())));
  return Tensor(std::move(cell));
}

}  // namespace

struct AllowMutationOnSavedTensors::Kept {
  explicit Kept(std::shared_ptr<State> s) : state(std::move(s)) {}
  ~Kept();
  Kept(const Kept&) = delete;

  std::shared_ptr<State> state;
  Tensor tensor;  // undefined: not listed
  uint32_t version = 0;
  std::multimap<const Storage*, Kept*>::iterator place;
};

// The mutex: graphs may be dropped, and backwards may run, on other threads than the scope's. Objects that it guards
// are released after it.
struct AllowMutationOnSavedTensors::State final : WriteWatcher {
  std::mutex mutex;
  std::multimap<const Storage*, Kept*> listed;
  bool closed = false;

  void list(Kept& kept, Tensor tensor) {
    kept.version = tensor.version();
    kept.place = listed.emplace(tensor.impl().storage().get(), &kept);
    kept.tensor = std::move(tensor);
  }
  // This cannot fail.
  void move(Kept& kept, Tensor tensor) {
    kept.version = tensor.version();
    auto node = listed.extract(kept.place);
    node.key() = tensor.impl().storage().get();
    kept.place = listed.insert(std::move(node));
    kept.tensor = std::move(tensor);
  }
  void unlist(Kept& kept) {
    const std::lock_guard lock(mutex);
    if (kept.tensor.defined()) listed.erase(kept.place);
  }
  void close() {
    Tensors old;
    const std::lock_guard lock(mutex);
    closed = true;
    for (const auto& [memory, kept] : listed) old.push_back(std::move(kept->tensor));
    listed.clear();
  }
  void before_write(const Storage& memory) override;
};

AllowMutationOnSavedTensors::Kept::~Kept() { state->unlist(*this); }

void AllowMutationOnSavedTensors::State::before_write(const Storage& memory) {
  std::vector<Kept*> current;  // without those that another thread has overwritten
  Bytes bytes;
  Tensors old, now;
  const std::lock_guard lock(mutex);
  const auto [begin, end] = listed.equal_range(&memory);
  for (auto it = begin; it != end; ++it) {
    if (it->second->version != memory.version()) continue;
    current.push_back(it->second);
    bytes.add(it->second->tensor.impl());
  }
  if (bytes.empty()) return;
  const RefPtr<Storage> copy = bytes.copy(current.front()->tensor.impl());
  for (Kept* kept : current) {
    old.push_back(kept->tensor);
    now.push_back(moved(kept->tensor.impl(), copy, bytes.begin));
  }
  for (size_t i = 0; i < current.size(); ++i) move(*current[i], std::move(now[i]));
}

class AllowMutationOnSavedTensors::Pair final : public SavedTensorHooks {
 public:
  explicit Pair(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::any pack(const Tensor& tensor) override {
    auto kept = std::make_shared<Kept>(state_);
    const std::lock_guard lock(state_->mutex);
    state_->list(*kept, tensor);
    return kept;
  }

  Tensor unpack(const std::any& payload) override {
    const Kept& kept = *std::any_cast<const std::shared_ptr<Kept>&>(payload);
    const std::lock_guard lock(state_->mutex);
    if (state_->closed)
      throw Error(
          Category::hook_forbidden,
          "a backward outside of the AllowMutationOnSavedTensors scope in which the graph was recorded");
    if (kept.tensor.version() != kept.version && kept.tensor.numel() != 0)
      throw Error(
          Category::version_mismatch,
          "a saved tensor was modified in place on another thread than that of AllowMutationOnSavedTensors");
    return kept.tensor;
  }

 private:
  std::shared_ptr<State> state_;
};

std::shared_ptr<AllowMutationOnSavedTensors::State> AllowMutationOnSavedTensors::new_state(
    SourceLocation where) {
  refuse_recording("AllowMutationOnSavedTensors", "it is to see each write in place", where);
  if (WriteWatcher::Scopes::innermost())
    fail(Category::hook_forbidden, "AllowMutationOnSavedTensors", "scopes of it do not nest", where);
  return std::make_shared<State>();
}

AllowMutationOnSavedTensors::AllowMutationOnSavedTensors(SourceLocation where)
    : state_(new_state(where)),
      guard_(RefPtr<SavedTensorHooks>::adopt(new Pair(state_)), where),
      watch_(state_) {}

AllowMutationOnSavedTensors::~AllowMutationOnSavedTensors() { state_->close(); }

}  // namespace retrograd
