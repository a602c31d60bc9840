// Rearrangements, copies and writes in place.
#include "ops/rearrange.h"

#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/indexing.h"
#include "ops/shape_ops.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

std::vector<Tensors> matrices() {
  return {{real({3, 4})}, {transposed({3, 4})}, {expanded({3, 4})}, {strided({3, 5})}, {real({3, 0})}};
}

void add_padding(Rows& rows) {
  for (const char* mode : {"constant", "reflect", "replicate", "circular"})
    rows.push_back(row(std::string("pad ") + mode,
                       [mode](const Tensors& x) {
                         return rg::pad(x[0], {1, 2}, mode);
                       },
                       {{real({2, 3, 4})}, {transposed({1, 2, 3})}}));
  for (const char* mode : {"reflect", "replicate", "circular"})
    rows.push_back(row(std::string("pad two dims ") + mode,
                       [mode](const Tensors& x) {
                         return rg::pad(x[0], {1, 0, 2, 1}, mode);
                       },
                       {{real({2, 3, 2})}, {transposed({3, 4})}, {expanded({3, 4})}}));
  rows.push_back(row(
      "pad with a number",
      [](const Tensors& x) {
        return rg::pad(x[0], {1, 0, 0, 2}, "constant", 1.5);
      },
      matrices()));
  rows.push_back(row("pad by cutting",
                     [](const Tensors& x) {
                       return rg::pad(x[0], {-1, 1, 1, -1});
                     },
                     {{real({3, 4})}}));
}

void add_writes(Rows& rows) {
  rows.push_back(
      row("copy", [](const Tensors& x) { return rg::copy(x[0], x[1]); },
          {{real({2, 3}), real({2, 3})}, {transposed({2, 3}), real({3})}, {real({2, 2}), real({})}}));
  rows.push_back(
      row("fill", [](const Tensors& x) { return rg::fill(x[0], x[1]); }, {{real({2, 3}), real({})}}));
  rows.push_back(row("in place",
                     [](const Tensors& x) {
                       const Tensor y = x[0] * 2;
                       y.mul_(x[1]);
                       return y.add_(x[0], 3);
                     },
                     {{real({2, 3}), real({3})}, {transposed({2, 3}), real({})}}));
  rows.push_back(row("in place through views",
                     [](const Tensors& x) {
                       const Tensor y = x[0] * 2;
                       rg::select(y, 0, 1).mul_(x[1]);
                       rg::setitem_(y, {rg::indexing::Ellipsis, int64_t{0}}, x[1]);
                       return y;
                     },
                     {{real({2, 2}), real({2})}}));
  rows.push_back(row("as_strided in place",
                     [](const Tensors& x) {
                       const Tensor y = x[0] * 2;
                       rg::as_strided(y, {2, 2}, {2, 1}, 1).mul_(x[1]);
                       return y;
                     },
                     {{real({2, 3}), real({2, 2})}, {real({5}), real({})}}));
}

// Differences that float32 and float16 hold exactly.
void add_conversions(Rows& rows) {
  const Tensor exact = rg::tensor({0.5, -0.25, 1, 0.75}, {2, 2}, {rg::kFloat64}).requires_grad_();
  for (const rg::ScalarType dtype : {rg::kFloat32, rg::kFloat16, rg::kBFloat16}) {
    Row r =
        row("to", [dtype](const Tensors& x) { return rg::to(rg::to(x[0], dtype), rg::kFloat64); }, {{exact}});
    r.dtypes = {};
    r.eps = 0x1p-5;
    r.dot_rtol = 0x1p-7;
    rows.push_back(r);
  }
}

}  // namespace

Rows rearrange_rows() {
  Rows rows;
  add_conversions(rows);
  rows.push_back(row(
      "to_device",
      [](const Tensors& x) {
        return rg::ops::emit<rg::ops::ToDevice>({x[0].get()}, {rg::kCPU}, {});
      },
      matrices()));
  rows.push_back(row(
      "flip",
      [](const Tensors& x) {
        return rg::flip(x[0], {0, -1});
      },
      matrices()));
  rows.push_back(row(
      "roll",
      [](const Tensors& x) {
        return rg::roll(x[0], {1, -2}, {0, 1});
      },
      matrices()));
  rows.push_back(row(
      "roll of the flat tensor", [](const Tensors& x) { return rg::roll(x[0], {2}); }, matrices()));
  rows.push_back(row("repeat",
                     [](const Tensors& x) {
                       return rg::repeat(x[0], {2, 1, 2});
                     },
                     {{real({2, 3})}, {transposed({1, 2})}, {real({3})}}));
  rows.push_back(row(
      "tile", [](const Tensors& x) { return rg::tile(x[0], {2}); }, matrices()));
  rows.push_back(row(
      "repeat_interleave", [](const Tensors& x) { return rg::repeat_interleave(x[0], 2, 1); }, matrices()));
  rows.push_back(row("repeat_interleave by numbers",
                     [](const Tensors& x) { return rg::repeat_interleave(x[0], x[1], 0); },
                     {{real({3, 2}), ints({2, 0, 1}, {3})}}));
  rows.push_back(row(
      "tril", [](const Tensors& x) { return rg::tril(x[0], 1); }, matrices()));
  rows.push_back(row(
      "triu", [](const Tensors& x) { return rg::triu(x[0], -1); }, matrices()));
  rows.push_back(
      row("triu of several", [](const Tensors& x) { return rg::triu(x[0]); }, {{real({2, 2, 3})}}));
  rows.push_back(row("diag of a vector", [](const Tensors& x) { return rg::diag(x[0], -1); },
                     {{real({3})}, {strided({2})}}));
  rows.push_back(row(
      "diag of a matrix", [](const Tensors& x) { return rg::diag(x[0], 1); }, matrices()));
  add_padding(rows);
  add_writes(rows);
  return rows;
}

}  // namespace derivatives
