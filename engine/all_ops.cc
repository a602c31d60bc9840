// The list of all ops, made from the families' type lists. See ops/all_ops.h.
#include "ops/all_ops.h"

#include <vector>

#include "ir/bookkeeping.h"
#include "ops/attention.h"
#include "ops/convolution.h"
#include "ops/copy.h"
#include "ops/dropout.h"
#include "ops/elementwise_list.h"
#include "ops/embedding.h"
#include "ops/full.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"
#include "ops/interpolate.h"
#include "ops/join.h"
#include "ops/linalg.h"
#include "ops/losses.h"
#include "ops/matmul.h"
#include "ops/norms.h"
#include "ops/pooling.h"
#include "ops/random_ops.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/sampling.h"
#include "ops/scan.h"
#include "ops/shape_ops.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "ops/views.h"

namespace retrograd::ops {
namespace {

template <class List>
void append(std::vector<const OpInfo*>& all) {
  List::for_each([&]<class Op>() { all.push_back(&info<Op>); });
}

std::vector<const OpInfo*> collect() {
  std::vector<const OpInfo*> all{&unpack,          &hook,        &accumulate,
                                 &accumulate_grad, &retain_grad, &function_backward, &pack};
  append<ElementwiseOps>(all);
  append<CreationOps>(all);
  append<ShapeOps>(all);
  append<ViewOps>(all);
  append<CopyOps>(all);
  append<JoinOps>(all);
  append<RearrangeOps>(all);
  append<IndexOps>(all);
  append<IndexingOps>(all);
  append<EmbeddingOps>(all);
  append<SortOps>(all);
  append<ReduceOps>(all);
  append<ScanOps>(all);
  append<SoftmaxOps>(all);
  append<NormOps>(all);
  append<ClassLossOps>(all);
  append<MatmulOps>(all);
  append<LinalgOps>(all);
  append<ConvolutionOps>(all);
  append<AttentionOps>(all);
  append<RandomOps>(all);
  append<SamplingOps>(all);
  append<DropoutOps>(all);
  append<PoolingOps>(all);
  append<InterpolateOps>(all);
  return all;
}

}  // namespace

std::span<const OpInfo* const> all_ops() {
  static const std::vector<const OpInfo*>* all = new std::vector<const OpInfo*>(collect());
  return *all;
}

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo* op : all_ops())
    if (op->name == name) return op;
  return nullptr;
}

}  // namespace retrograd::ops
