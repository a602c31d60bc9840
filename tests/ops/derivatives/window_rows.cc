// Windows, grids and channels: patches and their transpose, L^p pools, sampled grids in every mode, shuffles, bags.
#include "ops/channels.h"
#include "ops/embedding_bag.h"
#include "ops/grid_sample.h"
#include "ops/patches.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

void add_patches(Rows& rows) {
  rows.push_back(row("im2col",
                     [](const Tensors& x) {
                       return rg::im2col(x[0], {2, 3}, {2, 1}, {1, 0}, {1, 2});
                     },
                     {{real({2, 2, 4, 5})}, {transposed({1, 3, 4})}, {real({0, 1, 3, 3})}}));
  rows.push_back(row("col2im",
                     [](const Tensors& x) {
                       return rg::col2im(x[0], {3, 5}, {2, 3}, {2, 1}, {1, 0}, {1, 2});
                     },
                     {{real({2, 12, 6})}, {transposed({6, 6})}}));
  for (const int p : {2, 3})
    rows.push_back(row("lp_pool2d, norm " + std::to_string(p),
                       [p](const Tensors& x) {
                         return rg::lp_pool2d(x[0], p, {2, 3}, 1, true);
                       },
                       {{real({1, 2, 3, 4}, {0.5, 2})}, {transposed({1, 3, 3}, {0.5, 2})}}));
  rows.push_back(
      row("lp_pool1d, norm infinity",
          [](const Tensors& x) { return rg::lp_pool1d(x[0], std::numeric_limits<double>::infinity(), 2); },
          {{real({1, 2, 4})}}));
}

void add_channels(Rows& rows) {
  rows.push_back(row("pixel_shuffle", [](const Tensors& x) { return rg::pixel_shuffle(x[0], 2); },
                     {{real({2, 4, 2, 3})}, {transposed({8, 1, 2})}, {real({0, 4, 1, 1})}}));
  rows.push_back(row("pixel_unshuffle", [](const Tensors& x) { return rg::pixel_unshuffle(x[0], 2); },
                     {{real({2, 1, 2, 4})}, {transposed({2, 2, 2})}}));
  rows.push_back(row("channel_shuffle", [](const Tensors& x) { return rg::channel_shuffle(x[0], 2); },
                     {{real({2, 4, 3})}, {transposed({1, 6, 2, 1})}}));
  for (const int size : {2, 3})
    rows.push_back(
        row("local_response_norm, size " + std::to_string(size),
            [size](const Tensors& x) { return rg::local_response_norm(x[0], size, 1.5, 0.7, 1.2); },
            {{real({2, 4, 3})}, {transposed({1, 3, 2, 2})}}));
}

// Points at distances from the places where a weight has a kink.
void add_grids(Rows& rows) {
  for (const std::string_view mode : {"bilinear", "nearest", "bicubic"})
    for (const std::string_view padding : {"zeros", "border", "reflection"})
      for (const bool align : {false, true})
        rows.push_back(
            row(std::string(mode) + ", " + std::string(padding) + (align ? ", aligned" : ""),
                [=](const Tensors& x) { return rg::grid_sample(x[0], x[1], mode, padding, align); },
                {{real({1, 2, 3, 4}), real({1, 2, 1, 2}, {-1.2, 1.2})},
                 {transposed({2, 1, 2, 3}), fixed(real({2, 1, 2, 2}))},
                 {fixed(real({1, 1, 3, 2})), transposed({1, 2, 1, 2}, {-1.2, 1.2})},
                 {real({1, 1, 2, 3, 2}), real({1, 1, 1, 2, 3})}}));
  rows.push_back(row("affine_grid",
                     [](const Tensors& x) {
                       return rg::affine_grid(x[0], {2, 1, 2, 3}, false);
                     },
                     {{real({2, 2, 3})}, {transposed({2, 2, 3})}}));
  rows.push_back(row("affine_grid of volumes",
                     [](const Tensors& x) {
                       return rg::affine_grid(x[0], {1, 1, 2, 1, 3}, true);
                     },
                     {{real({1, 3, 4})}}));
}

void add_bags(Rows& rows) {
  const Tensor list = ints({1, 0, 2, 1, 4}, {5}), starts = ints({0, 2, 2}, {3}),
               table = ints({1, 0, 2, 1}, {2, 2});
  for (const char* mode : {"sum", "mean", "max"}) {
    const std::string m = mode;
    rows.push_back(
        row("embedding_bag, " + m,
            [m](const Tensors& x) { return rg::embedding_bag(x[1], x[0], x[2], false, m, {}, false, 4); },
            {{real({5, 3}), list, starts}, {transposed({5, 2}), list, starts}}));
    rows.push_back(row("embedding_bag of rows, " + m,
                       [m](const Tensors& x) { return rg::embedding_bag(x[1], x[0], {}, false, m); },
                       {{real({3, 2}), table}}));
  }
  rows.push_back(
      row("embedding_bag with weights",
          [](const Tensors& x) { return rg::embedding_bag(x[1], x[0], x[2], false, "sum", x[3], true); },
          {{real({5, 3}), list, ints({0, 2, 4}, {3}), real({5})},
           {fixed(real({5, 3})), list, ints({0, 2, 4}, {3}), strided({5})},
           {transposed({5, 3}), list, ints({0, 2, 4}, {3}), fixed(real({5}))}}));
}

}  // namespace

Rows window_rows() {
  Rows rows;
  add_patches(rows);
  add_channels(rows);
  add_grids(rows);
  add_bags(rows);
  return rows;
}

}  // namespace derivatives
