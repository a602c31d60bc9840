// Reductions: over no dim, all, one, several, negative ones; with and without keepdim.
#include "ops/reduce.h"

#include <limits>

#include "ops/shape_ops.h"
#include "ops/softmax.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;
using rg::IntList;

namespace {

using Reduction = std::function<Tensor(const Tensor&, const IntList&, bool)>;

/// `empty`: whether there may be nothing to reduce.
void add(Rows& rows, const std::string& name, const Reduction& f, bool empty = true, Range r = {}) {
  std::vector<Tensors> all{{real({}, r)}, {real({5}, r)}, {transposed({2, 3}, r)}, {expanded({2, 3}, r)}};
  if (empty) all.push_back({real({0, 2}, r)});
  rows.push_back(row(
      name, [f](const Tensors& x) { return f(x[0], {}, false); }, all));
  std::vector<Tensors> three{{real({2, 3, 2}, r)}, {transposed({2, 1, 3}, r)}, {strided({1, 2, 3}, r)}};
  if (empty) three.push_back({real({2, 0, 3}, r)});
  rows.push_back(row(
      name + " along one dim", [f](const Tensors& x) { return f(x[0], {1}, false); }, three));
  rows.push_back(row(name + " along two dims",
                     [f](const Tensors& x) {
                       return f(x[0], {-1, 0}, true);
                     },
                     {{real({2, 3, 2}, r)}, {expanded({2, 1, 3}, r)}}));
}

void add_one_dim(Rows& rows, const std::string& name,
                 const std::function<Tensor(const Tensor&, int64_t, bool)>& f, bool empty = true,
                 Range r = {}) {
  std::vector<Tensors> cases{{real({2, 3, 2}, r)}, {transposed({2, 3, 1}, r)}, {expanded({2, 5}, r)}};
  rows.push_back(row(
      name + " along dim 1", [f](const Tensors& x) { return f(x[0], 1, false); }, cases));
  std::vector<Tensors> more{{real({}, r)}, {real({5}, r)}, {strided({2, 3}, r)}, {real({0, 3}, r)}};
  if (empty) more.push_back({real({2, 0}, r)});
  rows.push_back(row(
      name + " along the last dim", [f](const Tensors& x) { return f(x[0], -1, true); }, more));
}

}  // namespace

Rows reduce_rows() {
  const double inf = std::numeric_limits<double>::infinity();
  Rows rows;
  add(rows, "sum", [](auto& x, auto& dim, bool keep) { return rg::sum(x, dim, keep); });
  add(
      rows, "mean", [](auto& x, auto& dim, bool keep) { return rg::mean(x, dim, keep); }, false);
  add(
      rows, "amax", [](auto& x, auto& dim, bool keep) { return rg::amax(x, dim, keep); }, false);
  add(
      rows, "amin", [](auto& x, auto& dim, bool keep) { return rg::amin(x, dim, keep); }, false);
  add(rows, "logsumexp", [](auto& x, auto& dim, bool keep) { return rg::logsumexp(x, dim, keep); });
  add(
      rows, "var", [](auto& x, auto& dim, bool keep) { return rg::var(x, dim, 0, keep); }, false);
  rows.push_back(row("var, unbiased", [](const Tensors& x) { return rg::var(x[0], {1}); },
                     {{real({2, 3})}, {transposed({2, 3, 2})}}));
  rows.push_back(
      row("std", [](const Tensors& x) { return rg::std(x[0]); }, {{real({5})}, {transposed({2, 3})}}));
  rows.push_back(row("std along dims",
                     [](const Tensors& x) {
                       return rg::std(x[0], {0, -1}, 0, true);
                     },
                     {{real({2, 3, 2})}, {strided({2, 1, 3})}}));
  for (const double p : {1.0, 2.0, 3.0, 0.5, -1.0, inf, -inf})
    add(rows, "vector_norm " + std::to_string(p),
        [p](auto& x, auto& dim, bool keep) { return rg::vector_norm(x, p, dim, keep); }, false, {0.4, 2});
  add(rows, "vector_norm 0", [](auto& x, auto& dim, bool keep) { return rg::vector_norm(x, 0, dim, keep); });
  rows.push_back(
      row("norm of both signs", [](const Tensors& x) { return rg::norm(x[0], 3); }, {{real({2, 3})}}));
  rows.push_back(row("prod", [](const Tensors& x) { return rg::prod(x[0]); },
                     {{real({})}, {real({3})}, {transposed({2, 2})}, {expanded({2, 2})}, {real({0, 2})}}));
  add_one_dim(rows, "prod", [](auto& x, int64_t dim, bool keep) { return rg::prod(x, dim, keep); });
  add_one_dim(
      rows, "max", [](auto& x, int64_t dim, bool keep) { return rg::max(x, dim, keep).values; }, false);
  add_one_dim(
      rows, "min", [](auto& x, int64_t dim, bool keep) { return rg::min(x, dim, keep).values; }, false);
  add_one_dim(rows, "softmax", [](auto& x, int64_t dim, bool) { return rg::softmax(x, dim); });
  add_one_dim(rows, "log_softmax", [](auto& x, int64_t dim, bool) { return rg::log_softmax(x, dim); });
  return rows;
}

}  // namespace derivatives
