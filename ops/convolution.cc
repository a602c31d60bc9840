// Type rules and derivatives of ops/convolution.h. The public functions are in ops/convolution_functions.cc.
#include "ops/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/batching.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

using Attrs = ConvolutionAttrs;

const Shape& shape_of(const Call& call, size_t operand) { return call.operands[operand]->shape(); }

// Two operands of equal rank, dtype and device, with attributes that fit them.
void check_operands(const Call& call) {
  const TensorImpl &a = *call.operands[0], &b = *call.operands[1];
  if (a.rank() < 3 || a.rank() > 5 || b.rank() != a.rank())
    fail_call(call, Category::bad_dim, "operands need a batch, channels and one to three spatial dims");
  for (const TensorImpl* x : call.operands) {
    if (!x) continue;
    if (x->dtype() != a.dtype()) fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
    if (x->dtype() == kBool || is_float8(x->dtype()))
      fail_call(call, Category::dtype_mismatch, "convolutions of this dtype are not supported");
    if (!(x->device() == a.device()))
      fail_call(call, Category::bad_argument, "operands are on different devices");
  }
  const Attrs& attrs = call.attrs_as<Attrs>();
  const int spatial = a.rank() - 2;
  const auto fits = [&](const IntList& list, int64_t least) {
    return list.size() == spatial &&
           std::ranges::all_of(list, [&](int64_t v) { return v >= least && v <= INT32_MAX; });
  };
  if (!fits(attrs.stride, 1) || !fits(attrs.dilation, 1) || !fits(attrs.padding, 0) || attrs.groups < 1 ||
      attrs.size.rank() != spatial)
    fail_call(call, Category::bad_argument, "stride, padding, dilation, groups or size are out of range");
}

void check_groups(const Call& call, Dim channels, std::string_view what) {
  const int64_t groups = call.attrs_as<Attrs>().groups;
  if (channels < Dim(groups) || !(channels % Dim(groups) == Dim(0)))
    fail_call(call, Category::shape_mismatch,
              fmt::format("{} {} do not make {} groups", to_string(channels), what, groups));
}

void check_channels(const Call& call, Dim input, Dim weight) {
  if (!(input == weight))
    fail_call(
        call, Category::shape_mismatch,
        fmt::format("the input has {} channels, and the weight {}", to_string(input), to_string(weight)));
}

void check_bias(const Call& call, Dim channels) {
  if (call.operands[2] && !(shape_of(call, 2) == Shape{channels}))
    fail_call(call, Category::shape_mismatch,
              fmt::format("a bias of {} values is needed", to_string(channels)));
}

void set_result(const Call& call, TensorImpl& out, Dim first, Dim second) {
  Shape shape{first, second};
  for (Dim d : call.attrs_as<Attrs>().size) shape.push_back(d);
  check_sizes(call, shape);
  out.set_type(call.operands[0]->dtype(), call.operands[0]->device(), shape);
}

Shape spatial_dims(const Shape& shape) {
  return Shape(std::span(shape.begin() + 2, static_cast<size_t>(shape.rank() - 2)));
}

// The op of the family whose result has the spatial dims of `like`.
template <class Op>
Tensor convolve(const Tensor& a, const Tensor& b, const Tensor& bias, Attrs attrs, const Shape& like,
                SourceLocation where) {
  attrs.size = spatial_dims(like);
  return emit<Op>({a.get(), b.get(), bias.get()}, attrs, where);
}
Tensor weight_gradient(const Tensor& x, const Tensor& g, Attrs attrs, const Shape& like,
                       SourceLocation where) {
  attrs.size = spatial_dims(like);
  return emit<ConvolutionWeight>({x.get(), g.get()}, attrs, where);
}

Tensor sum_but_channels(const Tensor& g, SourceLocation where) {
  IntList dims{0};
  for (int d = 2; d < g.impl().rank(); ++d) dims.push_back(d);
  return sum(Operand(g, where), dims);
}

// A value per channel as (1, channels, 1, ...), repeated to `shape`.
Tensor spread(const Tensor& bias, const Shape& shape, SourceLocation where) {
  Shape column{1, bias.impl().shape()[0]};
  column.resize(shape.rank());
  return expand_to(reshape_to(Operand(bias, where), column), shape);
}

// Derivatives of one of the two biased ops; Other is the other one. `large_input`: its input is the large side, which
// is the first operand in the weight's gradient.
template <class Other>
void biased_vjp(RuleContext& c, bool large_input) {
  const Attrs& attrs = c.attrs<Attrs>();
  const Tensor& g = c.grad();
  if (c.needs(0)) c.give(0, convolve<Other>(g, c.in(1).tensor(), {}, attrs, c.type(0).shape, c.where()));
  if (c.needs(1)) {
    const Tensor x = c.in(0).tensor();
    c.give(1, weight_gradient(large_input ? x : g, large_input ? g : x, attrs, c.type(1).shape, c.where()));
  }
  if (c.has_operand(2) && c.needs(2)) c.give(2, sum_but_channels(g, c.where()));
}

template <class Op>
void biased_jvp(TangentContext& c) {
  const Attrs& attrs = c.attrs<Attrs>();
  const Shape shape = c.out_type().shape;
  const Tensor& bias = c.tangent(2);
  Tensor sum;
  if (c.needs(0)) sum = convolve<Op>(c.tangent(0), c.in(1).tensor(), bias, attrs, shape, c.where());
  if (c.needs(1))
    sum = plus(sum, convolve<Op>(c.in(0).tensor(), c.tangent(1), c.needs(0) ? Tensor() : bias, attrs, shape,
                                 c.where()));
  c.give(0, sum.defined() ? sum : spread(bias, shape, c.where()));
}

}  // namespace

SaveSet BiasedConvolution::saves_for(const Call&, uint64_t wants) {
  return {(wants & 1) << 1 | (wants >> 1 & 1), 0};
}

void Convolution::infer(const Call& call, TensorImpl* const* outputs) {
  check_operands(call);
  const Shape &x = shape_of(call, 0), &weight = shape_of(call, 1);
  check_groups(call, weight[0], "features");
  check_channels(call, x[1], weight[1] * Dim(call.attrs_as<Attrs>().groups));
  check_bias(call, weight[0]);
  set_result(call, *outputs[0], x[0], weight[0]);
}
void Convolution::vjp(RuleContext& c) { biased_vjp<ConvolutionTranspose>(c, true); }
void Convolution::jvp(TangentContext& c) { biased_jvp<Convolution>(c); }

void ConvolutionTranspose::infer(const Call& call, TensorImpl* const* outputs) {
  check_operands(call);
  const Shape &x = shape_of(call, 0), &weight = shape_of(call, 1);
  check_groups(call, weight[0], "channels");
  check_channels(call, x[1], weight[0]);
  const Dim features = weight[1] * Dim(call.attrs_as<Attrs>().groups);
  check_bias(call, features);
  set_result(call, *outputs[0], x[0], features);
}
void ConvolutionTranspose::vjp(RuleContext& c) { biased_vjp<Convolution>(c, false); }
void ConvolutionTranspose::jvp(TangentContext& c) { biased_jvp<ConvolutionTranspose>(c); }

void ConvolutionWeight::infer(const Call& call, TensorImpl* const* outputs) {
  check_operands(call);
  const Shape &x = shape_of(call, 0), &g = shape_of(call, 1);
  if (!is_floating(call.operands[0]->dtype()))
    fail_call(call, Category::dtype_mismatch, "gradients are of floating dtypes");
  if (!(x[0] == g[0])) fail_call(call, Category::shape_mismatch, "batch sizes differ");
  check_groups(call, g[1], "features");
  const Dim groups = call.attrs_as<Attrs>().groups;
  if (!(x[1] % groups == Dim(0))) fail_call(call, Category::shape_mismatch, "channels do not make groups");
  set_result(call, *outputs[0], g[1], x[1] / groups);
}

Tensor ConvolutionWeight::transpose(RuleContext& c, int i, const Tensor& g) {
  const Attrs& attrs = c.attrs<Attrs>();
  const Tensor other = c.in(1 - i).tensor();
  return i == 0 ? convolve<ConvolutionTranspose>(other, g, {}, attrs, c.type(0).shape, c.where())
                : convolve<Convolution>(other, g, {}, attrs, c.type(1).shape, c.where());
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

// The groups of all samples are groups of one convolution.
Attrs grouped(const BatchContext& c) {
  Attrs attrs = c.attrs<Attrs>();
  attrs.groups = Dim::checked_mul(attrs.groups, c.size().value());
  return attrs;
}

// No samples make no groups.
bool give_no_samples(BatchContext& c) {
  if (c.size().raw() != 0) return false;
  const TensorType& type = c.out_type();
  c.give(0, zeros_of({type.dtype, type.device, c.with_batch(type.shape)}, c.where()));
  return true;
}

// With one weight the samples are samples of one convolution; with one for each, they are groups of it. `shares_input`:
// features of one input need no groups, where the weight's dim 0 is the features.
void batch_convolution(BatchContext& c, bool shares_input) {
  const SourceLocation where = c.where();
  if (!c.is_batched(1)) {
    const bool has_biases = c.is_batched(2);
    const Tensor operands[] = {fold(c.all(0), where), c.value(1), has_biases ? Tensor() : c.value(2)};
    Tensor result = unfold_first(c.run(operands)[0], c.size(), c.shape(0)[0], where);
    if (has_biases) {
      Shape column{c.size(), 1, c.shape(2)[0]};
      column.resize(result.impl().rank());
      result = add(Operand(result, where), reshape_to(Operand(c.value(2), where), column));
    }
    return c.give(0, result);
  }
  if (give_no_samples(c)) return;
  const bool is_shared = shares_input && !c.is_batched(0) && c.attrs<Attrs>().groups == 1;
  Attrs attrs = is_shared ? c.attrs<Attrs>() : grouped(c);
  const Tensor bias =
      c.has_operand(2) ? reshape_to(Operand(c.all(2), where), {c.size() * c.shape(2)[0]}) : Tensor();
  const Tensor operands[] = {is_shared ? c.value(0) : fold_second(c.all(0), where), fold(c.value(1), where),
                             bias};
  c.give(0, unfold_second(c.run(operands, &attrs)[0], c.size(), c.out_type().shape[1], where));
}

}  // namespace

void Convolution::batch(BatchContext& c) { batch_convolution(c, true); }
void ConvolutionTranspose::batch(BatchContext& c) { batch_convolution(c, false); }

void ConvolutionWeight::batch(BatchContext& c) {
  if (give_no_samples(c)) return;
  const SourceLocation where = c.where();
  const bool is_shared = !c.is_batched(0) && c.attrs<Attrs>().groups == 1;
  Attrs attrs = is_shared ? c.attrs<Attrs>() : grouped(c);
  const Tensor operands[] = {is_shared ? c.value(0) : fold_second(c.all(0), where),
                             fold_second(c.all(1), where)};
  c.give(0, unfold_first(c.run(operands, &attrs)[0], c.size(), c.out_type().shape[0], where));
}

}  // namespace ops

}  // namespace retrograd
