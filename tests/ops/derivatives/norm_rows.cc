// Normalisations, with and without weights, by their own statistics and by given ones.
#include "ops/norms.h"

#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

void add_over_last_dims(Rows& rows) {
  rows.push_back(
      row("layer_norm", [](const Tensors& x) { return rg::layer_norm(x[0], {3}); },
          {{real({3})}, {real({2, 3})}, {transposed({2, 1, 3})}, {expanded({2, 3})}, {real({0, 3})}}));
  rows.push_back(row("layer_norm with a weight",
                     [](const Tensors& x) { return rg::layer_norm(x[0], {3}, x[1]); },
                     {{real({2, 3}), real({3})}, {transposed({2, 3}), strided({3})}}));
  rows.push_back(row("layer_norm with weight and bias",
                     [](const Tensors& x) {
                       return rg::layer_norm(x[0], {2, 3}, x[1], x[2], 0.1);
                     },
                     {{real({2, 2, 3}), real({2, 3}), real({2, 3})},
                      {transposed({2, 3}), transposed({2, 3}), real({2, 3})}}));
  rows.push_back(row("layer_norm with a bias",
                     [](const Tensors& x) { return rg::layer_norm(x[0], {3}, {}, x[1]); },
                     {{real({2, 3}), real({3})}}));
  rows.push_back(row("rms_norm", [](const Tensors& x) { return rg::rms_norm(x[0], {3}); },
                     {{real({3})}, {transposed({2, 3})}, {expanded({2, 3})}, {real({0, 3})}}));
  rows.push_back(row("rms_norm with a weight",
                     [](const Tensors& x) { return rg::rms_norm(x[0], {3}, x[1], 0.01); },
                     {{real({2, 1, 3}), real({3})}, {strided({2, 3}), real({3})}}));
}

void add_by_channel(Rows& rows) {
  rows.push_back(row("group_norm", [](const Tensors& x) { return rg::group_norm(x[0], 2); },
                     {{real({2, 4})}, {transposed({2, 2, 3})}}));
  rows.push_back(row(
      "group_norm with weight and bias", [](const Tensors& x) { return rg::group_norm(x[0], 2, x[1], x[2]); },
      {{real({1, 4, 2}), real({4}), real({4})}, {transposed({2, 2, 3}), strided({2}), real({2})}}));
  rows.push_back(row("batch_norm in training",
                     [](const Tensors& x) { return rg::batch_norm(x[0], {}, {}, {}, {}, true); },
                     {{real({3, 2})}, {transposed({2, 2, 2})}, {real({2, 1, 2, 2})}}));
  rows.push_back(
      row("batch_norm in training, with weights",
          [](const Tensors& x) { return rg::batch_norm(x[0], x[1], x[2], {}, {}, true); },
          {{real({3, 2}), real({2}), real({2})}, {transposed({2, 2, 2}), real({2}), strided({2})}}));
  const Tensor mean = fixed(real({2})), variance = fixed(real({2}, {0.5, 2}));
  rows.push_back(row("batch_norm by statistics",
                     [](const Tensors& x) { return rg::batch_norm(x[0], x[1], x[2], x[3], x[4]); },
                     {{real({3, 2}), real({2}), real({2}), mean, variance},
                      {transposed({2, 2, 2}), real({2}), real({2}), mean, variance}}));
  rows.push_back(
      row("instance_norm", [](const Tensors& x) { return rg::instance_norm(x[0], x[1], x[2]); },
          {{real({2, 2, 3}), real({2}), real({2})}, {transposed({1, 2, 4}), real({2}), real({2})}}));
}

}  // namespace

Rows norm_rows() {
  Rows rows;
  add_over_last_dims(rows);
  add_by_channel(rows);
  return rows;
}

}  // namespace derivatives
