// Functions made of views and joins, and copies with a view replaced.
#include "ops/reshaping.h"
#include "ops/stacking.h"
#include "ops/view_scatter.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

std::vector<Tensors> matrices() {
  return {{real({3, 4})}, {transposed({3, 4})}, {expanded({3, 4})}, {strided({3, 4})}};
}

// Each layout of a matrix with each of another tensor.
std::vector<Tensors> with(const Shape& shape) {
  return {{real({3, 4}), transposed(shape)},
          {transposed({3, 4}), real(shape)},
          {expanded({3, 4}), strided(shape)}};
}

void add_shapes(Rows& rows) {
  rows.push_back(row(
      "atleast_3d of ravel", [](const Tensors& x) { return rg::atleast_3d(rg::ravel(x[0])); },
      unary_cases()));
  rows.push_back(row(
      "unflatten",
      [](const Tensors& x) {
        return rg::unflatten(x[0], -1, {2, -1});
      },
      matrices()));
  for (const int64_t k : {0, 1, 2, -1})
    rows.push_back(row(
        "rot90 by " + std::to_string(k), [k](const Tensors& x) { return rg::rot90(x[0], k); }, matrices()));
  for (const int64_t offset : {0, 1, -2})
    rows.push_back(row("diag_embed " + std::to_string(offset),
                       [offset](const Tensors& x) { return rg::diag_embed(x[0], offset, 0, -1); },
                       {{real({3})}, {transposed({2, 3})}, {expanded({2, 2})}, {real({2, 0})}}));
  rows.push_back(row("diagflat", [](const Tensors& x) { return rg::diagflat(x[0], 1); },
                     {{real({})}, {transposed({2, 2})}}));
}

void add_joins(Rows& rows) {
  rows.push_back(row("block_diag", [](const Tensors& x) { return rg::block_diag(x); },
                     {{real({2, 3}), real({}), transposed({1, 2})},
                      {expanded({2, 2}), real({3})},
                      {real({2, 0}), real({1, 2})}}));
  rows.push_back(row("column_stack", [](const Tensors& x) { return rg::column_stack(x); },
                     {{real({2}), transposed({2, 3})}}));
  rows.push_back(row("cartesian_prod", [](const Tensors& x) { return rg::cartesian_prod(x); },
                     {{real({2}), real({3}), strided({2})}}));
  rows.push_back({"meshgrid",
                  [](const Tensors& x) { return rg::meshgrid(x, "xy"); },
                  {{real({2}), real({3}), real({})}, {strided({2}), real({0})}}});
  rows.push_back({"tensor_split", [](const Tensors& x) { return rg::tensor_split(x[0], 3, 1); }, matrices()});
  rows.push_back(row("kron", [](const Tensors& x) { return rg::kron(x[0], x[1]); },
                     {{real({2, 3}), transposed({3, 2})},
                      {expanded({2, 2}), real({3})},
                      {real({}), real({2})},
                      {real({0, 2}), real({2})}}));
  for (const bool increasing : {false, true})
    rows.push_back(row(increasing ? "vander, increasing" : "vander",
                       [increasing](const Tensors& x) { return rg::vander(x[0], 4, increasing); },
                       {{real({3})}, {strided({2})}, {real({0})}}));
  rows.push_back(row("vander at 0", [](const Tensors& x) { return rg::vander(x[0]); },
                     {{rg::tensor({0.0, 1.0, -1.0}, {3}, {rg::kFloat64, rg::kCPU, true})}}));
}

void add_scatters(Rows& rows) {
  rows.push_back(row(
      "slice_scatter", [](const Tensors& x) { return rg::slice_scatter(x[0], x[1], 1, 1, {}, 2); },
      with({3, 2})));
  rows.push_back(row("slice_scatter of nothing",
                     [](const Tensors& x) { return rg::slice_scatter(x[0], x[1], 0, 2, 1); },
                     {{real({3, 4}), real({0, 4})}}));
  rows.push_back(row(
      "select_scatter", [](const Tensors& x) { return rg::select_scatter(x[0], x[1], -1, -2); }, with({3})));
  for (const int64_t offset : {0, 1, -2})
    rows.push_back(row(
        "diagonal_scatter " + std::to_string(offset),
        [offset](const Tensors& x) { return rg::diagonal_scatter(x[0], x[1], offset); },
        with({offset < 0 ? 1 : 3})));
  rows.push_back(row("as_strided_scatter",
                     [](const Tensors& x) {
                       return rg::as_strided_scatter(x[0], x[1], {2, 2}, {2, 1}, 1);
                     },
                     {{real({3, 4}), transposed({2, 2})}, {transposed({3, 4}), real({2, 2})}}));
}

}  // namespace

Rows layout_rows() {
  Rows rows;
  add_shapes(rows);
  add_joins(rows);
  add_scatters(rows);
  return rows;
}

}  // namespace derivatives
