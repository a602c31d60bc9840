// Tensor: the public handle of a value. Copying a Tensor copies a reference; views and in-place ops act on shared
// memory as in libtorch.
//
// Start reading here, then engine/tensor_impl.h (the cell), engine/tape.h (what records a gradient), engine/autograd.h
// (backward, grad, forward mode), engine/hook.h. Op methods (engine/method_list.h) and operators are thin calls of the
// functions in ops/; anything else that an op needs is in its struct there.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "engine/live.h"
#include "engine/location.h"
#include "engine/method_list.h"
#include "engine/sizes.h"
#include "engine/tensor_impl.h"
#include "engine/tensor_options.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class Condition;
class HookHandle;
class MutableGrad;
class Node;
class Operand;
class SavedValue;
class Tensor;
struct MinAndMax;
struct SlogdetResult;
struct ValuesAndIndices;
template <class T, int N>
class TensorAccessor;
using Tensors = std::vector<Tensor>;

namespace indexing {
class TensorIndex;
}
/// Python's index in brackets, one item each (ops/indexing.h).
using Indices = std::vector<indexing::TensorIndex>;

class Tensor {
 public:
  Tensor() = default;  // undefined
  explicit Tensor(RefPtr<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  /// x[0] = y, x.index({..}) = 1: writes a tensor or a number into the memory that a temporary handle shows, as copy_()
  /// and fill_() do. What an index tensor or a mask selects is a copy: index_put_() writes there.
  const Tensor& operator=(const Operand& value) &&;

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const = delete;
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  void reset() { impl_.reset(); }

  // Type and layout.
  int64_t dim(SourceLocation where = SourceLocation::current()) const { return impl("dim", where).rank(); }
  int64_t ndimension(SourceLocation where = SourceLocation::current()) const { return dim(where); }
  Sizes sizes(SourceLocation where = SourceLocation::current()) const {
    return Sizes(impl("sizes", where).shape());
  }
  int64_t size(int64_t dim, SourceLocation where = SourceLocation::current()) const;
  /// The same sizes, which stay symbols while they are recorded (tracer/function/compile.h): code that computes with
  /// them serves other sizes, too. sizes(), size() and numel() fix the recording to the present ones.
  const Shape& sym_sizes(SourceLocation where = SourceLocation::current()) const {
    return impl("sym_sizes", where).shape();
  }
  Dim sym_size(int64_t dim, SourceLocation where = SourceLocation::current()) const;
  Dim sym_numel(SourceLocation where = SourceLocation::current()) const {
    return impl("sym_numel", where).numel();
  }
  Sizes strides(SourceLocation where = SourceLocation::current()) const;
  int64_t stride(int64_t dim, SourceLocation where = SourceLocation::current()) const;
  int64_t numel(SourceLocation where = SourceLocation::current()) const {
    return impl("numel", where).numel().value();
  }
  int64_t nbytes(SourceLocation where = SourceLocation::current()) const {
    return impl("nbytes", where).numel().value() * static_cast<int64_t>(retrograd::element_size(dtype()));
  }
  int64_t element_size(SourceLocation where = SourceLocation::current()) const {
    return static_cast<int64_t>(retrograd::element_size(dtype(where)));
  }
  int64_t itemsize(SourceLocation where = SourceLocation::current()) const { return element_size(where); }
  int64_t storage_offset(SourceLocation where = SourceLocation::current()) const {
    return impl("storage_offset", where).offset().value();
  }
  ScalarType dtype(SourceLocation where = SourceLocation::current()) const {
    return impl("dtype", where).dtype();
  }
  Device device(SourceLocation where = SourceLocation::current()) const {
    return impl("device", where).device();
  }
  ScalarType scalar_type(SourceLocation where = SourceLocation::current()) const { return dtype(where); }
  /// dtype and device, for a factory (ops/creation.h).
  TensorOptions options(SourceLocation where = SourceLocation::current()) const;
  /// The number of the device; -1 for the CPU.
  int64_t get_device(SourceLocation where = SourceLocation::current()) const;
  bool is_cpu(SourceLocation where = SourceLocation::current()) const { return device(where) == kCPU; }
  bool is_cuda(SourceLocation where = SourceLocation::current()) const { return !is_cpu(where); }
  bool is_contiguous(SourceLocation where = SourceLocation::current()) const {
    return impl("is_contiguous", where).is_contiguous();
  }
  bool is_contiguous(MemoryFormat format, SourceLocation where = SourceLocation::current()) const {
    return format == MemoryFormat::Contiguous && is_contiguous(where);
  }
  MemoryFormat suggest_memory_format(SourceLocation where = SourceLocation::current()) const {
    impl("suggest_memory_format", where);
    return MemoryFormat::Contiguous;
  }
  TensorLayout layout(SourceLocation where = SourceLocation::current()) const {
    impl("layout", where);
    return TensorLayout::Strided;
  }
  bool is_floating_point(SourceLocation where = SourceLocation::current()) const {
    return is_floating(impl("is_floating_point", where).dtype());
  }
  bool is_signed(SourceLocation where = SourceLocation::current()) const {
    const ScalarType type = dtype(where);
    return type != kUInt8 && type != kBool;
  }
  // Kinds of tensors that programs ask for and that this library does not have.
  static constexpr bool is_complex() { return false; }
  static constexpr bool is_sparse() { return false; }
  static constexpr bool is_quantized() { return false; }
  /// How often the memory was written to in place.
  uint32_t version(SourceLocation where = SourceLocation::current()) const {
    return impl("version", where).storage()->version();
  }
  /// The same by PyTorch's name. Error(bad_argument) for a tensor of inference mode, which counts as having no version.
  int64_t _version(SourceLocation where = SourceLocation::current()) const;
  /// The number of handles, and others, that hold this very tensor; 0 when undefined.
  size_t use_count() const { return impl_ ? impl_->ref_count() : 0; }
  bool has_storage() const { return impl_ && impl_->storage(); }
  /// Whether both show parts of the same memory.
  bool is_alias_of(const Tensor& other, SourceLocation where = SourceLocation::current()) const {
    return impl("is_alias_of", where).storage() == other.impl("is_alias_of", where).storage();
  }
  bool is_same_size(const Tensor& other, SourceLocation where = SourceLocation::current()) const {
    return sizes(where) == other.sizes(where);
  }
  bool is_view(SourceLocation where = SourceLocation::current()) const {
    return static_cast<bool>(impl("is_view", where).base);
  }
  /// The tensor that a view shows a part of. Error(bad_argument) unless is_view().
  Tensor _base(SourceLocation where = SourceLocation::current()) const;
  /// Made in inference mode (engine/grad_mode.h), or a view of such a tensor.
  bool is_inference(SourceLocation where = SourceLocation::current()) const {
    const RefPtr<Storage>& memory = impl("is_inference", where).storage();
    return memory && memory->is_inference();
  }

  // Data: an address on the tensor's device. Typed access checks the dtype (Error dtype_mismatch) and refuses values of
  // a graph. item() and to_vector() copy the values to the CPU.
  void* raw_data(SourceLocation where = SourceLocation::current()) const;
  void* data_ptr(SourceLocation where = SourceLocation::current()) const { return raw_data(where); }
  void* mutable_data_ptr(SourceLocation where = SourceLocation::current()) const { return raw_data(where); }
  const void* const_data_ptr(SourceLocation where = SourceLocation::current()) const {
    return raw_data(where);
  }
  template <class T>
  T* mutable_data_ptr(SourceLocation where = SourceLocation::current()) const {
    return data_ptr<T>(where);
  }
  template <class T>
  const T* const_data_ptr(SourceLocation where = SourceLocation::current()) const {
    return data_ptr<T>(where);
  }
  /// Elements by number, a[i][j], without checks (engine/accessor.h); it must not outlive the tensor. Errors:
  /// dtype_mismatch; bad_dim unless N is the number of dims; bad_argument for a tensor of another device.
  template <class T, int N>
  TensorAccessor<T, N> accessor(SourceLocation where = SourceLocation::current()) const&;
  template <class T, int N>
  TensorAccessor<T, N> accessor(SourceLocation where = SourceLocation::current()) && = delete;
  template <class T>
  T* data_ptr(SourceLocation where = SourceLocation::current()) const {
    check_dtype(dtype_of<T>(), where);
    return static_cast<T*>(raw_data(where));
  }
  /// The only element, converted to T. Error(bad_argument) when there is not exactly one.
  template <class T>
  T item(SourceLocation where = SourceLocation::current()) const {
    const Scalar s = item(where);
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(s.to_double());
    else
      return static_cast<T>(s.to_int());
  }
  Scalar item(SourceLocation where = SourceLocation::current()) const;
  bool is_nonzero(SourceLocation where = SourceLocation::current()) const { return item(where).toBool(); }
  /// All elements in row-major order, converted to T: double, float, int64_t, int32_t, uint8_t or bool. int64_t keeps
  /// each integer exactly, whereas double rounds those beyond 2^53.
  template <class T = double>
  std::vector<T> to_vector(SourceLocation where = SourceLocation::current()) const;

  // Autograd.
  /// True also for a view whose base requires a gradient, even one made under no_grad.
  bool requires_grad(SourceLocation where = SourceLocation::current()) const {
    const TensorImpl& cell = impl("requires_grad", where);
    return cell.requires_grad || (cell.base && cell.base->requires_grad);
  }
  /// Marks a leaf as wanting a gradient (or not). Error(requires_grad_forbidden) for integers, or when switched off on
  /// a non-leaf.
  const Tensor& requires_grad_(bool value = true, SourceLocation where = SourceLocation::current()) const;
  const Tensor& set_requires_grad(bool value, SourceLocation where = SourceLocation::current()) const {
    return requires_grad_(value, where);
  }
  bool is_leaf(SourceLocation where = SourceLocation::current()) const {
    return !gradient_record("is_leaf", where);
  }
  /// The accumulated gradient of a leaf, or of a tensor with retain_grad; undefined when there is none. Const, so that
  /// w.grad() = g, which would write into the old gradient, does not compile: mutable_grad().
  const Tensor grad(SourceLocation where = SourceLocation::current()) const;
  /// Replaces the gradient; an undefined tensor clears it. Errors: cotangent_mismatch for another type, bad_argument
  /// for the tensor itself.
  void set_grad(const Tensor& grad, SourceLocation where = SourceLocation::current()) const;
  /// The gradient as something to assign to: w.mutable_grad() = g is w.set_grad(g), with its checks.
  MutableGrad mutable_grad(SourceLocation where = SourceLocation::current()) const;
  void retain_grad(SourceLocation where = SourceLocation::current()) const;
  bool retains_grad(SourceLocation where = SourceLocation::current()) const;
  /// Accumulates the gradient of this tensor into its leaves; see autograd::backward.
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = {}, bool create_graph = false,
                SourceLocation where = SourceLocation::current()) const;
  /// Into these tensors alone. Error(bad_argument) for none.
  void backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                const std::vector<Tensor>& inputs, SourceLocation where = SourceLocation::current()) const;
  /// The tape record that made this tensor; an empty Node for a leaf.
  Node grad_fn(SourceLocation where = SourceLocation::current()) const;
  /// Which result of grad_fn() this is; 0 for a leaf.
  int64_t output_nr(SourceLocation where = SourceLocation::current()) const;
  /// Cuts the tensor off from its history and makes it a leaf that requires no gradient; returns it. Its retain_grad
  /// ends; the gradient of what was computed from it before still follows the old history. Errors: bad_argument for a
  /// view, whose history is that of its base; unsupported in a recorded backward.
  const Tensor& detach_(SourceLocation where = SourceLocation::current()) const;
  // A hook that returns nothing only reads (engine/hook.h).
  /// Calls `hook`, Tensor(const Tensor&), with the gradient of this tensor in every backward that reaches it; a defined
  /// result replaces the gradient. The gradient of a result of a user-defined function may be undefined.
  template <class F>
  HookHandle register_hook(F&& hook, SourceLocation where = SourceLocation::current()) const;
  void remove_hook(HookHandle hook) const;  // hook.remove()
  /// Calls `hook`, void(const Tensor&), with this leaf after a gradient was accumulated into it.
  template <class F>
  HookHandle register_post_accumulate_grad_hook(F&& hook,
                                                SourceLocation where = SourceLocation::current()) const;

  /// Hooks of this leaf at its accumulation, as node hooks of PyTorch's AccumulateGrad: a pre-hook, Tensors(const
  /// Tensors&), gets {gradient} after the tensor hooks and may replace it; a post-hook, Tensors(const Tensors&, const
  /// Tensors&), gets ({}, {gradient}) after the post-accumulate hooks. Error(hook_forbidden) when the tensor is no
  /// leaf.
  template <class F>
  HookHandle register_accumulate_grad_prehook(F&& hook,
                                              SourceLocation where = SourceLocation::current()) const;
  template <class F>
  HookHandle register_accumulate_grad_posthook(F&& hook,
                                               SourceLocation where = SourceLocation::current()) const;

  // Ops as methods: engine/method_list.h.
#define RG_DEFAULT(...) = __VA_ARGS__
#define RG_LIST(...) __VA_ARGS__ __VA_OPT__(, )
#define RG_METHOD(RESULT, NAME, PARAMETERS, ...) \
  RESULT NAME(RG_LIST PARAMETERS SourceLocation where = SourceLocation::current()) const;
#define RG_IN_PLACE(NAME, PARAMETERS, ...) RG_METHOD(const Tensor&, NAME##_, PARAMETERS)
#define RG_BOTH(NAME, PARAMETERS, ...) \
  RG_METHOD(Tensor, NAME, PARAMETERS)  \
  RG_METHOD(const Tensor&, NAME##_, PARAMETERS)
  RG_ARITHMETIC_METHODS(RG_METHOD, RG_BOTH)
  RG_UNARY_METHODS(RG_METHOD, RG_BOTH, RG_IN_PLACE)
  RG_BINARY_METHODS(RG_METHOD, RG_BOTH, RG_IN_PLACE)
  RG_REDUCTION_METHODS(RG_METHOD, RG_BOTH)
  RG_SHAPE_METHODS(RG_METHOD, RG_BOTH, RG_BOTH)
  RG_INDEX_METHODS(RG_METHOD, RG_BOTH)
  RG_MATRIX_METHODS(RG_METHOD, RG_BOTH)
  RG_SPECIAL_METHODS(RG_METHOD, RG_BOTH)
  RG_STATISTICS_METHODS(RG_METHOD, RG_BOTH)
  RG_REARRANGEMENT_METHODS(RG_METHOD, RG_BOTH, RG_BOTH)
  RG_PRODUCT_METHODS(RG_METHOD, RG_BOTH)
  RG_SYNONYM_METHODS(RG_METHOD, RG_BOTH, RG_BOTH)
#undef RG_DEFAULT
#undef RG_LIST
#undef RG_METHOD
#undef RG_IN_PLACE
#undef RG_BOTH

  // Methods whose arguments are not those of a function.
  Tensor clone(MemoryFormat, SourceLocation where = SourceLocation::current()) const { return clone(where); }
  Tensor contiguous(MemoryFormat, SourceLocation where = SourceLocation::current()) const {
    return contiguous(where);
  }
  Tensor cpu(SourceLocation where = SourceLocation::current()) const { return to(kCPU, where); }
  Tensor cuda(SourceLocation where = SourceLocation::current()) const { return to(kCUDA, where); }
  // Along one dim.
  template <std::integral T>
  Tensor flip(T dim, SourceLocation where = SourceLocation::current()) const {
    return flip(std::vector<int64_t>{static_cast<int64_t>(dim)}, where);
  }
  template <std::integral T>
  Tensor roll(T shift, std::optional<int64_t> dim = {},
              SourceLocation where = SourceLocation::current()) const {
    const std::vector<int64_t> dims(dim ? 1 : 0, dim.value_or(0));
    return roll(std::vector<int64_t>{static_cast<int64_t>(shift)}, dims, where);
  }
  // libtorch's forms of to(). `copy`: a copy even where nothing changes. `non_blocking` has no effect: a copy between
  // devices is complete for whoever reads it.
  Tensor to(ScalarType dtype, bool non_blocking, bool copy = false,
            SourceLocation where = SourceLocation::current()) const;
  Tensor to(Device device, bool non_blocking, bool copy = false,
            SourceLocation where = SourceLocation::current()) const;
  Tensor to(Device device, ScalarType dtype, bool non_blocking = false, bool copy = false,
            SourceLocation where = SourceLocation::current()) const;
  /// With the dtype and device of `other`, or of these options (whose requires_grad does not count).
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false,
            SourceLocation where = SourceLocation::current()) const;
  template <std::same_as<TensorOptions> Options>  // not what converts to options
  Tensor to(const Options& options, bool /*non_blocking*/ = false, bool copy = false,
            SourceLocation where = SourceLocation::current()) const {
    return to_options(options, copy, where);
  }
  Tensor toType(ScalarType dtype, SourceLocation where = SourceLocation::current()) const {
    return to(dtype, where);
  }
  Tensor type_as(const Tensor& other, SourceLocation where = SourceLocation::current()) const {
    return to(other, false, false, where);
  }
  /// The same memory without a history: detach(). Unlike in PyTorch, a write to it counts for what was saved before,
  /// and a backward that needs the old value is an Error(version_mismatch).
  Tensor data(SourceLocation where = SourceLocation::current()) const { return detach(where); }
  Tensor variable_data(SourceLocation where = SourceLocation::current()) const { return detach(where); }
  Tensor tensor_data(SourceLocation where = SourceLocation::current()) const { return detach(where); }

  // Other memory for this tensor, by what is no write into it (engine/set_data.cc). Whoever saved the tensor for a
  // backward gets Error(version_mismatch). Recorded functions run eagerly from there.
  /// This tensor becomes one of the type, layout and memory of `other`; history, .grad and hooks stay. Errors:
  /// bad_argument for a view, for a type that an existing .grad does not have, or for another type where there is a
  /// history; requires_grad_forbidden for integers in a tensor that requires a gradient.
  void set_data(const Tensor& other, SourceLocation where = SourceLocation::current()) const;
  /// Row-major with these sizes, on its own memory where that is large enough, else on new memory with the old elements
  /// in front and zeros behind. Errors: requires_grad_forbidden for a tensor that requires a gradient;
  /// bad_argument for negative sizes, or where others share memory that is too small.
  const Tensor& resize_(const Shape& size, SourceLocation where = SourceLocation::current()) const;
  const Tensor& resize_as_(const Tensor& other, SourceLocation where = SourceLocation::current()) const;

  // Factories (ops/creation.h) with the dtype and device of this tensor, or with others.
  Tensor new_empty(const Shape& size, SourceLocation where = SourceLocation::current()) const;
  Tensor new_empty(const Shape& size, const TensorOptions& options,
                   SourceLocation where = SourceLocation::current()) const;
  Tensor new_full(const Shape& size, Scalar fill_value,
                  SourceLocation where = SourceLocation::current()) const;
  Tensor new_full(const Shape& size, Scalar fill_value, const TensorOptions& options,
                  SourceLocation where = SourceLocation::current()) const;
  Tensor new_ones(const Shape& size, SourceLocation where = SourceLocation::current()) const;
  Tensor new_ones(const Shape& size, const TensorOptions& options,
                  SourceLocation where = SourceLocation::current()) const;
  Tensor new_zeros(const Shape& size, SourceLocation where = SourceLocation::current()) const;
  Tensor new_zeros(const Shape& size, const TensorOptions& options,
                   SourceLocation where = SourceLocation::current()) const;
  /// "[f32[2,3] cpu]" to stderr.
  void print() const;
  /// This tensor where `condition` holds, else `other`.
  Tensor where(const Tensor& condition, const Operand& other,
               SourceLocation where = SourceLocation::current()) const;
  /// The n-th derivative of digamma.
  Tensor polygamma(int64_t n, SourceLocation where = SourceLocation::current()) const;
  const Tensor& polygamma_(int64_t n, SourceLocation where = SourceLocation::current()) const;
  /// In float64. float_power_: Error(dtype_mismatch) for another dtype.
  Tensor float_power(const Operand& exponent, SourceLocation where = SourceLocation::current()) const;
  const Tensor& float_power_(const Operand& exponent, SourceLocation where = SourceLocation::current()) const;
  /// The value is broadcast and cast.
  const Tensor& copy_(const Tensor& source, SourceLocation where = SourceLocation::current()) const;
  /// A number or a 0-dim tensor.
  const Tensor& fill_(const Operand& value, SourceLocation where = SourceLocation::current()) const;
  const Tensor& zero_(SourceLocation where = SourceLocation::current()) const;

  // Indexing: ops/indexing.h.
  /// x[i]: entry i of dim 0, a view; x[t]: the entries that an index tensor or a mask names.
  Tensor operator[](const Operand& index) const;
  /// x.index({0, Slice(1, None), "...", t}), as x[0, 1:, ..., t] in Python.
  Tensor index(const Indices& indices, SourceLocation where = SourceLocation::current()) const;
  /// Writes `values` there, or adds them: x[indices] = values. A number or a tensor, which is broadcast and cast.
  const Tensor& index_put_(const Indices& indices, const Operand& values, bool accumulate = false,
                           SourceLocation where = SourceLocation::current()) const;

  // Random numbers in place of the values (ops/random_ops.h says how they are drawn). The old value gets a gradient of
  // zeros. Errors: bad_argument for parameters outside their domain, dtype_mismatch, and those of all in-place ops
  // (engine/inplace.h).
  /// Uniform in [from, to).
  const Tensor& uniform_(double from = 0, double to = 1,
                         SourceLocation where = SourceLocation::current()) const;
  const Tensor& normal_(double mean = 0, double std = 1,
                        SourceLocation where = SourceLocation::current()) const;
  /// With density lambd * exp(-lambd * x).
  const Tensor& exponential_(double lambd = 1, SourceLocation where = SourceLocation::current()) const;
  /// 1 with probability p, else 0; any dtype. A tensor p is broadcast.
  const Tensor& bernoulli_(double p = 0.5, SourceLocation where = SourceLocation::current()) const;
  const Tensor& bernoulli_(const Tensor& p, SourceLocation where = SourceLocation::current()) const;
  /// Integers in [from, to), from 0 unless given. Without an end: all non-negative ones (of int64 all but the last);
  /// for a floating dtype, those up to which it represents every integer.
  const Tensor& random_(SourceLocation where = SourceLocation::current()) const;
  const Tensor& random_(int64_t to, SourceLocation where = SourceLocation::current()) const;
  const Tensor& random_(int64_t from, int64_t to, SourceLocation where = SourceLocation::current()) const;

  // For the library.
  TensorImpl& impl() const {
    if (!impl_) undefined_used();
    return *impl_;
  }
  /// The same for `op`, called at `where`.
  TensorImpl& impl(std::string_view op, SourceLocation where) const {
    if (!impl_) undefined_used(op, where);
    return *impl_;
  }
  TensorImpl* get() const { return impl_.get(); }
  TensorImpl* unsafeGetTensorImpl() const { return get(); }
  const RefPtr<TensorImpl>& ref() const { return impl_; }
  RefPtr<TensorImpl> take() && { return std::move(impl_); }

 private:
  [[noreturn]] static void undefined_used();
  [[noreturn]] static void undefined_used(std::string_view op, SourceLocation where);
  const Record* gradient_record(std::string_view op, SourceLocation where) const;
  void check_has_data(std::string_view op, SourceLocation where) const;
  Tensor on_host(std::string_view op, SourceLocation where) const;
  Tensor to_options(const TensorOptions& options, bool copy, SourceLocation where) const;
  void check_dtype(ScalarType wanted, SourceLocation where) const;
  void check_accessible(int dims, SourceLocation where) const;
  HookHandle add_hook(std::function<Tensor(const Tensor&)> hook, SourceLocation where) const;
  HookHandle add_post_accumulate_hook(std::function<void(const Tensor&)> hook, SourceLocation where) const;
  HookHandle add_accumulate_prehook(std::function<Tensors(const Tensors&)> hook, SourceLocation where) const;
  HookHandle add_accumulate_posthook(std::function<Tensors(const Tensors&, const Tensors&)> hook,
                                     SourceLocation where) const;

  RefPtr<TensorImpl> impl_;
};

/// What mutable_grad() gives: the gradient, which may be undefined, and the tensor to which an assigned one belongs.
/// For use within one expression.
class MutableGrad : public Tensor {
 public:
  MutableGrad(const Tensor& owner, SourceLocation where)
      : Tensor(owner.grad(where)), owner_(owner), where_(where) {}
  void operator=(const Tensor& grad) && { owner_.set_grad(grad, where_); }
  void operator=(const MutableGrad& grad) && { owner_.set_grad(grad, where_); }
  void reset() { owner_.set_grad({}, where_); }

 private:
  Tensor owner_;
  SourceLocation where_;
};
inline MutableGrad Tensor::mutable_grad(SourceLocation where) const { return {*this, where}; }

/// A tensor of one bool that may be a condition: if (equal(a, b)). Read so, its value is item<bool>(), which recorded
/// code has not.
class Condition : public Tensor {
 public:
  Condition() = default;
  explicit Condition(Tensor answer) : Tensor(std::move(answer)) {}
  explicit operator bool() const { return item<bool>(); }
  // To a bool alone: in arithmetic with numbers it is a tensor.
  template <std::same_as<bool> T>
  operator T() const {
    return item<bool>();
  }
  friend bool operator!(const Condition& condition) { return !condition.item<bool>(); }
};

/// "f32[2,3] cpu", "undefined".
std::string describe(const Tensor& tensor);
/// Values as PyTorch prints them, shortened beyond 1,000 elements.
std::string to_string(const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, ScalarType dtype);  // "float32"

/// A parameter that accepts a tensor or a number, and the caller's line (see engine/location.h).
class Operand {
 public:
  Operand(const Tensor& tensor, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor_(&tensor), where_{file, line} {}
  Operand(double v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scalar_(v), where_{file, line} {}
  Operand(int64_t v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scalar_(v), where_{file, line} {}
  Operand(int v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scalar_(v), where_{file, line} {}
  Operand(bool v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scalar_(v), where_{file, line} {}
  template <OtherInteger T>
  Operand(T v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scalar_(v), where_{file, line} {}
  Operand(Scalar v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scalar_(v), where_{file, line} {}
  Operand(Dim v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scalar_(v), where_{file, line} {}
  template <class T>
  Operand(const Live<T>& v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scalar_(v), where_{file, line} {}
  template <std::same_as<SavedValue> T>  // its number; constrained, since a SavedValue is made of many things
  Operand(const T& v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : scalar_(v.number()), where_{file, line} {}
  Operand(const Tensor& tensor, SourceLocation where) : tensor_(&tensor), where_(where) {}
  Operand(Scalar scalar, SourceLocation where) : scalar_(scalar), where_(where) {}

  bool is_scalar() const { return tensor_ == nullptr; }
  bool defined() const { return is_scalar() || tensor_->defined(); }
  Scalar scalar() const { return scalar_; }
  /// The tensor; for a number, Error(bad_argument) that names `op`.
  const Tensor& tensor(std::string_view op = "operand") const {
    if (!tensor_) refuse(op);
    return *tensor_;
  }
  /// The same, and the tensor must be defined: Error(bad_argument) for an undefined one, too.
  const Tensor& defined_tensor(std::string_view op) const {
    if (!tensor_ || !tensor_->defined()) [[unlikely]]
      refuse(op);
    return *tensor_;
  }
  SourceLocation where() const { return where_; }

 private:
  [[noreturn]] void refuse(std::string_view op) const;

  const Tensor* tensor_ = nullptr;
  Scalar scalar_;
  SourceLocation where_;
};

}  // namespace retrograd
#pragma GCC visibility pop
