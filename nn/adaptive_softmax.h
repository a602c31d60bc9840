// AdaptiveLogSoftmaxWithLoss: a softmax over many classes, of which few are frequent (Grave et al. 2017). Classes are
// numbered by frequency and cut into a shortlist and clusters. The head scores the shortlist and the clusters; each
// cluster scores its classes from a projection of the input, which is the narrower the rarer they are.
//
// Names and shapes of parameters are PyTorch's: head.weight, tail.0.0.weight [width, in], tail.0.1.weight [classes,
// width], ... All clusters are computed for all rows, so that no size depends on the targets and the module can be
// recorded: rows are not selected, as they are in PyTorch.
#pragma once

#include "nn/linear.h"
#include "nn/module_list.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct AdaptiveLogSoftmaxWithLossOptions {
  double div_value = 4.0;  // cluster i projects to in / div_value^(i + 1) features
  bool head_bias = false;
};

/// output [N]: the logarithm of the probability of each target; loss: the mean of -output.
struct AdaptiveLogSoftmaxOutput {
  Tensor output, loss;
};

class AdaptiveLogSoftmaxWithLoss : public Layer<AdaptiveLogSoftmaxWithLoss> {
 public:
  static constexpr std::string_view type_name = "AdaptiveLogSoftmaxWithLoss";
  /// `cutoffs`: the first class of each cluster, ascending and between 0 and n_classes: Error(bad_argument) otherwise.
  AdaptiveLogSoftmaxWithLoss(Module* parent, std::string name, int64_t in_features, int64_t n_classes,
                             IntArray cutoffs, AdaptiveLogSoftmaxWithLossOptions options = {},
                             SourceLocation where = SourceLocation::current());
  /// input (N, in_features), target (N) int64; or one sample: (in_features), (). Errors: bad_dim, shape_mismatch,
  /// dtype_mismatch, index_out_of_range (a target).
  AdaptiveLogSoftmaxOutput forward(Operand input, const Tensor& target) const;
  /// (N, in_features) -> (N, n_classes): logarithms of the probabilities of all classes.
  Tensor log_prob(Operand input) const;
  /// (N, in_features) -> (N): the most probable classes; of one sample without N.
  Tensor predict(Operand input) const;
  std::tuple<int64_t, int64_t, IntArray, AdaptiveLogSoftmaxWithLossOptions> arguments() const;

  const int64_t in_features, n_classes;
  const IntArray cutoffs;
  const AdaptiveLogSoftmaxWithLossOptions options;

  /// The two products of a cluster.
  struct Cluster : Module {
    Cluster(Module* parent, std::string name, int64_t in, int64_t width, int64_t classes)
        : Module(parent, std::move(name)),
          project(this, "0", in, width, {.bias = false}),
          score(this, "1", width, classes, {.bias = false}) {}
    Linear project, score;
  };
  Linear head;
  ModuleList<Cluster> tail;

 private:
  int64_t shortlist() const { return cutoffs[0]; }
  int64_t first(size_t cluster) const { return cutoffs[cluster]; }
  int64_t end(size_t cluster) const {
    return cluster + 1 < cutoffs.size() ? cutoffs[cluster + 1] : n_classes;
  }
  Tensor cluster_log_prob(size_t cluster, const Tensor& input) const;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
