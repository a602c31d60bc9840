// Convolutions over one to three dims: strides, paddings, dilations, groups, one sample or a batch, kernels larger than
// the operand, positions outside of all windows, and transposed ones; and the op for gradients of weights separately,
// since it is a function of two operands, too.
#include "ops/convolution.h"

#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

/// What there is of {input, weight, bias}.
template <class F>
auto with_bias(F f) {
  return [f](const Tensors& x) { return f(x[0], x[1], x.size() > 2 ? x[2] : Tensor()); };
}

void add_1d(Rows& rows) {
  rows.push_back(row("conv1d", with_bias([](const auto&... x) { return rg::conv1d(x...); }),
                     {{real({2, 2, 5}), real({3, 2, 3}), real({3})},
                      {real({2, 4}), transposed({1, 2, 2}), real({1})},
                      {transposed({1, 2, 4}), real({2, 2, 1})},
                      {expanded({2, 1, 3}), strided({2, 1, 3}), strided({2})},
                      {real({0, 2, 4}), real({1, 2, 2}), real({1})},
                      {real({1, 1, 3}), real({1, 1, 1})},
                      {real({1, 1, 4}), fixed(real({2, 1, 2})), real({2})},
                      {fixed(real({1, 1, 4})), real({2, 1, 2})}}));
  rows.push_back(row("conv1d, places left over",
                     with_bias([](const auto&... x) { return rg::conv1d(x..., 3, 1, 2); }),
                     {{real({1, 2, 7}), real({2, 2, 2}), real({2})}, {real({1, 8}), transposed({1, 1, 3})}}));
  rows.push_back(
      row("conv1d in groups", with_bias([](const auto&... x) { return rg::conv1d(x..., 1, 0, 1, 2); }),
          {{real({2, 4, 3}), real({2, 2, 2}), real({2})}, {transposed({2, 4}), strided({4, 1, 2})}}));
  rows.push_back(row("conv1d, padding that is uneven",
                     with_bias([](const auto&... x) { return rg::conv1d(x..., 1, "same", 3); }),
                     {{real({1, 1, 5}), real({2, 1, 2}), real({2})}, {real({1, 3}), real({1, 1, 4})}}));
  rows.push_back(row("conv1d, a kernel larger than the operand",
                     with_bias([](const auto&... x) { return rg::conv1d(x..., 1, 2); }),
                     {{real({1, 1, 1}), real({1, 1, 4})}}));
}

void add_more_dims(Rows& rows) {
  rows.push_back(row("conv2d", with_bias([](const auto&... x) { return rg::conv2d(x...); }),
                     {{real({1, 2, 3, 4}), real({2, 2, 2, 3}), real({2})},
                      {transposed({2, 3, 3}), transposed({1, 2, 3, 1}), real({1})},
                      {strided({2, 1, 2, 3}), real({2, 1, 1, 1})},
                      {real({1, 5, 4, 4}), real({6, 5, 3, 2}), real({6})}}));
  rows.push_back(row("conv2d, each dim its own way", with_bias([](const auto&... x) {
                       return rg::conv2d(x..., {2, 1}, {1, 2}, {1, 2});
                     }),
                     {{real({1, 1, 4, 3}), real({2, 1, 3, 2}), real({2})},
                      {transposed({2, 4, 2}), transposed({1, 2, 2, 2})}}));
  rows.push_back(
      row("conv2d, each channel by itself",
          with_bias([](const auto&... x) { return rg::conv2d(x..., 1, 1, 1, 2); }),
          {{real({2, 2, 3, 2}), real({2, 1, 3, 3}), real({2})}, {expanded({2, 2, 3}), real({4, 1, 2, 2})}}));
  rows.push_back(row("conv2d, padding that is uneven in a dim",
                     with_bias([](const auto&... x) { return rg::conv2d(x..., 1, "same"); }),
                     {{real({1, 1, 3, 3}), real({1, 1, 2, 3}), real({1})}}));
  rows.push_back(row("conv3d", with_bias([](const auto&... x) {
                       return rg::conv3d(x..., {1, 2, 1}, {1, 0, 1}, {2, 1, 1});
                     }),
                     {{real({1, 2, 2, 3, 2}), real({1, 2, 2, 2, 2}), real({1})},
                      {transposed({1, 3, 2, 2}), transposed({2, 1, 2, 1, 3})}}));
  rows.push_back(row("conv3d in groups, as large as the operand",
                     with_bias([](const auto&... x) { return rg::conv3d(x..., 1, "same", 1, 2); }),
                     {{real({1, 2, 2, 1, 2}), real({2, 1, 2, 1, 3}), real({2})}}));
}

void add_transposed(Rows& rows) {
  rows.push_back(row("conv_transpose1d",
                     with_bias([](const auto&... x) { return rg::conv_transpose1d(x...); }),
                     {{real({2, 2, 3}), real({2, 2, 3}), real({2})},
                      {transposed({1, 4}), transposed({1, 2, 2})},
                      {real({0, 1, 2}), real({1, 2, 2}), real({2})}}));
  rows.push_back(row("conv_transpose1d in groups, with all options",
                     with_bias([](const auto&... x) { return rg::conv_transpose1d(x..., 3, 2, 1, 2, 2); }),
                     {{real({1, 4, 3}), real({4, 1, 3}), real({2})}, {real({2, 2}), strided({2, 2, 3})}}));
  rows.push_back(row("conv_transpose2d", with_bias([](const auto&... x) {
                       return rg::conv_transpose2d(x..., {1, 2}, {1, 0}, {0, 1});
                     }),
                     {{real({1, 1, 2, 3}), real({1, 2, 3, 2}), real({2})},
                      {transposed({2, 3, 2}), transposed({2, 1, 2, 1})}}));
  rows.push_back(row("conv_transpose3d", with_bias([](const auto&... x) {
                       return rg::conv_transpose3d(x..., {2, 1, 1}, {1, 0, 1}, {1, 0, 0}, 1, {1, 2, 1});
                     }),
                     {{real({1, 1, 2, 1, 2}), real({1, 2, 2, 2, 3}), real({2})}}));
}

void add_weight(Rows& rows) {
  rows.push_back(row("convolution_weight",
                     [](const Tensors& x) {
                       const rg::ops::ConvolutionAttrs attrs{2, 1, 1, 2, {3}};
                       return rg::ops::emit<rg::ops::ConvolutionWeight>({x[0].get(), x[1].get()}, attrs, {});
                     },
                     {{real({1, 4, 4}), real({1, 2, 2})}, {transposed({2, 2, 4}), strided({2, 4, 2})}}));
}

}  // namespace

Rows convolution_rows() {
  Rows rows;
  add_1d(rows);
  add_more_dims(rows);
  add_transposed(rows);
  add_weight(rows);
  return rows;
}

}  // namespace derivatives
