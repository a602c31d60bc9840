// Views, and the ops that scatter a gradient back.
#include "ops/views.h"

#include "ops/join.h"
#include "ops/shape_ops.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

std::vector<Tensors> matrices() {
  return {{real({3, 4})}, {transposed({3, 4})}, {expanded({3, 4})}, {strided({3, 4})}};
}

void add_shapes(Rows& rows) {
  rows.push_back(row("expand",
                     [](const Tensors& x) {
                       return rg::expand(x[0], {2, 3, -1});
                     },
                     {{real({1, 2})}, {strided({3, 1})}, {transposed({1, 3, 2})}, {real({1, 0})}}));
  rows.push_back(row("expand of a number",
                     [](const Tensors& x) {
                       return rg::expand(x[0], {2, 3});
                     },
                     {{real({})}}));
  rows.push_back(row("view",
                     [](const Tensors& x) {
                       return rg::view(x[0], {3, -1});
                     },
                     {{real({2, 3})}, {real({3})}, {real({1, 3, 5})}, {real({3, 0, 2})}}));
  rows.push_back(row("view of one number",
                     [](const Tensors& x) {
                       return rg::view(x[0], {1, 1});
                     },
                     {{real({})}, {real({1})}}));
  rows.push_back(row(
      "reshape",
      [](const Tensors& x) {
        return rg::reshape(x[0], {6, 2});
      },
      matrices()));
  rows.push_back(row(
      "flatten", [](const Tensors& x) { return rg::flatten(x[0]); }, unary_cases()));
  rows.push_back(row("permute",
                     [](const Tensors& x) {
                       return rg::permute(x[0], {2, 0, 1});
                     },
                     {{real({2, 3, 1})}, {transposed({2, 1, 3})}, {expanded({2, 3, 2})}, {real({0, 2, 3})}}));
  rows.push_back(row(
      "transpose", [](const Tensors& x) { return rg::transpose(x[0], 0, -1); }, unary_cases()));
  rows.push_back(
      row("movedim", [](const Tensors& x) { return rg::movedim(x[0], {0}, {-1}); }, {{real({2, 3, 2})}}));
  rows.push_back(row("squeeze and unsqueeze",
                     [](const Tensors& x) { return rg::unsqueeze(rg::squeeze(x[0]), -1); },
                     {{real({2, 1, 3})}, {transposed({1, 3, 1})}, {real({})}}));
}

void add_parts(Rows& rows) {
  rows.push_back(row(
      "slice", [](const Tensors& x) { return rg::slice(x[0], 1, 1, {}, 2); }, matrices()));
  rows.push_back(row(
      "slice of nothing", [](const Tensors& x) { return rg::slice(x[0], 0, 2, 1); }, matrices()));
  rows.push_back(row(
      "narrow", [](const Tensors& x) { return rg::narrow(x[0], -2, 1, 2); }, matrices()));
  rows.push_back(row(
      "select", [](const Tensors& x) { return rg::select(x[0], -1, -2); }, matrices()));
  rows.push_back(
      row("select of a vector", [](const Tensors& x) { return rg::select(x[0], 0, 1); }, {{real({3})}}));
  for (const int64_t offset : {0, 1, -2, 7})
    rows.push_back(row(
        "diagonal " + std::to_string(offset),
        [offset](const Tensors& x) { return rg::diagonal(x[0], offset); }, matrices()));
  rows.push_back(row("diagonal of other dims", [](const Tensors& x) { return rg::diagonal(x[0], 0, -1, 0); },
                     {{real({2, 3, 2})}, {transposed({3, 1, 2})}}));
  rows.push_back(row(
      "unfold, overlapping", [](const Tensors& x) { return rg::unfold(x[0], 1, 3, 1); }, matrices()));
  rows.push_back(row(
      "unfold, with gaps", [](const Tensors& x) { return rg::unfold(x[0], 0, 1, 2); }, matrices()));
  rows.push_back(row(
      "as_strided",
      [](const Tensors& x) {
        return rg::as_strided(x[0], {2, 2}, {1, 1});
      },
      matrices()));
  rows.push_back(row("as_strided from an offset",
                     [](const Tensors& x) {
                       return rg::as_strided(x[0], {2, 2}, {4, 2}, 1);
                     },
                     {{real({3, 4})}, {transposed({3, 4})}}));
  rows.push_back(row("as_strided, overlapping",
                     [](const Tensors& x) {
                       return rg::as_strided(x[0], {2, 2}, {1, 1});
                     },
                     {{real({4})}, {real({2, 3})}}));
}

void add_several(Rows& rows) {
  rows.push_back({"split", [](const Tensors& x) { return rg::split(x[0], 3, 1); }, matrices()});
  rows.push_back({"split into sections",
                  [](const Tensors& x) {
                    return rg::split(x[0], rg::IntArray{1, 0, 2}, 0);
                  },
                  matrices()});
  rows.push_back({"chunk", [](const Tensors& x) { return rg::chunk(x[0], 2, -1); }, matrices()});
  rows.push_back({"unbind", [](const Tensors& x) { return rg::unbind(x[0], 0); }, matrices()});
  rows.push_back(row("cat",
                     [](const Tensors& x) {
                       return rg::cat({x[0], x[1], x[0]}, 1);
                     },
                     {{real({2, 3}), transposed({2, 1})},
                      {expanded({2, 2}), strided({2, 3})},
                      {real({2, 0}), real({2, 1})}}));
  rows.push_back(row("stack",
                     [](const Tensors& x) {
                       return rg::stack({x[0], x[1]}, -1);
                     },
                     {{real({2, 3}), transposed({2, 3})}, {real({}), real({})}, {real({0}), real({0})}}));
}

}  // namespace

Rows view_rows() {
  Rows rows;
  add_shapes(rows);
  add_parts(rows);
  add_several(rows);
  return rows;
}

}  // namespace derivatives
