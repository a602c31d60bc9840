// Type rules, derivatives and public functions of ops/convolution.h.
#include "ops/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd {
namespace ops {
namespace {

using Attrs = ConvolutionAttrs;

const Shape& shape_of(const Call& call, size_t operand) { return call.operands[operand]->shape(); }

// Two operands of equal rank, dtype and device, and attributes that fit them.
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
    return list.size() == spatial && std::ranges::all_of(list, [&](int64_t v) { return v >= least; });
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
    fail_call(call, Category::shape_mismatch, fmt::format("a bias of {} values wanted", to_string(channels)));
}

void set_result(const Call& call, TensorImpl& out, Dim first, Dim second) {
  Shape shape{first, second};
  for (Dim d : call.attrs_as<Attrs>().size) shape.push_back(d);
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

// Of Op, the other of the two biased ops being Other. Of the weight's gradient the large side is the first operand.
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
  const Tensor bias = c.has_operand(2) && c.needs(2) ? c.tangent(2) : Tensor();
  Tensor sum;
  if (c.needs(0)) sum = convolve<Op>(c.tangent(0), c.in(1).tensor(), bias, attrs, shape, c.where());
  if (c.needs(1))
    sum = plus(sum, convolve<Op>(c.in(0).tensor(), c.tangent(1), c.needs(0) ? Tensor() : bias, attrs, shape,
                                 c.where()));
  c.give(0, sum.defined() || !bias.defined() ? sum : spread(bias, shape, c.where()));
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

}  // namespace ops

namespace {

// The arguments of a public function, checked and completed.
class Arguments {
 public:
  Arguments(std::string_view op, int spatial, Operand input, const Tensor& weight, int64_t groups)
      : op_(op), spatial_(spatial), where_(input.where()), x_(input.tensor()), weight_(weight) {
    const int rank = x_.dim();
    if (rank != spatial + 1 && rank != spatial + 2)
      refuse(Category::bad_dim, fmt::format("the input {} has not {} spatial dims", describe(x_), spatial));
    if (weight.dim() != spatial + 2)
      refuse(Category::bad_dim, fmt::format("the weight {} has not {} dims", describe(weight), spatial + 2));
    if (groups < 1) refuse(Category::bad_argument, "groups must be at least 1");
    single_ = rank == spatial + 1;
    if (single_) x_ = unsqueeze(Operand(x_, where_), 0);
    attrs_.groups = groups;
  }

  /// `list` with an entry for each spatial dim, all at least `least`.
  IntList each(IntList list, std::string_view what, int64_t least) const {
    if (list.size() == 1)
      for (int d = 1; d < spatial_; ++d) list.push_back(list[0]);
    if (list.size() != spatial_)
      refuse(Category::bad_argument, fmt::format("{} needs 1 or {} numbers", what, spatial_));
    if (std::ranges::any_of(list, [&](int64_t v) { return v < least; }))
      refuse(Category::bad_argument, fmt::format("{} must be at least {}", what, least));
    return list;
  }

  /// Sets stride, dilation and padding, by number or name.
  void set(const IntList& stride, const ConvPadding& padding, const IntList& dilation) {
    attrs_.stride = each(stride, "stride", 1);
    attrs_.dilation = each(dilation, "dilation", 1);
    const bool same = padding.name == "same";
    if (!padding.name.empty() && !same && padding.name != "valid")
      refuse(Category::bad_argument, fmt::format("no padding is called '{}'", padding.name));
    if (same && std::ranges::any_of(attrs_.stride, [](int64_t s) { return s != 1; }))
      refuse(Category::bad_argument, "padding 'same' needs stride 1");
    attrs_.padding = each(padding.name.empty() ? padding.sizes : IntList(0), "padding", 0);
    for (int d = 0; d < spatial_; ++d) {
      if (kernel(d) < Dim(1) || size(d) < Dim(1))
        refuse(Category::bad_argument, "the kernel or the input has no places");
      if (same) attrs_.padding[d] = (reach(d) / Dim(2)).value();
    }
    same_ = same;
  }

  Tensor convolution(const Tensor& bias) {
    for (int d = 0; d < spatial_; ++d) {
      const Dim last = size(d) + Dim(2 * attrs_.padding[d]) - reach(d) - Dim(1);
      if (!same_ && last < Dim(0))
        refuse(Category::bad_argument, "the kernel is larger than the padded input");
      attrs_.size.push_back(same_ ? size(d) : last / Dim(attrs_.stride[d]) + Dim(1));
    }
    return run<ops::Convolution>(bias);
  }

  Tensor transpose(const Tensor& bias, const IntList& output_padding) {
    const IntList extra = each(output_padding, "output_padding", 0);
    for (int d = 0; d < spatial_; ++d) {
      if (extra[d] >= std::max(attrs_.stride[d], attrs_.dilation[d]))
        refuse(Category::bad_argument, "output_padding must be less than stride or dilation");
      const Dim places = (size(d) - Dim(1)) * Dim(attrs_.stride[d]) - Dim(2 * attrs_.padding[d]) + reach(d) +
                         Dim(extra[d] + 1);
      if (places < Dim(1)) refuse(Category::bad_argument, "no place of the result is left");
      attrs_.size.push_back(places);
    }
    return run<ops::ConvolutionTranspose>(bias);
  }

 private:
  [[noreturn]] void refuse(Category category, std::string_view text) const {
    fail(category, op_, text, where_);
  }
  Dim size(int d) const { return x_.impl().shape()[d + 2]; }
  Dim kernel(int d) const { return weight_.impl().shape()[d + 2]; }
  /// How far the last place of the kernel is from the first.
  Dim reach(int d) const { return (kernel(d) - Dim(1)) * Dim(attrs_.dilation[d]); }

  template <class Op>
  Tensor run(const Tensor& bias) const {
    const Tensor y = ops::emit<Op>({x_.get(), weight_.get(), bias.get()}, attrs_, where_);
    return single_ ? squeeze(Operand(y, where_), {0}) : y;
  }

  std::string_view op_;
  int spatial_;
  SourceLocation where_;
  Tensor x_;
  const Tensor& weight_;
  ops::ConvolutionAttrs attrs_;
  bool single_, same_ = false;
};

Tensor conv(std::string_view op, int spatial, Operand input, const Tensor& weight, const Tensor& bias,
            const IntList& stride, const ConvPadding& padding, const IntList& dilation, int64_t groups) {
  Arguments arguments(op, spatial, input, weight, groups);
  arguments.set(stride, padding, dilation);
  return arguments.convolution(bias);
}

Tensor conv_transpose(std::string_view op, int spatial, Operand input, const Tensor& weight,
                      const Tensor& bias, const IntList& stride, const IntList& padding,
                      const IntList& output_padding, int64_t groups, const IntList& dilation) {
  Arguments arguments(op, spatial, input, weight, groups);
  arguments.set(stride, padding, dilation);
  return arguments.transpose(bias, output_padding);
}

}  // namespace

Tensor conv1d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
              const ConvPadding& padding, const IntList& dilation, int64_t groups) {
  return conv("conv1d", 1, x, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
              const ConvPadding& padding, const IntList& dilation, int64_t groups) {
  return conv("conv2d", 2, x, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
              const ConvPadding& padding, const IntList& dilation, int64_t groups) {
  return conv("conv3d", 3, x, weight, bias, stride, padding, dilation, groups);
}

Tensor conv_transpose1d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
                        const IntList& padding, const IntList& output_padding, int64_t groups,
                        const IntList& dilation) {
  return conv_transpose("conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups,
                        dilation);
}
Tensor conv_transpose2d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
                        const IntList& padding, const IntList& output_padding, int64_t groups,
                        const IntList& dilation) {
  return conv_transpose("conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups,
                        dilation);
}
Tensor conv_transpose3d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
                        const IntList& padding, const IntList& output_padding, int64_t groups,
                        const IntList& dilation) {
  return conv_transpose("conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups,
                        dilation);
}

}  // namespace retrograd
