// TensorImpl, the cell of a Tensor: type, layout, storage, and the annotations of the emitters.
//
// Emitters annotate cells instead of wrapping them (a wrapper per emitter would cost a cell each and need lift rules):
//   Taper     grad_fn and output_nr: the tape record that made the value;
//   Dual      a list of {level, tangent} in the AutogradMeta;
//   Batching  the value with its batch dim in the AutogradMeta; graph is kBatchedGraph;
//   Recorder  graph and value_id: the value is a name in a graph. It has no data. A value of a recorded function still
//             has a storage without memory, which tells who shares it and how often it was written to.
// Invariant: emit() returns a new cell, except for unpack, hook and in-place accumulation, whose results are never
// annotated again. AutogradMeta holds what few tensors have; it is made when first needed.
#pragma once

#include <memory>

#include "engine/storage.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct Record;
struct AutogradMeta;
class Tensor;

/// TensorImpl::graph of a value that vmap shows without its batch dim (engine/batching.h): nothing may read its data.
inline constexpr uint64_t kBatchedGraph = ~uint64_t{0};

class TensorImpl : public WeaklyCounted {
 public:
  static RefPtr<TensorImpl> make();
  static void destroy(TensorImpl* impl) noexcept;
  static void free_block(TensorImpl* impl) noexcept;

  const Shape& shape() const { return shape_; }
  ScalarType dtype() const { return dtype_; }
  Device device() const { return device_; }
  int rank() const { return shape_.rank(); }
  Dim numel() const { return shape_.numel(); }
  TensorType type() const { return {dtype_, device_, shape_}; }
  void set_type(ScalarType dtype, Device device, const Shape& shape) {
    dtype_ = dtype;
    device_ = device;
    shape_ = shape;
  }
  Shape& mutable_shape() { return shape_; }
  void set_dtype(ScalarType dtype, Device device) {
    dtype_ = dtype;
    device_ = device;
  }

  // Strides and offset of a value of a recorded function may be symbols, as sizes may. stride() and offset() give
  // them; strides() and storage_offset() are for tensors with data. Sizes and strides are 0 or 1 in each run, or never.
  Dim stride(int i) const { return Dim::from_raw(strides_[i]); }
  Dim offset() const { return Dim::from_raw(offset_); }
  void set_stride(int i, Dim stride) { strides_[i] = stride.raw(); }
  void set_offset(Dim offset) { offset_ = offset.raw(); }
  const int64_t* strides() const { return strides_; }
  int64_t* mutable_strides() { return strides_; }
  int64_t storage_offset() const { return offset_; }
  void set_storage_offset(int64_t offset) { offset_ = offset; }
  bool is_contiguous() const { return contiguous_numel() >= 0; }
  /// The number of elements when they are in row-major order without gaps, else -1.
  int64_t contiguous_numel() const {
    int64_t n = 1;
    for (int i = rank() - 1; i >= 0; --i) {
      const int64_t size = shape_[i].raw();
      if ((size | strides_[i]) < 0) [[unlikely]]
        return contiguous_numel_at_capture();
      if (size == 0) return 0;
      if (size != 1 && strides_[i] != n) return -1;
      if (__builtin_mul_overflow(n, size, &n)) return -1;
    }
    return n;
  }

  const RefPtr<Storage>& storage() const { return storage_; }
  void set_storage(RefPtr<Storage> storage) { storage_ = std::move(storage); }
  /// Allocates contiguous memory of its own for the present shape.
  void allocate();
  /// False for a value of a recorded backward, whose strides are unknown.
  bool has_layout() const { return !graph || storage_; }
  /// First element. Null for a recorded value.
  void* data() const {
    return static_cast<char*>(storage_->data()) + offset_ * static_cast<int64_t>(element_size(dtype_));
  }
  /// Only the holder of the only reference to this cell can see its memory, now and later.
  bool is_unshared() const {
    return is_unique() && !has_weak_refs() && storage_ && storage_->is_unique() && !storage_->is_external();
  }

  /// Takes the type, layout and storage of `other`, not its annotations.
  void alias(const TensorImpl& other);

  // Annotations.
  bool requires_grad = false;         // of a leaf: set by the user; of an inner value: it has a grad_fn
  bool is_multi_output_view = false;  // made by split, chunk or unbind: in-place writes are refused
  bool is_no_grad_view = false;       // made under no_grad, or a view of one
  // View of memory visible to others, returned by a user-defined function; or a view of one.
  bool is_function_view = false;
  uint32_t output_nr = 0;
  int32_t value_id = -1;
  std::atomic<bool> was_saved{false};  // this very cell was put into a slot
  uint64_t graph = 0;  // number of the Recorder that the value belongs to; 0: a value with data
  RefPtr<Record> grad_fn;
  RefPtr<TensorImpl> base;  // of a view: the tensor whose memory it shares (never itself a view)
  std::unique_ptr<AutogradMeta> meta;

  /// Makes a view an independent tensor, for one whose base nobody else holds or that must not refer to it.
  void forget_base() {
    base.reset();
    is_no_grad_view = is_multi_output_view = is_function_view = false;
  }
  /// A view that would lose its place in the graph by a write through its memory: such a write is refused.
  bool is_fixed_view() const { return is_no_grad_view || is_multi_output_view || is_function_view; }

  bool is_leaf() const { return !grad_fn; }
  /// For a view: the version of its memory when it was made.
  uint32_t made_at_version() const { return made_at_version_; }
  void set_made_at_version(uint32_t version) { made_at_version_ = version; }
  AutogradMeta& need_meta();

 private:
  TensorImpl() = default;
  ~TensorImpl();
  int64_t contiguous_numel_at_capture() const;  // of symbols; leaves a guard

  ScalarType dtype_ = ScalarType::Undefined;
  Device device_;
  uint32_t made_at_version_ = 0;
  Shape shape_;
  int64_t strides_[kMaxRank];
  int64_t offset_ = 0;
  RefPtr<Storage> storage_;
};

}  // namespace retrograd
#pragma GCC visibility pop
