// See ops/total_norm.h.
#include "ops/total_norm.h"

#include "engine/emitter.h"
#include "engine/named_call.h"
#include "ops/batching.h"
#include "ops/join.h"
#include "ops/optimizer_steps.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace ops {

void TotalNorm::infer(const Call& call, TensorImpl* const* outputs) {
  for (const TensorImpl* x : call.operands)
    if (!may_be_updated(x->dtype()))
      fail_call(call, Category::dtype_mismatch, "operands are float32, float64, bfloat16 or float16");
  outputs[0]->set_type(kFloat64, call.operands[0]->device(), {});
}

// Each sample's elements as a row. A check of the result reads it, one by one.
void TotalNorm::batch(BatchContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  if (a.error_if_nonfinite) return batch_by_loop(c);
  Tensors rows;
  for (int i = 0; i < c.operands(); ++i) {
    const Tensor x = to(Operand(c.all(i), c.where()), kFloat64);
    rows.push_back(reshape_to(Operand(x, c.where()), {c.size(), c.shape(i).numel()}));
  }
  c.give(0, vector_norm(Operand(cat(rows, 1, c.where()), c.where()), a.norm_type, {1}));
}

}  // namespace ops

Tensor total_norm(const Tensors& tensors, Scalar norm_type, bool error_if_nonfinite, SourceLocation where) {
  const NamedCall call("total_norm", where);
  if (tensors.empty()) fail(Category::bad_argument, "total_norm", "there are no tensors", where);
  const NoGradGuard no_grad;
  Tensors dense;
  std::vector<TensorImpl*> operands;
  for (const Tensor& x : tensors) {
    dense.push_back(contiguous(Operand(x, where)));
    operands.push_back(dense.back().get());
  }
  ops::TotalNorm::Attrs attrs{norm_type, error_if_nonfinite};
  Tensor result;
  Emitter::current().emit({&ops::info<ops::TotalNorm>, operands, &attrs, effective_location(where), 1},
                          &result);
  return result;
}

}  // namespace retrograd
