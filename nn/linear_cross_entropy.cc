// See nn/linear_cross_entropy.h.
#include "nn/linear_cross_entropy.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "hooks/checkpoint_rows.h"
#include "ops/creation.h"
#include "ops/loss_reduction.h"
#include "ops/losses.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::nn {
namespace {

constexpr const char* kTiledLossOp = "linear_cross_entropy";

// The layer in front of the loss: logits (N, C, d1, ..., dk) of rows (N, in).
class Logits {
 public:
  Logits(const Tensor& weight, const Tensor& bias, SourceLocation where) {
    if (weight.impl().rank() < 2)
      fail(Category::bad_dim, kTiledLossOp, "the weight of the layer has no dims (classes, features)", where);
    of_row_ = weight.impl().shape();
    in_features_ = of_row_.back();
    of_row_.resize(of_row_.rank() - 1);
    if (bias.defined() && !(bias.impl().shape() == of_row_))
      fail(Category::shape_mismatch, kTiledLossOp,
           fmt::format("the bias of the layer has shape {} for logits {} of a row",
                       to_string(bias.impl().shape()), to_string(of_row_)),
           where);
    weight_ = reshape(weight, {outputs(), in_features_});
    if (bias.defined()) bias_ = reshape(bias, {outputs()});
  }

  Tensor operator()(const Tensor& rows) const {
    const Tensor flat = linear(rows, weight_, bias_);
    if (of_row_.rank() == 1) return flat;
    Shape shape = rows.impl().shape();
    shape.resize(shape.rank() - 1);
    for (Dim d : of_row_) shape.push_back(d);
    return reshape(flat, shape);
  }

  /// As many rows as make their logits about as large as all `rows` of the input, and not too few for the products.
  int64_t balanced(int64_t rows) const {
    constexpr uint64_t kFewest = 128;
    const auto ceil_div = [](int64_t a, int64_t b) { return a / b + (a % b != 0); };
    const int64_t classes = of_row_[0].value(), features = in_features_.value();
    if (rows == 0 || classes == 0 || features == 0) return kFewest;
    const int64_t wanted = ceil_div(rows, ceil_div(classes, features));
    return static_cast<int64_t>(std::max(std::bit_ceil(static_cast<uint64_t>(wanted)), kFewest));
  }

 private:
  Dim outputs() const { return of_row_.numel(); }

  Shape of_row_;  // (C, d1, ..., dk)
  Dim in_features_ = 0;
  Tensor weight_, bias_;  // (outputs, in), (outputs)
};

// The sum of the weights of the targets' classes, without those that are ignored: what a mean divides by.
Tensor counted_weight(const Tensor& losses, const Tensor& target, const Tensor& weight, Dim classes,
                      int64_t ignore_index) {
  Shape shape = target.impl().shape();
  shape.insert(1, classes);
  const Tensor minus_one = full({}, -1.0, TensorOptions(losses.dtype()).device(losses.device()));
  return nll_loss(expand(minus_one, shape), target, weight, "sum", ignore_index);
}

}  // namespace

namespace functional {

Tensor linear_cross_entropy(Operand input, const Tensor& linear_weight, const Tensor& target,
                            const Tensor& linear_bias, const Tensor& weight, LossReduction reduction,
                            int64_t ignore_index, Scalar label_smoothing,
                            const std::optional<LinearCrossEntropyOptions>& options) {
  const NamedCall call(kTiledLossOp, input.where());
  const Tensor& x = input.tensor();
  const Logits logits(linear_weight, linear_bias, input.where());
  const auto loss_of = [&](const Tensor& rows, const Tensor& wanted, LossReduction reduced) {
    return cross_entropy(logits(rows), wanted, weight, reduced, ignore_index, label_smoothing);
  };
  const int64_t rows = x.impl().rank() < 2 ? 1 : x.size(0);
  const int64_t at_a_time =
      options ? options->batch_chunk_size.value_or(logits.balanced(rows)) : std::max<int64_t>(rows, 1);
  if (at_a_time < 1)
    fail(Category::bad_argument, kTiledLossOp, fmt::format("batch_chunk_size is {}", at_a_time),
         input.where());
  if (at_a_time >= rows) return loss_of(x, target, reduction);

  const ops::Averaging averaging = ops::parse_reduction(reduction, kTiledLossOp, input.where());
  const Tensor losses =
      checkpoint_rows([&](const Tensors& piece) { return loss_of(piece[0], piece[1], "none"); }, {x, target},
                      at_a_time, {}, input.where());
  if (averaging == ops::Averaging::none) return losses;
  if (averaging == ops::Averaging::sum) return sum(losses);
  if (is_floating(target.dtype())) return mean(losses);
  return sum(losses) / counted_weight(losses, target, weight, linear_weight.impl().shape()[0], ignore_index);
}

}  // namespace functional

LinearCrossEntropyLoss::LinearCrossEntropyLoss(Module* parent, std::string name, int64_t in_features,
                                               int64_t num_classes, LinearCrossEntropyLossOptions options)
    : Layer(parent, std::move(name)),
      in_features(in_features),
      num_classes(num_classes),
      options(std::move(options)),
      linear(this, "linear", in_features, Shape(logits_of_row()).numel().value(),
             {.bias = this->options.bias}),
      weight(this, "weight", detail::sharing(this->options.weight)) {}

IntArray LinearCrossEntropyLoss::logits_of_row() const {
  IntArray sizes{num_classes};
  sizes.insert(sizes.end(), options.out_features.begin(), options.out_features.end());
  return sizes;
}

Tensor LinearCrossEntropyLoss::forward(Operand input, const Tensor& target) const {
  const NamedCall call(kTiledLossOp, input.where());
  const Shape of_row(logits_of_row());
  Shape shape = of_row;
  shape.push_back(in_features);
  const Tensor bias = linear.bias.defined() ? reshape(linear.bias, of_row) : Tensor();
  return functional::linear_cross_entropy(input, reshape(linear.weight, shape), target, bias, weight,
                                          options.reduction, options.ignore_index, options.label_smoothing,
                                          options.options);
}

std::tuple<int64_t, int64_t, LinearCrossEntropyLossOptions> LinearCrossEntropyLoss::arguments() const {
  return {in_features, num_classes, options};
}

}  // namespace retrograd::nn
