// See nn/adaptive_softmax.h.
#include "nn/adaptive_softmax.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/bitwise.h"
#include "ops/comparison.h"
#include "ops/index_ops.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn {
namespace {

IntArray checked_cutoffs(IntArray cutoffs, int64_t n_classes, std::string_view type, SourceLocation where) {
  const bool ascending = std::ranges::adjacent_find(cutoffs, std::greater_equal()) == cutoffs.end();
  if (cutoffs.empty() || !ascending || cutoffs.front() < 1 || cutoffs.back() >= n_classes)
    fail(Category::bad_argument, type,
         fmt::format("cutoffs [{}] are not ascending from 1 to {}", fmt::join(cutoffs, ", "), n_classes - 1),
         where);
  return cutoffs;
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(Module* parent, std::string name, int64_t in_features,
                                                       int64_t n_classes, IntArray cutoffs,
                                                       AdaptiveLogSoftmaxWithLossOptions options,
                                                       SourceLocation where)
    : Layer(parent, std::move(name)),
      in_features(in_features),
      n_classes(n_classes),
      cutoffs(checked_cutoffs(std::move(cutoffs), n_classes, type_name, where)),
      options(options),
      head(this, "head", in_features, shortlist() + static_cast<int64_t>(this->cutoffs.size()),
           {.bias = options.head_bias}),
      tail(this, "tail") {
  double narrowed = static_cast<double>(in_features);
  for (size_t i = 0; i < this->cutoffs.size(); ++i) {
    narrowed /= options.div_value;
    tail.emplace_back(in_features, static_cast<int64_t>(narrowed), end(i) - first(i));
  }
}

Tensor AdaptiveLogSoftmaxWithLoss::cluster_log_prob(size_t cluster, const Tensor& input) const {
  return log_softmax(tail[cluster].score(tail[cluster].project(input)), 1);
}

AdaptiveLogSoftmaxOutput AdaptiveLogSoftmaxWithLoss::forward(Operand input, const Tensor& target) const {
  const CallScope scope(input.where());
  const Tensor& x = input.defined_tensor(type_name);
  if (x.dim() != 1 && x.dim() != 2)
    fail(Category::bad_dim, type_name, "1 or 2 dims are needed, not " + describe(x), input.where());
  if (x.dim() == 1) {
    const auto [output, loss] = forward(unsqueeze(x, 0), unsqueeze(target, 0));
    return {squeeze(output, {0}), loss};
  }
  if (target.impl(type_name, input.where()).shape() != Shape{x.sym_size(0)})
    fail(Category::shape_mismatch, type_name,
         fmt::format("{} does not have a target for each row of {}", describe(target), describe(x)),
         input.where());

  // A target of a cluster is the cluster's entry of the head, and an entry in the cluster. One that is no class has no
  // entry in the head, which has no more of them than there are classes.
  Tensor entry = target, output;
  for (size_t i = 0; i < cutoffs.size(); ++i) {
    const Tensor inside = logical_and(ge(target, first(i)), lt(target, end(i)));
    const Tensor place = clamp(sub(target, first(i)), 0, end(i) - first(i) - 1);
    const Tensor local = squeeze(gather(cluster_log_prob(i, x), 1, unsqueeze(place, 1)), {1});
    const Tensor counted = where(inside, local, 0);
    output = output.defined() ? output + counted : counted;
    entry = where(inside, shortlist() + static_cast<int64_t>(i), entry);
  }
  output = output + squeeze(gather(log_softmax(head(x), 1), 1, unsqueeze(entry, 1)), {1});
  return {output, neg(mean(output))};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(Operand input) const {
  const CallScope scope(input.where());
  const Tensor& x = input.defined_tensor(type_name);
  const Tensor scores = log_softmax(head(x), 1);
  Tensors parts{narrow(scores, 1, 0, shortlist())};
  for (size_t i = 0; i < cutoffs.size(); ++i)
    parts.push_back(cluster_log_prob(i, x) + narrow(scores, 1, shortlist() + static_cast<int64_t>(i), 1));
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(Operand input) const {
  const CallScope scope(input.where());
  if (input.defined_tensor(type_name).dim() == 1)
    return squeeze(argmax(log_prob(unsqueeze(input, 0)), 1), {0});
  return argmax(log_prob(input), 1);
}

std::tuple<int64_t, int64_t, IntArray, AdaptiveLogSoftmaxWithLossOptions>
AdaptiveLogSoftmaxWithLoss::arguments() const {
  return {in_features, n_classes, cutoffs, options};
}

}  // namespace retrograd::nn
