// Ops that a device has no kernel for: the host waits, computes them by the CPU's kernels, and copies the results back.
// Decompositions spend their time in steps that depend on each other, where a device gains little except for large
// matrices or batches; the others are rarely what a program waits for.
//
// They are never part of recorded launches (Executor::host_work).
#include <vector>

#include "cuda/kernels/dense.h"
#include "cuda/kernels/linalg_run.h"
#include "cuda/kernels/table.h"
#include "engine/runner.h"
#include "ops/counts.h"
#include "ops/ctc_loss.h"
#include "ops/distances.h"
#include "ops/embedding_bag.h"
#include "ops/factorizations.h"
#include "ops/margin_losses.h"
#include "ops/matrix_functions.h"
#include "ops/order_statistics.h"
#include "ops/products.h"
#include "ops/search.h"
#include "ops/spectral.h"

namespace retrograd::inline v0::cuda {
namespace {

RefPtr<TensorImpl> host_cell(const TensorImpl& like) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(like.dtype(), kCPU, like.shape());
  cell->allocate();
  return cell;
}

void by_host(const Call& call, TensorImpl* const* outputs) {
  Gpu& gpu = Gpu::current();
  std::vector<RefPtr<TensorImpl>> cells;
  std::vector<TensorImpl*> operands, results;
  for (TensorImpl* x : call.operands) {
    if (!x) {
      operands.push_back(nullptr);
      continue;
    }
    DenseTensor dense(*x, call.op->name);
    dense.bring();
    cells.push_back(host_cell(*x));
    gpu.download(cells.back()->data(), dense.here().data(), bytes_of(x->type()));
    operands.push_back(cells.back().get());
  }
  for (int i = 0; i < call.outputs; ++i) {
    cells.push_back(host_cell(*outputs[i]));
    results.push_back(cells.back().get());
  }
  Call on_host = call;
  on_host.operands = operands;
  cpu_executor().launch(cpu_executor().find(call.op), on_host, results.data());
  for (int i = 0; i < call.outputs; ++i) {
    DenseTensor dense(*outputs[i], call.op->name);
    gpu.upload(dense.here().data(), results[static_cast<size_t>(i)]->data(), bytes_of(outputs[i]->type()));
    dense.take_back();
  }
}

using ByHost = ops::OpList<ops::Eigh, ops::Eigvalsh, ops::Svd, ops::Svdvals, ops::Qr, ops::PivotedLu,
                           ops::PivotOrder, ops::Pinv, ops::Lstsq, ops::MatrixExp, ops::Cross, ops::Mode,
                           ops::MedianOfAll, ops::NanMedianOfAll, ops::SearchSorted, ops::Histc, ops::Cdist,
                           ops::CdistBackward, ops::CtcLoss, ops::CtcLossBackward, ops::EmbeddingBag,
                           ops::EmbeddingBagMax, ops::MultilabelMargin, ops::MultilabelMarginBackward>;

}  // namespace

void add_by_host_kernels(KernelTable& table) {
  ByHost::for_each([&]<class Op>() { table.set(&ops::info<Op>, by_host); });
}

bool is_by_host(const OpInfo& op) {
  bool found = false;
  ByHost::for_each([&]<class Op>() { found |= &op == &ops::info<Op>; });
  return found;
}

}  // namespace retrograd::cuda
