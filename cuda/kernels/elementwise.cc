// See cuda/kernels/elementwise.h. A call uses a direct kernel if all tensors are dense, of one floating type and at
// multiples of 16 bytes; else one with strides. Dims are merged over all tensors of a call first, so that most calls
// have one or two.
#include "cuda/kernels/elementwise.h"

#include "cuda/kernels/elementwise_call.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/table.h"
#include "engine/bookkeeping.h"
#include "engine/each_field.h"
#include "ops/bitwise.h"
#include "ops/elementwise_list.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::cuda {
namespace {

static_assert(static_cast<int>(ScalarType::Bool) == 9 && kScalarTypeCount == 10,
              "Element numbers them in the same way");

Element element_of(ScalarType dtype) { return static_cast<Element>(dtype); }

// The dims of the output, with the strides of all sides.
class MergedDims {
 public:
  MergedDims(const Call& call, const TensorImpl& output, ElementwiseCall& out) : out_(out) {
    for (int d = 0; d < output.rank(); ++d) {
      if (output.shape()[d].raw() == 1) continue;
      int64_t stride[kSides] = {output.strides()[d]};
      for (size_t k = 0; k < call.operands.size(); ++k)
        stride[k + 1] = call.operands[k] ? repeated_stride(*call.operands[k], output, d) : 0;
      add(output.shape()[d].raw(), stride);
    }
    if (out_.rank == 0) {
      const int64_t stride[kSides] = {1, 1, 1, 1};
      add(1, stride);
    }
  }

 private:
  static constexpr int kSides = ElementwiseCall::kMost + 1;

  static int64_t repeated_stride(const TensorImpl& x, const TensorImpl& output, int d) {
    const int own = d - (output.rank() - x.rank());
    return own < 0 || x.shape()[own].raw() == 1 ? 0 : x.strides()[own];
  }
  int64_t& stride_of(int side, int d) { return side == 0 ? out_.out.stride[d] : out_.in[side - 1].stride[d]; }

  void add(int64_t size, const int64_t* stride) {
    int d = out_.rank - 1;
    bool merges = out_.rank > 0;
    for (int s = 0; merges && s < kSides; ++s) merges = stride_of(s, d) == size * stride[s];
    if (merges)
      out_.size[d] *= size;
    else
      out_.size[d = out_.rank++] = size;
    for (int s = 0; s < kSides; ++s) stride_of(s, d) = stride[s];
  }

  ElementwiseCall& out_;
};

bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

bool is_direct(const ElementwiseCall& c, size_t operands, Element element) {
  if (c.rank > 1 || c.out.stride[0] != 1 || !is_aligned(c.out.data)) return false;
  for (size_t k = 0; k < operands; ++k) {
    const Side& x = c.in[k];
    if (x.data && (x.element != element || x.stride[0] != 1 || !is_aligned(x.data))) return false;
  }
  return true;
}

ElementwiseLauncher launcher_of(const ElementwiseRow& row, ScalarType dtype, bool direct) {
  if (direct) switch (dtype) {
      case kFloat32: return row.direct_f32;
      case kFloat64: return row.direct_f64;
      case kFloat16: return row.direct_f16;
      case kBFloat16: return row.direct_bf16;
      default: break;
    }
  const ScalarType type = compute_type(dtype);
  return type == kFloat32 ? row.any_f32 : type == kFloat64 ? row.any_f64 : row.any_i64;
}

void set_number(ElementwiseCall& c, Scalar number) {
  c.number = number.to_double();
  c.integer = number.to_int();
}

// `value`: the dtype of the operands; `gives`: the result dtype of a direct kernel for it.
void launch_row(const Call& call, ElementwiseCall& c, TensorImpl& output, const ElementwiseRow& row,
                ScalarType value, ScalarType gives) {
  for (size_t k = 0; k < call.operands.size(); ++k)
    if (const TensorImpl* x = call.operands[k]) c.in[k] = {x->data(), element_of(x->dtype()), {}};
  c.out = {output.data(), element_of(output.dtype()), {}};
  c.numel = output.numel().raw();
  MergedDims(call, output, c);
  const bool direct = output.dtype() == gives && is_direct(c, call.operands.size(), element_of(value));
  const ElementwiseLauncher launcher = launcher_of(row, value, direct);
  if (!launcher) fail_call(call, Category::dtype_mismatch, "it is not defined for this dtype");
  if (c.numel == 0) return;
  Gpu& gpu = Gpu::current();
  launcher(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

template <class List>
const ElementwiseRow* family(const ElementwiseLaunchers& all) {
  if constexpr (std::is_same_v<List, ops::ArithmeticOps>) return all.arithmetic;
  if constexpr (std::is_same_v<List, ops::UnaryOps>) return all.unary;
  if constexpr (std::is_same_v<List, ops::ActivationOps>) return all.activations;
  if constexpr (std::is_same_v<List, ops::BinaryOps>) return all.binary;
  if constexpr (std::is_same_v<List, ops::ComparisonOps>) return all.comparison;
  if constexpr (std::is_same_v<List, ops::TernaryOps>) return all.ternary;
  if constexpr (std::is_same_v<List, ops::LossOps>) return all.losses;
  if constexpr (std::is_same_v<List, ops::SpecialOps>) return all.special;
  if constexpr (std::is_same_v<List, ops::FloatOps>) return all.floats;
  if constexpr (std::is_same_v<List, ops::BitwiseOps>) return all.bitwise;
  if constexpr (std::is_same_v<List, ops::ShrinkageOps>) return all.shrinkage;
}

// As in PyTorch, the values of a tensor of divisors are not checked: on a device an integer divided by 0 gives 0.
void refuse_zero_number(const Call& call) {
  if (!call.operands[1] && is_integral(call.operands[0]->dtype(), true) &&
      ir::scalar_operand(*call.op, call.attrs).to_int() == 0)
    fail_call(call, Category::bad_argument, "an integer is divided by zero");
}

template <class Op, class List>
void elementwise_kernel(const Call& call, TensorImpl* const* outputs) {
  const ElementwiseRow& row = family<List>(*Gpu::current().launchers().elementwise)[ops::index_of<Op, List>];
  RG_ASSERT(row.attrs_size == ops::info<Op>.attrs_size);
  if constexpr (requires { Op::divides; }) refuse_zero_number(call);
  elementwise(call, *outputs[0], row);
}

}  // namespace

ScalarType compute_type(ScalarType dtype) {
  if (dtype == kFloat64) return kFloat64;
  return is_floating(dtype) ? kFloat32 : kInt64;
}

void elementwise(const Call& call, TensorImpl& output, const ElementwiseRow& row) {
  // The last tensor operand has the dtype that is computed in; an earlier one may be the condition of `where`.
  const TensorImpl* value = nullptr;
  ElementwiseCall c;
  c.attrs = call.attrs;
  for (const TensorImpl* x : call.operands)
    if (x)
      value = x;
    else
      set_number(c, ir::scalar_operand(*call.op, call.attrs));
  const bool gives_bool = call.op->infer == ops::infer_boolean;
  launch_row(call, c, output, row, value->dtype(), gives_bool ? kBool : value->dtype());
}

void convert_copy(const TensorImpl& from, TensorImpl& to) {
  TensorImpl* operand = const_cast<TensorImpl*>(&from);
  ElementwiseCall c;
  launch_row({&ops::info<ops::Clone>, {&operand, 1}, nullptr, {}, 1}, c, to, *Gpu::current().launchers().copy,
             from.dtype(), from.dtype());
}

void fill(const Call& call, TensorImpl& output, Scalar value) {
  TensorImpl* none = nullptr;
  Call of_one = call;
  of_one.operands = {&none, 1};
  ElementwiseCall c;
  set_number(c, value);
  launch_row(of_one, c, output, *Gpu::current().launchers().copy, output.dtype(), output.dtype());
}

void add_elementwise_kernels(KernelTable& table) {
  ops::ElementwiseFamilies::for_each(
      [&]<class Op, class List>() { table.set(&ops::info<Op>, elementwise_kernel<Op, List>); });
  ops::BitwiseOps::for_each(
      [&]<class Op>() { table.set(&ops::info<Op>, elementwise_kernel<Op, ops::BitwiseOps>); });
  table.set(&ops::accumulate, elementwise_kernel<ops::Add, ops::ArithmeticOps>);
}

}  // namespace retrograd::cuda
