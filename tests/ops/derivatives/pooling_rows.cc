// Resampled grids: pools, with windows that overlap, leave gaps or reach into the padding, and interpolation
// in each mode to larger and smaller grids.
#include "ops/pooling.h"

#include "ops/interpolate.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

// Numbers without pattern are further apart than a step of a difference: the largest one stays the largest.
void add_max_pools(Rows& rows) {
  rows.push_back(row("max_pool1d", [](const Tensors& x) { return rg::max_pool1d(x[0], 2); },
                     {{real({2, 2, 5})}, {transposed({2, 4})}, {strided({1, 1, 3})}, {real({0, 1, 4})}}));
  rows.push_back(row("max_pool1d, windows that overlap, dilated, padded, with a rest",
                     [](const Tensors& x) { return rg::max_pool1d(x[0], 3, 2, 1, 2, true); },
                     {{real({2, 1, 8})}, {expanded({2, 7})}}));
  rows.push_back(row("max_pool2d, each dim its own way",
                     [](const Tensors& x) {
                       return rg::max_pool2d(x[0], {2, 3}, {1, 2}, {1, 0}, {2, 1}, true);
                     },
                     {{real({1, 2, 3, 4})}, {transposed({2, 4, 5})}, {real({2, 1, 2, 3})}}));
  rows.push_back({"max_pool2d and its indices",
                  [](const Tensors& x) {
                    const rg::MaxPoolResult pool = rg::max_pool2d_with_indices(x[0], 2, 1);
                    return Tensors{pool.values, pool.indices};
                  },
                  {{real({1, 2, 3, 3})}, {transposed({1, 3, 2})}}});
  rows.push_back(row("max_pool3d",
                     [](const Tensors& x) {
                       return rg::max_pool3d(x[0], 2, {2, 1, 1}, 1);
                     },
                     {{real({1, 1, 2, 2, 3})}, {transposed({2, 2, 2, 1})}}));
  rows.push_back(row("adaptive_max_pool1d", [](const Tensors& x) { return rg::adaptive_max_pool1d(x[0], 3); },
                     {{real({2, 2, 5})}, {transposed({1, 2})}}));
  rows.push_back(row("adaptive_max_pool2d",
                     [](const Tensors& x) {
                       return rg::adaptive_max_pool2d(x[0], {2, std::nullopt});
                     },
                     {{transposed({1, 2, 3, 2})}, {real({1, 5, 1})}}));
  rows.push_back(row("adaptive_max_pool3d",
                     [](const Tensors& x) {
                       return rg::adaptive_max_pool3d(x[0], {2, 1, 3});
                     },
                     {{real({1, 1, 3, 2, 4})}}));
}

void add_avg_pools(Rows& rows) {
  rows.push_back(row("avg_pool1d", [](const Tensors& x) { return rg::avg_pool1d(x[0], 2); },
                     {{real({2, 2, 5})}, {transposed({2, 4})}, {strided({1, 1, 3})}, {real({0, 1, 4})}}));
  for (const bool padding_counts : {true, false})
    rows.push_back(row(padding_counts ? "avg_pool1d, the padding counted" : "avg_pool1d, without the padding",
                       [=](const Tensors& x) { return rg::avg_pool1d(x[0], 3, 2, 1, true, padding_counts); },
                       {{real({2, 1, 6})}, {expanded({2, 4})}}));
  rows.push_back(row("avg_pool2d, each dim its own way",
                     [](const Tensors& x) {
                       return rg::avg_pool2d(x[0], {3, 2}, {1, 3}, {1, 0}, true, false);
                     },
                     {{real({1, 2, 3, 4})}, {transposed({2, 2, 3})}}));
  rows.push_back(row("avg_pool2d with a divisor",
                     [](const Tensors& x) { return rg::avg_pool2d(x[0], 2, 1, 1, false, true, -3); },
                     {{real({1, 1, 3, 2})}}));
  rows.push_back(row("avg_pool3d",
                     [](const Tensors& x) {
                       return rg::avg_pool3d(x[0], 2, {1, 2, 1}, 1);
                     },
                     {{real({1, 1, 2, 3, 2})}, {transposed({2, 1, 2, 2})}}));
  rows.push_back(row("adaptive_avg_pool1d", [](const Tensors& x) { return rg::adaptive_avg_pool1d(x[0], 3); },
                     {{real({2, 2, 5})}, {transposed({1, 2})}, {real({1, 1})}}));
  rows.push_back(row("adaptive_avg_pool2d",
                     [](const Tensors& x) {
                       return rg::adaptive_avg_pool2d(x[0], {std::nullopt, 2});
                     },
                     {{transposed({1, 2, 2, 3})}, {real({1, 1, 5})}}));
  rows.push_back(row("adaptive_avg_pool2d to one element",
                     [](const Tensors& x) { return rg::adaptive_avg_pool2d(x[0], 1); },
                     {{transposed({1, 2, 2, 3})}}));
  rows.push_back(row("adaptive_avg_pool3d",
                     [](const Tensors& x) {
                       return rg::adaptive_avg_pool3d(x[0], {2, 1, 3});
                     },
                     {{real({1, 1, 3, 2, 4})}}));
}

std::string_view linear_mode(size_t dims) {
  return dims == 1 ? "linear" : dims == 2 ? "bilinear" : "trilinear";
}

// A larger grid and a smaller one, by sizes and by factors that do not divide.
void add_interpolation(Rows& rows, const std::string& name, const rg::InterpolateOptions& options,
                       const std::vector<Tensors>& cases) {
  const size_t dims = static_cast<size_t>(cases[0][0].dim()) - 2;
  const auto add = [&](const std::string& to, rg::InterpolateOptions o) {
    rows.push_back(row(
        name + to, [o](const Tensors& x) { return rg::interpolate(x[0], o); }, cases));
  };
  rg::InterpolateOptions o = options;
  for (const int64_t first : {5, 2}) {
    std::vector<int64_t> size{first, 4, 1};
    size.resize(dims);
    o.size = size;
    add(first == 5 ? " to a larger grid" : " to a smaller grid", o);
  }
  o.size = {};
  o.scale_factor = 1.4;
  add(" by a factor", o);
  o.recompute_scale_factor = true;
  add(" by a factor that is rounded", o);
}

void add_interpolations(Rows& rows) {
  const std::vector<Tensors> grids[3] = {
      {{real({1, 2, 3})}, {transposed({2, 1, 3})}, {real({1, 1, 1})}, {real({0, 1, 3})}},
      {{real({1, 1, 3, 2})}, {transposed({1, 2, 3, 3})}},
      {{real({1, 1, 3, 1, 2})}}};
  for (size_t dims = 1; dims <= 3; ++dims) {
    const std::string in = " in " + std::to_string(dims) + "d";
    for (const std::string_view mode : {"nearest", "nearest-exact", "area"})
      add_interpolation(rows, std::string(mode) + in, {.mode = std::string(mode)}, grids[dims - 1]);
    for (const bool align : {false, true})
      add_interpolation(rows, std::string(linear_mode(dims)) + (align ? ", corners aligned" : ""),
                        {.mode = std::string(linear_mode(dims)), .align_corners = align}, grids[dims - 1]);
  }
  for (const bool align : {false, true})
    for (const std::string_view mode : {"bilinear", "bicubic", "lanczos"})
      for (const bool antialias : {false, true}) {
        if (!antialias && mode != "bicubic") continue;  // done, or not offered
        if (align && mode == "lanczos") continue;       // likewise
        add_interpolation(
            rows, std::string(mode) + (align ? ", corners aligned" : "") + (antialias ? ", antialiased" : ""),
            {.mode = std::string(mode), .align_corners = align, .antialias = antialias}, grids[1]);
      }
}

}  // namespace

Rows pooling_rows() {
  Rows rows;
  add_max_pools(rows);
  add_avg_pools(rows);
  add_interpolations(rows);
  return rows;
}

}  // namespace derivatives
