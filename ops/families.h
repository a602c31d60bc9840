// The families: the lists of all op structs, each by the name of its header. A new family is a line here; the parser
// gets its names from this list (ops/all_ops.h) and docs/ops.md its ops.
#pragma once

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/bitwise.h"
#include "ops/comparison.h"
#include "ops/convolution.h"
#include "ops/copy.h"
#include "ops/counts.h"
#include "ops/ctc_loss.h"
#include "ops/cumulative.h"
#include "ops/distances.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/embedding_bag.h"
#include "ops/factorizations.h"
#include "ops/float_ops.h"
#include "ops/full.h"
#include "ops/grid_sample.h"
#include "ops/index_functions.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"
#include "ops/interpolate.h"
#include "ops/join.h"
#include "ops/likelihood_losses.h"
#include "ops/linalg.h"
#include "ops/losses.h"
#include "ops/margin_losses.h"
#include "ops/matmul.h"
#include "ops/matrix_functions.h"
#include "ops/norms.h"
#include "ops/optimizer_steps.h"
#include "ops/order_statistics.h"
#include "ops/pooling.h"
#include "ops/products.h"
#include "ops/random_ops.h"
#include "ops/rearrange.h"
#include "ops/recurrent.h"
#include "ops/reduce.h"
#include "ops/sampling.h"
#include "ops/scan.h"
#include "ops/scatter_reduce.h"
#include "ops/search.h"
#include "ops/shape_ops.h"
#include "ops/shrinkage.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "ops/special.h"
#include "ops/spectral.h"
#include "ops/ternary.h"
#include "ops/total_norm.h"
#include "ops/unary.h"
#include "ops/view_scatter.h"
#include "ops/views.h"

namespace retrograd::inline v0::ops {

/// Calls f.template operator()<List>(header) for the list of each family, in a fixed order.
template <class F>
void for_each_family(F&& f) {
  f.template operator()<ArithmeticOps>("arithmetic.h");
  f.template operator()<UnaryOps>("unary.h");
  f.template operator()<ActivationOps>("activations.h");
  f.template operator()<ActivationPartOps>("activations.h");
  f.template operator()<BinaryOps>("binary.h");
  f.template operator()<ComparisonOps>("comparison.h");
  f.template operator()<TernaryOps>("ternary.h");
  f.template operator()<LossOps>("losses.h");
  f.template operator()<ClassLossOps>("losses.h");
  f.template operator()<CreationOps>("full.h");
  f.template operator()<ShapeOps>("shape_ops.h");
  f.template operator()<ViewOps>("views.h");
  f.template operator()<ViewScatterOps>("view_scatter.h");
  f.template operator()<CopyOps>("copy.h");
  f.template operator()<JoinOps>("join.h");
  f.template operator()<RearrangeOps>("rearrange.h");
  f.template operator()<IndexOps>("index_ops.h");
  f.template operator()<IndexingOps>("indexing.h");
  f.template operator()<IndexFunctionOps>("index_functions.h");
  f.template operator()<ScatterReduceOps>("scatter_reduce.h");
  f.template operator()<EmbeddingOps>("embedding.h");
  f.template operator()<SortOps>("sort.h");
  f.template operator()<ReduceOps>("reduce.h");
  f.template operator()<ScanOps>("scan.h");
  f.template operator()<CumulativeOps>("cumulative.h");
  f.template operator()<OrderStatisticOps>("order_statistics.h");
  f.template operator()<SearchOps>("search.h");
  f.template operator()<CountOps>("counts.h");
  f.template operator()<DistanceOps>("distances.h");
  f.template operator()<SoftmaxOps>("softmax.h");
  f.template operator()<NormOps>("norms.h");
  f.template operator()<MatmulOps>("matmul.h");
  f.template operator()<LinalgOps>("linalg.h");
  f.template operator()<SpectralOps>("spectral.h");
  f.template operator()<FactorizationOps>("factorizations.h");
  f.template operator()<MatrixFunctionOps>("matrix_functions.h");
  f.template operator()<ProductOps>("products.h");
  f.template operator()<ConvolutionOps>("convolution.h");
  f.template operator()<AttentionOps>("attention.h");
  f.template operator()<RecurrentOps>("recurrent.h");
  f.template operator()<RandomOps>("random_ops.h");
  f.template operator()<SamplingOps>("sampling.h");
  f.template operator()<DropoutOps>("dropout.h");
  f.template operator()<PoolingOps>("pooling.h");
  f.template operator()<InterpolateOps>("interpolate.h");
  f.template operator()<OptimizerOps>("optimizer_steps.h");
  f.template operator()<TotalNormOps>("total_norm.h");
  f.template operator()<SpecialOps>("special.h");
  f.template operator()<FloatOps>("float_ops.h");
  f.template operator()<BitwiseOps>("bitwise.h");
  f.template operator()<ShrinkageOps>("shrinkage.h");
  f.template operator()<GridSampleOps>("grid_sample.h");
  f.template operator()<EmbeddingBagOps>("embedding_bag.h");
  f.template operator()<MarginLossOps>("margin_losses.h");
  f.template operator()<RangeOps>("likelihood_losses.h");
  f.template operator()<CtcOps>("ctc_loss.h");
}

}  // namespace retrograd::ops
