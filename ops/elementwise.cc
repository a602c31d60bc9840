// Type rules, promotion and broadcasting of elementwise ops; the generic part of the derivative kinds.
#include "ops/elementwise.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::ops {
namespace {

// Sets the type of the output: the shape that all operands broadcast to, and `dtype`, or, if that is undefined, the
// dtype of the operands from number `from` on. These have one dtype: the public function ensures that, but a node of a
// hook or of user code may not have it.
void infer(const Call& call, size_t from, ScalarType dtype, TensorImpl& output) {
  const TensorImpl* const* first = call.operands.data() + from;
  const TensorImpl* const* const end = call.operands.data() + call.operands.size();
  while (first < end && !*first) ++first;
  if (first >= end) fail_call(call, Category::bad_argument, "at least one operand must be a tensor");
  const TensorImpl& value = **first;
  const Shape* common = &value.shape();
  Shape joined;
  for (const TensorImpl* const* at = call.operands.data(); at < end; ++at) {
    const TensorImpl* x = *at;
    if (!x || x == &value) continue;
    if (at > first && x->dtype() != value.dtype())
      fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
    if (at > first && !(x->device() == value.device()))
      fail_call(call, Category::bad_argument, "operands are on different devices");
    if (x->shape() == *common) continue;
    joined = broadcast_shapes(*common, x->shape(), call.op->name, call.where);
    common = &joined;
  }
  output.set_type(dtype == ScalarType::Undefined ? value.dtype() : dtype, value.device(), *common);
}

TypeCategory category(Scalar s) {
  return s.kind() == Number::Kind::Float ? TypeCategory::Floating
         : s.kind() == Number::Kind::Int ? TypeCategory::Integral
                                         : TypeCategory::Bool;
}

// A number as the tensors' dtype represents it: one beyond an integer's range wraps around.
Scalar fitted(Scalar s, ScalarType dtype) {
  if (s.is_symbolic() || s.kind() != Number::Kind::Int) return s;
  if (dtype == kUInt8) return Scalar(int64_t{static_cast<uint8_t>(s.to_int())});
  if (dtype == kInt32) return Scalar(int64_t{static_cast<int32_t>(s.to_int())});
  return s;
}

std::string operand_text(std::span<const Operand> operands) {
  std::string text;
  for (const Operand& x : operands)
    text += (text.empty() ? "" : ", ") + (x.is_scalar() ? to_string(x.scalar()) : describe(x.tensor()));
  return text;
}

// The device that a call is computed on: that of the first tensor that is not on the CPU.
Device device_of(std::span<const Operand> operands) {
  for (const Operand& x : operands)
    if (!x.is_scalar() && !(x.tensor().device() == kCPU)) return x.tensor().device();
  return kCPU;
}

}  // namespace

ScalarType compute_dtype(const Typing& t, std::span<const Operand> operands, SourceLocation where) {
  for (const Operand& x : operands)
    if (!x.is_scalar()) x.defined_tensor(t.op.name);
  TypePromotion join;
  for (const Operand& x : operands.subspan(static_cast<size_t>(t.first))) {
    if (x.is_scalar())
      join.add_scalar(category(x.scalar()));
    else
      join.add_tensor(x.tensor().dtype(), x.tensor().dim() == 0);
  }
  ScalarType dtype = join.result();
  if (t.promotion == Promotion::floating && is_integral(dtype, true)) dtype = get_default_dtype();
  if (t.promotion == Promotion::number && dtype == kBool) dtype = kInt64;
  const bool refused = dtype == ScalarType::Undefined || is_float8(dtype) ||
                       (is_integral(dtype, true) && !t.integers) || (dtype == kBool && !t.booleans);
  if (refused)
    fail(Category::dtype_mismatch, t.op.name,
         fmt::format("these dtypes are not supported together: {}", operand_text(operands)), where);
  return dtype;
}

void infer_elementwise_from(int first, const Call& call, TensorImpl* const* outputs) {
  infer(call, static_cast<size_t>(first), ScalarType::Undefined, *outputs[0]);
}

void infer_elementwise(const Call& call, TensorImpl* const* outputs) {
  infer(call, 0, ScalarType::Undefined, *outputs[0]);
}

void infer_boolean(const Call& call, TensorImpl* const* outputs) { infer(call, 0, kBool, *outputs[0]); }

void prepare(Prepared& out, const Typing& t, std::span<const Operand> operands, SourceLocation where) {
  const ScalarType dtype = compute_dtype(t, operands, where);
  if (std::ranges::all_of(operands, &Operand::is_scalar))
    fail(Category::bad_argument, t.op.name, "at least one operand must be a tensor", where);
  const Device device = device_of(operands);
  bool number_allowed = t.op.has_scalar_operand;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_scalar() && number_allowed) {
      out.scalar = fitted(operands[i].scalar(), dtype);
      number_allowed = false;  // the attribute holds one
      continue;
    }
    Tensor x = operands[i].is_scalar() ? scalar_tensor(operands[i].scalar(), {dtype, device}, where)
                                       : operands[i].tensor();
    if (x.dtype() != dtype && static_cast<int>(i) >= t.first) x = to(Operand(x, where), dtype);
    if (x.dim() == 0 && x.device() == kCPU) x = to(Operand(x, where), device);
    out.tensors[i] = std::move(x);
    out.operands[i] = out.tensors[i].get();
  }
}

Tensor zero_chain(const Point& point, int i) { return zeros_of(point.type(i), point.where()); }

Tensor sum_over_repeats(Tensor gradient, const Shape& shape, SourceLocation where) {
  return sum_to(std::move(gradient), shape, where);
}

Tensor repeat_to(const Tensor& tangent, const Shape& shape, SourceLocation where) {
  return expand_to(Operand(tangent, where), shape);
}

Tensor multiply(const Tensor& g, Operand factor) { return mul(Operand(g, factor.where()), factor); }

Tensor plus(const Tensor& a, const Tensor& b) { return a.defined() ? add(a, b) : b; }

namespace op_detail {

void linear_jvp(TangentContext& c) {
  std::vector<TensorImpl*> operands;
  Tensors held;
  for (int i = 0; i < c.operands(); ++i) {
    held.push_back(c.has_operand(i) && is_floating(c.type(i).dtype) ? c.tangent_or_zeros(i) : Tensor());
    operands.push_back(held.back().defined() ? held.back().get() : c.call().operands[i]);
  }
  Call call = c.call();
  call.operands = operands;
  TensorList results(call.outputs);
  Emitter::current().emit(call, results.data());
  for (int i = 0; i < call.outputs; ++i) c.give(i, results[i]);
}

void bilinear_jvp(TangentContext& c) {
  Tensor sum;
  for (int i = 0; i < c.operands(); ++i) {
    if (!c.needs(i)) continue;
    std::vector<TensorImpl*> operands(c.call().operands.begin(), c.call().operands.end());
    operands[i] = c.tangent(i).get();
    Call call = c.call();
    call.operands = operands;
    Tensor term;
    Emitter::current().emit(call, &term);
    sum = plus(sum, term);
  }
  c.give(0, sum);
}

}  // namespace op_detail
}  // namespace retrograd::ops
