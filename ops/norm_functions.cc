// The public functions of ops/norms.h: each converts its input to the form of `normalize`.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "ops/arithmetic.h"

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/family_parts.h"
#include "ops/norms.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {
namespace {

struct Normalized {
  Tensor y, mean, rstd;
};

Normalized normalize(const Tensor& x, const Tensor& weight, const Tensor& bias, ops::NormalizeAttrs attrs,
                     SourceLocation where) {
  TensorImpl* operands[] = {x.get(), weight.get(), bias.get()};
  Tensor results[3];
  Emitter::current().emit({&ops::info<ops::Normalize>, operands, &attrs, effective_location(where), 3},
                          results);
  return {results[0], results[1], results[2]};
}

IntList dims_from(int first, int rank) {
  IntList dims;
  for (int d = first; d < rank; ++d) dims.push_back(d);
  return dims;
}

// The last dims, whose sizes must be `normalized_shape`.
IntList last_dims(Operand x, const Shape& normalized_shape, std::string_view op) {
  const Shape& shape = x.tensor().impl().shape();
  const int skip = shape.rank() - normalized_shape.rank();
  if (normalized_shape.empty()) fail(Category::bad_argument, op, "normalized_shape is empty", x.where());
  bool fits = skip >= 0;
  for (int i = 0; fits && i < normalized_shape.rank(); ++i) fits = shape[skip + i] == normalized_shape[i];
  if (!fits)
    fail(Category::shape_mismatch, op,
         fmt::format("the last dims of {} are not {}", to_string(shape), to_string(normalized_shape)),
         x.where());
  return dims_from(skip, shape.rank());
}

// The epsilon of the dtype that is computed in: 16-bit floats are accumulated in float32.
double machine_epsilon(ScalarType dtype) {
  return dtype == kFloat64 ? std::numeric_limits<double>::epsilon()
                           : double{std::numeric_limits<float>::epsilon()};
}

// An input and its parameters, in the dtype to compute in: the input's own, which the parameters share, or float32 when
// the input has 16 bits and the parameters are float32. `back` converts the result to the input's dtype.
class Wide {
 public:
  Wide(Operand x, std::initializer_list<const Tensor*> parameters, std::string_view op)
      : tensor_(x.tensor()), where_(x.where()), dtype_(tensor_.dtype()) {
    const auto all_have = [&](ScalarType dtype) {
      return std::ranges::all_of(parameters,
                                 [&](const Tensor* p) { return !p->defined() || p->dtype() == dtype; });
    };
    if (all_have(dtype_)) return;
    if ((dtype_ != kFloat16 && dtype_ != kBFloat16) || !all_have(kFloat32))
      fail(Category::dtype_mismatch, op,
           fmt::format("the parameters of {} are neither all of its dtype nor, for 16 bits, float32",
                       describe(tensor_)),
           where_);
    tensor_ = to(x, kFloat32);
  }
  Operand input() const { return Operand(tensor_, where_); }
  Tensor back(const Tensor& y) const { return to(Operand(y, where_), dtype_); }

 private:
  Tensor tensor_;
  SourceLocation where_;
  ScalarType dtype_;
};

// A parameter with one value per channel, for an input [N, C, ...].
class Channels {
 public:
  Channels(Operand x, std::string_view op) : x_(x), op_(op) {
    const Shape& shape = x.tensor().impl().shape();
    if (shape.rank() < 2)
      fail(Category::bad_dim, op, fmt::format("the input has shape {}, not [N, C, ...]", to_string(shape)),
           x.where());
    count_ = shape[1];
  }
  Dim count() const { return count_; }

  void check(const Tensor& parameter, std::string_view name) const {
    if (parameter.defined() && !(parameter.impl().shape() == Shape{count_}))
      fail(Category::shape_mismatch, op_,
           fmt::format("{} has shape {}, and the input {} channels", name,
                       to_string(parameter.impl().shape()), to_string(count_)),
           x_.where());
  }

  /// As [1, C, 1, ...], which broadcasts.
  Tensor spread(const Tensor& parameter) const {
    Shape shape{1, count_};
    shape.resize(x_.tensor().impl().rank());
    return reshape_to(parameter, shape);
  }

 private:
  Operand x_;
  std::string_view op_;
  Dim count_ = 0;
};

// running += momentum * (value - running), without a record.
void move_towards(const Tensor& running, const Tensor& value, Scalar momentum) {
  if (!running.defined()) return;
  NoGradGuard no_grad;
  running.mul_(Scalar(1.0) - momentum);
  running.add_(reshape_to(to(value.detach(), running.dtype()), running.impl().shape()), momentum);
}

// x * scale + shift: one pass over x, in float for 16-bit formats.
Tensor normalize_by(Operand x, const Channels& channels, const Tensor& mean, const Tensor& variance,
                    const Tensor& weight, const Tensor& bias, Scalar eps, std::string_view op) {
  if (!mean.defined() || !variance.defined())
    fail(Category::bad_argument, op, "there are no running statistics", x.where());
  const ScalarType dtype = x.tensor().dtype(), wide = ops::wide_dtype(dtype);
  const auto spread = [&](const Tensor& t) { return to(channels.spread(t), wide); };
  Tensor scale = rsqrt(add(spread(detach(variance)), eps));
  if (weight.defined()) scale = mul(scale, spread(weight));
  const Tensor back = mul(spread(detach(mean)), scale);
  const Tensor shift = bias.defined() ? sub(spread(bias), back) : neg(back);
  const Tensor y = addcmul(Operand(shift, x.where()), to(x, wide), scale);
  return to(Operand(y, x.where()), dtype);
}

struct ChannelParameters {
  const Tensor &running_mean, &running_var, &weight, &bias;
};

// Normalises an [N, C, ...] input over `dims`, and moves the running statistics towards its own, averaged over samples.
Tensor normalize_by_input(Operand x, const Channels& channels, const IntList& dims,
                          const ChannelParameters& p, Scalar momentum, Scalar eps, std::string_view op) {
  const Dim n = ops::reduced_numel(x.tensor().impl().shape(), dims);
  if (n == Dim(1))
    fail(Category::bad_argument, op, "more than one value per channel is needed to train", x.where());
  const Normalized normalized =
      normalize(x.tensor(), p.weight, p.bias, {dims, eps, true, true, {1}}, x.where());
  if (n == Dim(0)) return normalized.y;  // no values: the running statistics stay
  NoGradGuard no_grad;
  const auto by_channel = [&](const Tensor& stat) {  // kept dims have size 1, or are samples
    return mean(reshape_to(stat, {stat.impl().shape()[0], channels.count()}), {0});
  };
  if (p.running_mean.defined()) move_towards(p.running_mean, by_channel(normalized.mean), momentum);
  if (p.running_var.defined())
    move_towards(p.running_var, by_channel(var(x.tensor().detach(), dims, 1, true)), momentum);
  return normalized.y;
}

}  // namespace

Tensor layer_norm(Operand x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  Scalar eps) {
  const NamedCall call("layer_norm", x.where());
  const ops::AutocastFunction cast(CastPolicy::float32, {&x.tensor(), &weight, &bias});
  const Tensor input = cast(x), scale = cast(weight), shift = cast(bias);
  const IntList dims = last_dims(x, normalized_shape, "layer_norm");
  const Wide wide(Operand(input, x.where()), {&scale, &shift}, "layer_norm");
  return wide.back(
      normalize(wide.input().tensor(), scale, shift, {dims, eps, true, true, dims}, x.where()).y);
}

// The weight has any floating dtype.
Tensor rms_norm(Operand x, const Shape& normalized_shape, const Tensor& weight, std::optional<Scalar> eps) {
  const NamedCall call("rms_norm", x.where());
  const ops::AutocastFunction cast(CastPolicy::float32, {&x.tensor(), &weight});
  const Tensor input = cast(x), scale = cast(weight);
  const IntList dims = last_dims(x, normalized_shape, "rms_norm");
  const ScalarType dtype = input.dtype();
  const ops::NormalizeAttrs attrs{dims, eps.value_or(machine_epsilon(dtype)), false, false, dims};
  if (!scale.defined() || scale.dtype() == dtype || !is_floating(dtype) || !is_floating(scale.dtype()))
    return normalize(input, scale, {}, attrs, x.where()).y;
  const ScalarType common = promote_types(promote_types(dtype, scale.dtype()), kFloat32);
  const Tensor y = normalize(to(input, common), to(scale, common), {}, attrs, x.where()).y;
  return to(Operand(y, x.where()), dtype);
}

// Over the last two dims of [N, groups, C / groups, ...].
Tensor group_norm(Operand x, int64_t num_groups, const Tensor& weight, const Tensor& bias, Scalar eps) {
  const NamedCall call("group_norm", x.where());
  const Channels channels(x, "group_norm");
  if (num_groups <= 0 || !(channels.count() % Dim(num_groups) == Dim(0)))
    fail(Category::bad_argument, "group_norm",
         fmt::format("{} channels do not make {} groups", to_string(channels.count()), num_groups),
         x.where());
  channels.check(weight, "weight");
  channels.check(bias, "bias");
  const ops::AutocastFunction cast(CastPolicy::float32, {&x.tensor(), &weight, &bias});
  const Tensor input = cast(x), scale = cast(weight), shift = cast(bias);
  const Wide wide(Operand(input, x.where()), {&scale, &shift}, "group_norm");
  const Shape shape = x.tensor().impl().shape();
  const Shape by_group{num_groups, channels.count() / Dim(num_groups)};
  Shape grouped{shape[0], by_group[0], by_group[1]};
  Dim rest = 1;
  for (int d = 2; d < shape.rank(); ++d) rest *= shape[d];
  grouped.push_back(rest);
  const auto spread = [&](const Tensor& p) { return p.defined() ? reshape_to(p, by_group) : p; };
  const Normalized normalized = normalize(reshape_to(wide.input(), grouped), spread(scale), spread(shift),
                                          {{2, 3}, eps, true, false, {1, 2}}, x.where());
  return wide.back(reshape_to(normalized.y, shape));
}

namespace {

// batch_norm and instance_norm: `dims` are the dims for the input's own statistics, if these are used.
Tensor normalize_channels(Operand x, const ChannelParameters& p, std::optional<IntList> dims, Scalar momentum,
                          Scalar eps, std::string_view op) {
  const Channels channels(x, op);
  channels.check(p.running_mean, "running_mean");
  channels.check(p.running_var, "running_var");
  channels.check(p.weight, "weight");
  channels.check(p.bias, "bias");
  const Wide wide(x, {&p.running_mean, &p.running_var, &p.weight, &p.bias}, op);
  const Operand in = wide.input();
  return wide.back(
      dims ? normalize_by_input(in, channels, *dims, p, momentum, eps, op)
           : normalize_by(in, channels, p.running_mean, p.running_var, p.weight, p.bias, eps, op));
}

}  // namespace

Tensor batch_norm(Operand x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, Scalar momentum, Scalar eps) {
  const NamedCall call("batch_norm", x.where());
  std::optional<IntList> dims;
  if (training) {
    dims = dims_from(1, std::max(x.tensor().impl().rank(), 2));
    (*dims)[0] = 0;
  }
  return normalize_channels(x, {running_mean, running_var, weight, bias}, dims, momentum, eps, "batch_norm");
}

Tensor instance_norm(Operand x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_var, bool use_input_stats, Scalar momentum, Scalar eps) {
  const NamedCall call("instance_norm", x.where());
  std::optional<IntList> dims;
  if (use_input_stats) dims = dims_from(2, x.tensor().impl().rank());
  return normalize_channels(x, {running_mean, running_var, weight, bias}, dims, momentum, eps,
                            "instance_norm");
}

}  // namespace retrograd
