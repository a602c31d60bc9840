// Cells: making, dropping, layout. See engine/tensor_impl.h.
#include "engine/tensor_impl.h"

#include <new>

#include "engine/tape.h"

namespace retrograd::inline v0 {

RefPtr<TensorImpl> TensorImpl::make() {
  detail::count_tensor(1);
  return RefPtr<TensorImpl>::adopt(new (pool_allocate(sizeof(TensorImpl))) TensorImpl);
}

TensorImpl::~TensorImpl() = default;

// While weak references remain, the cell is empty: it holds neither memory nor history.
void TensorImpl::destroy(TensorImpl* impl) noexcept {
  if (!impl->may_destroy()) return;
  detail::count_tensor(-1);
  if (!impl->has_weak_refs()) return free_block(impl);
  impl->storage_.reset();
  impl->grad_fn.reset();
  impl->base.reset();
  impl->meta.reset();
  if (impl->drop_weak_ref()) free_block(impl);
}

void TensorImpl::free_block(TensorImpl* impl) noexcept {
  impl->~TensorImpl();
  pool_free(impl, sizeof(TensorImpl));
}

void TensorImpl::allocate() {
  const int64_t count = contiguous_strides(shape_, strides_).value();
  offset_ = 0;
  storage_ = Storage::allocate(Dim::checked_mul(count, static_cast<int64_t>(element_size(dtype_))));
}

int64_t TensorImpl::contiguous_numel_at_capture() const {
  Dim n = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    const Dim size = shape_[i];
    if (size.raw() == 0) return 0;
    if (size.raw() != 1 && !(stride(i) == n)) return -1;
    n *= size;
  }
  return n.hint();
}

void TensorImpl::alias(const TensorImpl& other) {
  dtype_ = other.dtype_;
  device_ = other.device_;
  shape_ = other.shape_;
  for (int i = 0; i < other.rank(); ++i) strides_[i] = other.strides_[i];
  offset_ = other.offset_;
  storage_ = other.storage_;
  graph = other.graph;
  value_id = other.value_id;
  if (graph == kBatchedGraph) [[unlikely]]
    need_meta().batched = other.meta->batched;
}

AutogradMeta& TensorImpl::need_meta() {
  if (!meta) meta = std::make_unique<AutogradMeta>();
  return *meta;
}

RefPtr<Storage> Storage::wrap(void* data, int64_t bytes, void (*release)(void*), void* context) {
  auto* storage = new (pool_allocate(kStorageHeader)) Storage(data, bytes);
  storage->release_ = release;
  storage->context_ = context;
  storage->external_ = true;
  return RefPtr<Storage>::adopt(storage);
}

RefPtr<Storage> Storage::own(void* data, int64_t bytes, void (*release)(void*), void* context) {
  RefPtr<Storage> storage = wrap(data, bytes, release, context);
  storage->owned_ = true;
  return storage;
}

uint32_t Storage::give_identity() const {
  static constinit std::atomic<uint32_t> given{0};
  uint32_t number = 0;
  while (number == 0) number = given.fetch_add(1, std::memory_order_relaxed) + 1;
  uint32_t before = 0;
  return identity_.compare_exchange_strong(before, number, std::memory_order_relaxed) ? number : before;
}

void Storage::rewrap(void* data, int64_t bytes, void (*release)(void*), void* context) {
  RG_ASSERT(external_);
  if (release_) release_(context_);
  data_ = data;
  nbytes_ = bytes;
  release_ = release;
  context_ = context;
}

void Storage::destroy(Storage* storage) noexcept {
  const int64_t bytes = storage->nbytes_;
  if (storage->external_) {
    if (storage->release_) storage->release_(storage->context_);
    pool_free(storage, kStorageHeader);
    return;
  }
  detail::free_data(storage, static_cast<size_t>(bytes), kStorageHeader);
}

}  // namespace retrograd
