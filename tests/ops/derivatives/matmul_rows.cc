// Products of matrices and vectors, in each layout, with sizes of one and none.
#include "ops/matmul.h"

#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

Rows matmul_rows() {
  Rows rows;
  rows.push_back(row("mm", [](const Tensors& x) { return rg::mm(x[0], x[1]); },
                     {{real({2, 3}), real({3, 2})},
                      {transposed({3, 2}), transposed({2, 1})},
                      {expanded({2, 3}), strided({3, 1})},
                      {real({2, 0}), real({0, 3})},
                      {real({0, 2}), real({2, 3})},
                      {real({2, 2}), fixed(real({2, 2}))}}));
  rows.push_back(row("mm of a matrix with itself", [](const Tensors& x) { return rg::mm(x[0], x[0]); },
                     {{real({3, 3})}, {transposed({2, 2})}}));
  rows.push_back(row("bmm", [](const Tensors& x) { return rg::bmm(x[0], x[1]); },
                     {{real({2, 1, 3}), real({2, 3, 2})},
                      {transposed({2, 3, 1}), expanded({2, 1, 3})},
                      {real({0, 2, 3}), real({0, 3, 1})}}));
  rows.push_back(
      row("mv", [](const Tensors& x) { return rg::mv(x[0], x[1]); },
          {{real({2, 3}), real({3})}, {transposed({3, 2}), strided({2})}, {real({2, 0}), real({0})}}));
  rows.push_back(row("dot", [](const Tensors& x) { return rg::dot(x[0], x[1]); },
                     {{real({5}), strided({5})}, {real({0}), real({0})}}));
  rows.push_back(row("outer", [](const Tensors& x) { return rg::outer(x[0], x[1]); },
                     {{real({2}), strided({3})}, {real({0}), real({3})}}));
  rows.push_back(row("matmul", [](const Tensors& x) { return rg::matmul(x[0], x[1]); },
                     {{real({3}), real({3})},
                      {real({3}), transposed({3, 2})},
                      {real({2, 3}), real({3})},
                      {real({2, 1, 3}), real({3, 2})},
                      {real({2, 1, 1, 3}), transposed({3, 3, 2})},
                      {real({3}), real({2, 3, 2})},
                      {expanded({2, 2, 3}), real({3})}}));
  for (const bool plain : {true, false})
    rows.push_back(row(plain ? "addmm" : "addmm with factors",
                       [plain](const Tensors& x) {
                         return rg::addmm(x[0], x[1], x[2], plain ? 1.0 : 0.5, plain ? 1.0 : -2.0);
                       },
                       {{real({2, 2}), real({2, 3}), real({3, 2})},
                        {real({2}), transposed({3, 2}), transposed({2, 2})},
                        {real({}), real({1, 3}), strided({3, 2})},
                        {fixed(real({2, 2})), real({2, 3}), fixed(real({3, 2}))},
                        {fixed(real({2, 2})), fixed(real({2, 3})), real({3, 2})},
                        {real({2, 1}), real({2, 0}), real({0, 3})}}));
  rows.push_back(row("baddbmm", [](const Tensors& x) { return rg::baddbmm(x[0], x[1], x[2], 0.5, -2.0); },
                     {{real({2, 2, 1}), real({2, 2, 3}), real({2, 3, 1})},
                      {real({1, 2}), transposed({2, 3, 1}), expanded({2, 1, 2})}}));
  rows.push_back(row("baddbmm without input",
                     [](const Tensors& x) { return rg::baddbmm(x[0], x[1], x[2], 0, 1); },
                     {{fixed(real({2, 1})), real({2, 2, 3}), real({2, 3, 1})}}));
  rows.push_back(row("linear", [](const Tensors& x) { return rg::linear(x[0], x[1]); },
                     {{real({2, 3}), real({2, 3})},
                      {real({3}), transposed({2, 3})},
                      {transposed({2, 2, 3}), strided({1, 3})},
                      {real({2, 3}), real({3})}}));
  rows.push_back(row("linear with a bias", [](const Tensors& x) { return rg::linear(x[0], x[1], x[2]); },
                     {{real({2, 3}), real({2, 3}), real({2})},
                      {real({3}), real({2, 3}), strided({2})},
                      {expanded({2, 1, 3}), transposed({2, 3}), real({2})},
                      {real({0, 3}), real({2, 3}), real({2})}}));
  return rows;
}

}  // namespace derivatives
