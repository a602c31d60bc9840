// linear_cross_entropy: the cross entropy of the logits of a linear layer, without the logits of the whole batch
// (PyTorch: torch.nn.functional.linear_cross_entropy, torch.nn.LinearCrossEntropyLoss).
//
//   Tensor loss = nn::functional::linear_cross_entropy(x, weight, target, {}, {}, "mean", -100, 0.0,
//                                                      nn::LinearCrossEntropyOptions{});
//
// With options, some rows go through product and loss at a time, and again in the backward (hooks/checkpoint_rows.h): a
// language model's logits, rows x vocabulary, never exist. That costs the product once more. It is the same function in
// every other respect: derivatives of any order, forward mode, recorded functions. Losses of rows are those of the
// whole; gradients of weight and bias are summed piece by piece. As a checkpoint it may contain a vmap, but not be
// inside of one.
#pragma once

#include <optional>

#include "nn/linear.h"
#include "ops/loss_options.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct LinearCrossEntropyOptions {
  /// Rows at a time. Default: as many as make the logits of a piece about as large as the input, by PyTorch's rule: the
  /// power of two from N / (C / in_features) on; but at least 128, since each piece adds a gradient of the weight.
  std::optional<int64_t> batch_chunk_size = {};
};

namespace functional {

/// cross_entropy(linear(input, linear_weight, linear_bias), target, weight, reduction, ignore_index, label_smoothing).
/// input (N, in) or (in); linear_weight (C, in), or (C, d1, ..., dk, in) for targets (N, d1, ..., dk); linear_bias (C)
/// or (C, d1, ..., dk). One sample without N, and N of a single piece, are computed as they are. Errors: those of the
/// two functions; shape_mismatch of input and weight; bad_argument for batch_chunk_size < 1.
Tensor linear_cross_entropy(Operand input, const Tensor& linear_weight, const Tensor& target,
                            const Tensor& linear_bias = {}, const Tensor& weight = {},
                            LossReduction reduction = "mean", int64_t ignore_index = -100,
                            Scalar label_smoothing = 0.0,
                            const std::optional<LinearCrossEntropyOptions>& options = {});

}  // namespace functional

struct LinearCrossEntropyLossOptions {
  IntArray out_features = {};  // d1, ..., dk
  bool bias = false;
  Tensor weight = {};  // of the classes
  std::string reduction = "mean";
  int64_t ignore_index = -100;
  double label_smoothing = 0.0;
  std::optional<LinearCrossEntropyOptions> options = {};
};

/// The function with its layer: linear.weight [C d1 ... dk, in], linear.bias [C d1 ... dk], as in PyTorch. The weights
/// of the classes are a buffer.
class LinearCrossEntropyLoss : public Layer<LinearCrossEntropyLoss> {
 public:
  static constexpr std::string_view type_name = "LinearCrossEntropyLoss";
  LinearCrossEntropyLoss(Module* parent, std::string name, int64_t in_features, int64_t num_classes,
                         LinearCrossEntropyLossOptions options = {});
  Tensor forward(Operand input, const Tensor& target) const;
  std::tuple<int64_t, int64_t, LinearCrossEntropyLossOptions> arguments() const;

  const int64_t in_features, num_classes;
  const LinearCrossEntropyLossOptions options;
  Linear linear;
  Buffer weight;

 private:
  /// (C, d1, ..., dk).
  IntArray logits_of_row() const;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
