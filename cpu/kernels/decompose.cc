// Kernels of ops/factorizations.h, and of lstsq and matrix_exp: the matrices of a batch one by one
// (cpu/kernels/matrix_items.h), by the functions of cpu/kernels/levels/decompose.h. Results are dense; operands are
// copied where they are not. A matrix with a zero pivot is noted, the rest of the batch is completed, and the error
// names the first one (FirstFailure).
#include "cpu/kernels/levels/decompose.h"

#include <numeric>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/matrix_items.h"
#include "cpu/kernels/table.h"
#include "ops/factorizations.h"
#include "ops/matrix_functions.h"

namespace retrograd::inline v0::cpu {
namespace {

void qr_kernel(const Call& call, TensorImpl* const* outputs) {
  const bool complete = call.attrs_as<ops::Qr::Attrs>().complete;
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), q(*outputs[0], 2), r(*outputs[1], 2);
    const int64_t work = std::max(cube(a.rows()), cube(a.columns()));
    const ItemRoom<T> room(a, a.count(), work);
    for_items(a.count(), work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (a.size() > 0)
          decomposition_kernels<T>().qr(a.dense(i, room.mine()), a.rows(), a.columns(), complete, q.at(i),
                                        r.at(i));
        else if (complete)
          set_identity(q.at(i), q.rows());
      }
    });
  });
}

void pivoted_lu_kernel(const Call& call, TensorImpl* const* outputs) {
  FirstFailure singular;
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), lu(*outputs[0], 2);
    const Items<int32_t> pivots(*outputs[1], 1);
    const int64_t k = pivots.columns();
    if (k == 0) return;
    for_items(a.count(), cube(k), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* const factors = lu.at(i);
        int32_t* const p = pivots.at(i);
        a.copy(i, factors);
        decomposition_kernels<T>().lu(factors, a.rows(), a.columns(), p);
        for (int64_t j = 0; j < k; ++j) {
          ++p[j];
          if (factors[j * (a.columns() + 1)] == 0) singular.note(i);
        }
      }
    });
  });
  singular.report(call, Category::singular_matrix, "is singular");
}

// The order that exchanges of rows lead to; false if a pivot is no row.
bool order_rows(const int32_t* pivots, int64_t count, int64_t rows, int64_t* order) {
  std::iota(order, order + rows, int64_t{0});
  for (int64_t i = 0; i < count; ++i) {
    if (pivots[i] < 1 || pivots[i] > rows) return false;
    std::swap(order[i], order[pivots[i] - 1]);
  }
  return true;
}

void pivot_order_kernel(const Call& call, TensorImpl* const* outputs) {
  const bool inverse = call.attrs_as<ops::PivotOrder::Attrs>().inverse;
  const Items<int32_t> pivots(*call.operands[0], 1);
  const Items<int64_t> out(*outputs[0], 1);
  const int64_t rows = out.columns();
  const ItemRoom<int32_t> room(pivots, out.count(), rows);
  const ItemRoom<int64_t> orders(rows, out.count(), rows);
  FirstFailure outside;
  for_items(out.count(), rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t* const order = inverse ? orders.mine() : out.at(i);
      if (!order_rows(pivots.dense(i, room.mine()), pivots.columns(), rows, order))
        outside.note(i);
      else if (inverse)
        for (int64_t j = 0; j < rows; ++j) out.at(i)[order[j]] = j;
    }
  });
  outside.report(call, Category::bad_argument, "has pivots that are no rows of it");
}

void lstsq_kernel(const Call& call, TensorImpl* const* outputs) {
  clear(*outputs[0]);  // what an operand without elements gives
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), b(*call.operands[1], 2), x(*outputs[0], 2);
    if (a.size() == 0 || b.columns() == 0) return;
    const int64_t work = std::max(cube(a.rows()), cube(a.columns()));
    const ItemRoom<T> room(a, a.count(), work), right(b, a.count(), work);
    for_items(a.count(), work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        decomposition_kernels<T>().lstsq(a.dense(i, room.mine()), a.rows(), a.columns(),
                                         b.dense(i, right.mine()), b.columns(), x.at(i));
    });
  });
}

void matrix_exp_kernel(const Call& call, TensorImpl* const* outputs) {
  with_type(call, [&]<class T>(T) {
    const Items<T> a(*call.operands[0], 2), out(*outputs[0], 2);
    if (a.size() == 0) return;
    const int64_t work = cube(a.rows());
    const ItemRoom<T> room(a, a.count(), work);
    for_items(a.count(), work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        decomposition_kernels<T>().matrix_exp(a.dense(i, room.mine()), a.rows(), out.at(i));
    });
  });
}

}  // namespace

void add_decompose_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Qr>, qr_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::PivotedLu>, pivoted_lu_kernel);
  table.set(&ops::info<ops::PivotOrder>, pivot_order_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Lstsq>, lstsq_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::MatrixExp>, matrix_exp_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
