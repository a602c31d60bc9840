// Running sums and products, with zeros as well, and the linear recurrence that derivatives of the product use.
#include "ops/scan.h"

#include "ops/arithmetic.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;
namespace ops = retrograd::ops;

namespace {

std::vector<Tensors> scan_cases() {
  return {{real({2, 3, 2})}, {transposed({2, 3, 2})}, {expanded({2, 3})},
          {strided({2, 5})}, {real({0, 3})},          {real({2, 0})}};
}

// Factors of zero, which the derivatives of products must not divide by.
Tensor with_zeros(const Shape& shape, const std::vector<double>& values) {
  return rg::tensor(values, shape, {rg::kFloat64}).requires_grad_();
}

std::string scan_name(const std::string& name, const ops::ScanAttrs& a) {
  return name + (a.reverse ? ", reverse" : "") + (a.exclusive ? ", exclusive" : "");
}

}  // namespace

Rows scan_rows() {
  Rows rows;
  rows.push_back(row(
      "cumsum", [](const Tensors& x) { return rg::cumsum(x[0], 1); }, scan_cases()));
  rows.push_back(row(
      "cumprod", [](const Tensors& x) { return rg::cumprod(x[0], 1); }, scan_cases()));
  rows.push_back(row("scans of one number",
                     [](const Tensors& x) { return rg::cumsum(rg::cumprod(x[0], -1), 0); },
                     {{real({})}, {real({1})}}));
  const Tensor one_zero = with_zeros({2, 3}, {0.5, 0, 1.5, -0.5, 2, 0.25}),
               two_zeros = with_zeros({2, 3}, {0, 0.5, 0, 0, 0, 0});
  rows.push_back(row("cumprod with zeros", [](const Tensors& x) { return rg::cumprod(x[0], 1); },
                     {{one_zero}, {two_zeros}}));
  rows.push_back(
      row("prod with zeros", [](const Tensors& x) { return rg::prod(x[0]); }, {{one_zero}, {two_zeros}}));
  rows.push_back(row("prod along a dim with zeros", [](const Tensors& x) { return rg::prod(x[0], 1); },
                     {{one_zero}, {two_zeros}}));
  for (const bool reverse : {false, true}) {
    for (const bool exclusive : {false, true}) {
      const ops::ScanAttrs attrs{1, reverse, exclusive};
      rows.push_back(
          row(scan_name("cumprod op", attrs),
              [attrs](const Tensors& x) { return ops::emit<ops::CumProd>({x[0].get()}, attrs, {}); },
              {{real({2, 3})}, {one_zero}, {two_zeros}}));
    }
    const ops::ScanAttrs attrs{1, reverse};
    rows.push_back(
        row(scan_name("recurrence", attrs),
            [attrs](const Tensors& x) {
              return ops::emit<ops::Recurrence>({x[0].get(), x[1].get()}, attrs, {});
            },
            {{real({2, 3}), transposed({2, 3})}, {one_zero, real({2, 3})}, {real({0, 2}), real({0, 2})}}));
    rows.push_back(row(
        scan_name("shift", attrs),
        [attrs](const Tensors& x) { return ops::emit<ops::Shift>({x[0].get()}, attrs, {}); }, scan_cases()));
  }
  return rows;
}

}  // namespace derivatives
