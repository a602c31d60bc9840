// Reductions at positions, and more functions of positions: each index has an entry that occurs twice.
#include "ops/scatter_reduce.h"

#include "ops/index_functions.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

constexpr const char* kReductions[] = {"sum", "prod", "mean", "amax", "amin"};

std::string title(const char* op, const char* reduce, bool include_self) {
  return std::string(op) + " " + reduce + (include_self ? "" : " without self");
}

Tensor leaf(const std::vector<double>& values, const Shape& shape) {
  return rg::tensor(values, shape, {rg::kFloat64, rg::kCPU, true});
}

void add_reductions(Rows& rows) {
  const Tensor index = ints({2, 0, 0, 1, 1, 1, 0, 0, 2}, {3, 3}), entries = ints({2, 0, 2, 2}, {4});
  for (const char* reduce : kReductions)
    for (const bool self : {true, false}) {
      rows.push_back(
          row(title("scatter_reduce", reduce, self),
              [=](const Tensors& x) { return rg::scatter_reduce(x[0], 0, x[1], x[2], reduce, self); },
              {{real({3, 3}), index, transposed({3, 4})},
               {expanded({3, 4}), index, strided({3, 3})},
               {transposed({2, 3}), ints({1, 1, 1, 0}, {2, 2}), real({3, 2})},
               {real({}), ints({0, 0, 0}, {3}), real({3})}}));
      if (reduce == kReductions[0]) continue;
      rows.push_back(
          row(title("index_reduce", reduce, self),
              [=](const Tensors& x) { return rg::index_reduce(x[0], 1, x[1], x[2], reduce, self); },
              {{real({2, 3}), entries, transposed({2, 4})},
               {strided({2, 3, 2}), entries, real({2, 4, 2})},
               {transposed({1, 3}), ints({1}, {}), real({1, 1})}}));
    }
}

// Factors of 0: none, one, two and three of a place, of the tensor itself as well.
void add_zero_factors(Rows& rows) {
  const Tensor index = ints({0, 1, 1, 2, 2, 3, 3, 3, 4}, {9});
  for (const bool self : {true, false})
    rows.push_back(
        row(title("scatter_reduce zeros prod", "", self),
            [=](const Tensors& x) { return rg::scatter_reduce(x[0], 0, x[1], x[2], "prod", self); },
            {{leaf({2, 3, -1.5, 0.5, 0, 0}, {6}), index, leaf({1.5, 0, 2, 0, 0, 0, 0, 0, -2}, {9})}}));
}

void add_functions(Rows& rows) {
  const Tensor entries = ints({2, 0, -1}, {3});
  rows.push_back(row("index_fill", [](const Tensors& x) { return rg::index_fill(x[0], 1, x[1], x[2]); },
                     {{real({2, 3}), entries, real({})},
                      {transposed({1, 3}), entries, real({})},
                      {real({2, 3, 2}), entries, real({})}}));
  rows.push_back(row("index_fill with a number",
                     [](const Tensors& x) { return rg::index_fill(x[0], 0, x[1], 2.0); },
                     {{expanded({3, 2}), entries}, {real({}), ints({0}, {1})}}));
  rows.push_back(row("put", [](const Tensors& x) { return rg::put(x[0], x[1], x[2]); },
                     {{real({2, 3}), ints({-1, 0, 2, 4}, {2, 2}), transposed({2, 2})},
                      {transposed({2, 2}), ints({3}, {}), real({1})}}));
  rows.push_back(row(
      "put, adding", [](const Tensors& x) { return rg::put(x[0], x[1], x[2], true); },
      {{strided({2, 3}), ints({-1, 0, 5, 4}, {4}), real({2, 2})}, {real({}), ints({0, 0}, {2}), real({2})}}));
}

}  // namespace

Rows scatter_rows() {
  Rows rows;
  add_reductions(rows);
  add_zero_factors(rows);
  add_functions(rows);
  return rows;
}

}  // namespace derivatives
