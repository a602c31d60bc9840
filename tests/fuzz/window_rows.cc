// Rows of convolutions, pools and interpolation: on grids of one and two dims.
#include "ops/convolution.h"
#include "ops/interpolate.h"
#include "ops/pooling.h"
#include "tests/fuzz/chooser.h"
#include "tests/fuzz/op_table.h"

namespace fuzz {
namespace {

using Choose = void (*)(Chooser&);
template <class F>
void add(OpRows& rows, std::string_view name, Choose choose, F f) {
  rows.push_back({name, choose, [f](const Args& a) { return Tensors{f(a)}; }, false, false});
}

bool has_elements(const Tensor& t) { return t.numel() > 0; }

/// A batch of signals, a weight of so many features, perhaps a bias; stride and padding.
template <int Dims, bool Transposed>
void convolution(Chooser& c) {
  const Tensor x =
      c.value(Dims + 2, Dims + 2, [](const Tensor& t) { return has_elements(t) && t.numel() < 200; });
  const int64_t features = c.length(3);
  IntArray weight = {features, x.size(1)};
  if (Transposed) std::swap(weight[0], weight[1]);
  for (int d = 0; d < Dims; ++d) weight.push_back(c.length(2));
  c.shaped(weight);
  if (c.random.chance(0.5)) c.shaped({features});
  c.integer(c.length(2));
  c.integer(c.random.below(2));
}

void add_convolutions(OpRows& rows) {
  add(rows, "conv1d", convolution<1, false>,
      [](auto& a) { return rg::conv1d(a[0], a[1], a.optional(2), a.i(0), a.i(1)); });
  add(rows, "conv2d", convolution<2, false>,
      [](auto& a) { return rg::conv2d(a[0], a[1], a.optional(2), a.i(0), a.i(1)); });
  add(rows, "conv_transpose1d", convolution<1, true>,
      [](auto& a) { return rg::conv_transpose1d(a[0], a[1], a.optional(2), a.i(0)); });
  add(rows, "conv_transpose2d", convolution<2, true>,
      [](auto& a) { return rg::conv_transpose2d(a[0], a[1], a.optional(2), a.i(0)); });
}

void add_pools(OpRows& rows) {
  const Choose grid = [](Chooser& c) {
    const Tensor x = c.value(3, 4, has_elements);
    c.integer(c.length(std::min<int64_t>(2, std::min(x.size(-1), x.size(-2)))));
    c.integer(c.length(2));
  };
  rows.push_back({"max_pool2d", grid, [](const Args& a) {
                    const auto [values, indices] = rg::max_pool2d_with_indices(a[0], a.i(0), a.i(1));
                    return Tensors{values, indices};
                  }});
  add(rows, "avg_pool2d", grid, [](auto& a) { return rg::avg_pool2d(a[0], a.i(0), a.i(1)); });
  add(rows, "adaptive_avg_pool2d", grid,
      [](auto& a) { return rg::adaptive_avg_pool2d(a[0], rg::AdaptiveSize(a.i(1))); });
  add(rows, "adaptive_max_pool2d", grid,
      [](auto& a) { return rg::adaptive_max_pool2d(a[0], rg::AdaptiveSize(a.i(1))); });
  const Choose line = [](Chooser& c) {
    c.value(3, 3, has_elements);
    c.integer(c.length(5));
  };
  add(rows, "interpolate_nearest", line,
      [](auto& a) { return rg::interpolate(a[0], {.size = a.i(0), .mode = "nearest"}); });
  add(rows, "interpolate_linear", line,
      [](auto& a) { return rg::interpolate(a[0], {.size = a.i(0), .mode = "linear"}); });
}

}  // namespace

void add_window_rows(OpRows& rows) {
  add_convolutions(rows);
  add_pools(rows);
}

}  // namespace fuzz
