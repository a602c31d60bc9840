// TensorImpl, the cell behind a Tensor: type, layout, storage, and what the emitters note on it.
//
// Emitters annotate cells instead of wrapping them (a wrapper per emitter would cost a cell each and force lift rules):
//   Taper     grad_fn and output_nr: the tape record that made the value;
//   Dual      a list of {level, tangent} in the AutogradMeta;
//   Recorder  graph and value_id: the value is a name in a graph. It has no data; one of a recorded function has a storage without
//             memory all the same, which tells who shares it and how often it was written to.
// Invariant: emit() returns a fresh cell, except for unpack, hook and in-place accumulation, which are never annotated again.
// AutogradMeta holds what few tensors have; it is made on first need.
#pragma once

#include <memory>

#include "engine/storage.h"

namespace retrograd {

struct Record;
struct AutogradMeta;
class Tensor;

class TensorImpl : public RefCounted {
 public:
  static RefPtr<TensorImpl> make();
  static void destroy(TensorImpl* impl) noexcept;

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

  const int64_t* strides() const { return strides_; }
  int64_t* mutable_strides() { return strides_; }
  int64_t storage_offset() const { return offset_; }
  void set_storage_offset(int64_t offset) { offset_ = offset; }
  bool is_contiguous() const { return contiguous_numel() >= 0; }
  /// The number of elements when they lie in row-major order without gaps, else -1.
  int64_t contiguous_numel() const {
    int64_t n = 1;
    for (int i = rank() - 1; i >= 0; --i) {
      const int64_t size = shape_[i].raw();
      if (size == 0) return 0;
      if (size != 1 && strides_[i] != n) return -1;
      if (__builtin_mul_overflow(n, size, &n)) return -1;
    }
    return n;
  }

  const RefPtr<Storage>& storage() const { return storage_; }
  void set_storage(RefPtr<Storage> storage) { storage_ = std::move(storage); }
  /// Contiguous memory of its own for the shape that is set.
  void allocate();
  /// False of a value of a recorded backward, whose strides are not known.
  bool has_layout() const { return !graph || storage_; }
  /// First element. Null for a recorded value.
  void* data() const {
    return static_cast<char*>(storage_->data()) + offset_ * static_cast<int64_t>(element_size(dtype_));
  }
  /// Nobody but the holder of the only reference to this cell can see its memory.
  bool is_unshared() const {
    return is_unique() && storage_ && storage_->is_unique() && !storage_->is_external();
  }

  /// Takes type, layout and storage of `other`, not its annotations.
  void alias(const TensorImpl& other);

  // Annotations.
  bool requires_grad = false;         // of a leaf: set by the user; of an inner value: it has a grad_fn
  bool is_multi_output_view = false;  // made by split, chunk or unbind: in-place writes are refused
  bool is_no_grad_view = false;       // made under no_grad, or a view of one
  bool is_function_view =
      false;  // of memory that others see, returned by a user's function; or a view of one
  uint32_t output_nr = 0;
  int32_t value_id = -1;
  std::atomic<bool> was_saved{false};  // this very cell was put into a slot
  uint64_t graph = 0;                  // number of the Recorder whose value this is, 0: a value with data
  RefPtr<Record> grad_fn;
  RefPtr<TensorImpl> base;  // of a view: the tensor whose memory it shares (never itself a view)
  std::unique_ptr<AutogradMeta> meta;

  /// Makes a view a tensor in its own right, for one whose base nobody else has or who shall not know of it.
  void forget_base() {
    base.reset();
    is_no_grad_view = is_multi_output_view = is_function_view = false;
  }
  /// A view whose place in the graph a write through its memory would lose: it is refused then.
  bool is_fixed_view() const { return is_no_grad_view || is_multi_output_view || is_function_view; }

  bool is_leaf() const { return !grad_fn; }
  /// Of a view: the version of its memory when it was made.
  uint32_t made_at_version() const { return made_at_version_; }
  void set_made_at_version(uint32_t version) { made_at_version_ = version; }
  AutogradMeta& need_meta();

 private:
  TensorImpl() = default;
  ~TensorImpl();

  ScalarType dtype_ = ScalarType::Undefined;
  Device device_;
  uint32_t made_at_version_ = 0;
  Shape shape_;
  int64_t strides_[kMaxRank];
  int64_t offset_ = 0;
  RefPtr<Storage> storage_;
};

}  // namespace retrograd
