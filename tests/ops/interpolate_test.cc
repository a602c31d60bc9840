// Interpolation against sums over all elements with the kernel of the mode, and derivatives. Not tested
// here: PyTorch's values (tests/conformance), speed.
#include "ops/interpolate.h"

#include "ops/pooling.h"
#include "ops/unary.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

double hat(double d) { return std::max(0.0, 1 - std::abs(d)); }
double cubic(double d, double a) {
  d = std::abs(d);
  if (d >= 2) return 0;
  return d < 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}
double sinc(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }
double lanczos(double d) { return std::abs(d) < 3 ? sinc(d) * sinc(d / 3) : 0; }

// Row j of the matrix along a dim of n elements.
using Rows = std::vector<std::vector<double>>;
Rows rows(int64_t n, int64_t out, const InterpolateOptions& o, double factor) {
  const bool align = o.align_corners.value_or(false), is_cubic = o.mode == "bicubic";
  const double step = align        ? (out > 1 ? double(n - 1) / double(out - 1) : 0)
                      : factor > 0 ? 1 / factor
                                   : double(n) / double(out);
  Rows matrix;
  for (int64_t j = 0; j < out; ++j) {
    std::vector<double> row(static_cast<size_t>(n), 0.0);
    const auto add = [&](int64_t i, double weight) {
      row[size_t(std::clamp<int64_t>(i, 0, n - 1))] += weight;
    };
    const double at = align ? double(j) * step : (double(j) + 0.5) * step - 0.5;
    if (o.mode == "nearest") {
      add(int64_t(std::floor(double(j) * step)), 1);
    } else if (o.mode == "nearest-exact") {
      add(int64_t(std::floor((double(j) + 0.5) * step)), 1);
    } else if (o.antialias) {
      const double wide = std::max(step, 1.0), center = (double(j) + 0.5) * step - 0.5;
      double total = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double d = (double(i) - center) / wide;
        row[size_t(i)] = o.mode == "lanczos" ? lanczos(d) : is_cubic ? cubic(d, -0.5) : hat(d);
        total += row[size_t(i)];
      }
      for (double& weight : row) weight /= total;
    } else {
      const double place = is_cubic ? at : std::clamp(at, 0.0, double(n - 1));
      for (int64_t i = -2; i < n + 3; ++i)
        add(i, is_cubic ? cubic(double(i) - place, -0.75) : hat(double(i) - place));
    }
    matrix.push_back(row);
  }
  return matrix;
}

// x [planes, h, w] with both dims multiplied by their matrix.
std::vector<double> apply(const std::vector<double>& x, const Rows& down, const Rows& across) {
  const size_t h = down[0].size(), w = across[0].size();
  std::vector<double> y;
  for (size_t plane = 0; plane < x.size() / (h * w); ++plane)
    for (const auto& v : down)
      for (const auto& u : across) {
        double sum = 0;
        for (size_t i = 0; i < h; ++i)
          for (size_t j = 0; j < w; ++j) sum += v[i] * u[j] * x[(plane * h + i) * w + j];
        y.push_back(sum);
      }
  return y;
}

void check_close(const Tensor& got, const std::vector<double>& want, double tolerance) {
  const std::vector<double> values = got.to_vector();
  REQUIRE(values.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) REQUIRE(std::abs(values[i] - want[i]) <= tolerance);
}

const InterpolateOptions kModes[] = {
    {.mode = "nearest"},
    {.mode = "nearest-exact"},
    {.mode = "bilinear"},
    {.mode = "bilinear", .align_corners = true},
    {.mode = "bicubic"},
    {.mode = "bicubic", .align_corners = true},
    {.mode = "bilinear", .antialias = true},
    {.mode = "bicubic", .antialias = true},
    {.mode = "lanczos", .antialias = true},
};

TEST_CASE("every mode is the product of the matrices of its kernel") {
  for (InterpolateOptions o : kModes)
    for (ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16})
      for (auto [h, w, oh, ow] : {std::array<int64_t, 4>{3, 5, 7, 4},
                                  {6, 40, 3, 90},
                                  {50, 4, 7, 9},
                                  {2, 3, 1, 64},
                                  {4, 130, 9, 10},
                                  {1, 1, 5, 2}}) {
        const Tensor x = to(input({2, 2, h, w}).detach(), dtype);
        INFO(o.mode << " of " << describe(x) << " to " << oh << "x" << ow);
        o.size = {oh, ow};
        const double tolerance = dtype == kFloat64   ? 1e-12
                                 : dtype == kFloat32 ? 1e-4
                                 : dtype == kFloat16 ? 4e-3
                                                     : 3e-2;
        const std::vector<double> want = apply(x.to_vector(), rows(h, oh, o, 0), rows(w, ow, o, 0));
        check_close(interpolate(x, o), want, tolerance);
        const Tensor turned = permute(clone(permute(x, {3, 2, 1, 0})), {3, 2, 1, 0});
        check_close(interpolate(turned, o), want, tolerance);
      }
}

TEST_CASE("a scale factor gives the size, and the scale unless that is recomputed") {
  const Tensor x = input({1, 2, 5, 7}).detach();
  for (const char* mode : {"nearest-exact", "bilinear", "bicubic"}) {
    InterpolateOptions o{.scale_factor = {1.5, 0.7}, .mode = mode};
    const Tensor y = interpolate(x, o);
    CHECK(y.sizes() == IntArray{1, 2, 7, 4});
    check_close(y, apply(x.to_vector(), rows(5, 7, o, 1.5), rows(7, 4, o, 0.7)), 1e-12);
    o.recompute_scale_factor = true;
    check_close(interpolate(x, o), apply(x.to_vector(), rows(5, 7, o, 0), rows(7, 4, o, 0)), 1e-12);
  }
  CHECK(interpolate(x, {.scale_factor = 2}).sizes() == IntArray{1, 2, 10, 14});
}

TEST_CASE("one and three dims, area, bytes") {
  const Tensor line = input({2, 3, 9}).detach(), cube = input({2, 2, 3, 4, 5}).detach();
  check_close(interpolate(line, {.size = 13, .mode = "linear"}),
              interpolate(line.reshape({2, 3, 1, 9}), {.size = {1, 13}, .mode = "bilinear"}).to_vector(),
              1e-12);
  const Tensor planes = interpolate(cube.reshape({2, 6, 4, 5}), {.size = {6, 3}, .mode = "bilinear"});
  check_close(interpolate(cube, {.size = {5, 6, 3}, .mode = "trilinear"}),
              interpolate(planes.reshape({2, 2, 3, 18}), {.size = {5, 18}, .mode = "bilinear"}).to_vector(),
              1e-12);
  check_close(interpolate(cube, {.size = {2, 6, 3}, .mode = "area"}),
              adaptive_avg_pool3d(cube, {2, 6, 3}).to_vector(), 0);
  const Tensor bytes = tensor({1, 2, 255}, {1, 1, 3}, {kUInt8});
  CHECK(interpolate(bytes, {.scale_factor = 2}).to_vector() == std::vector<double>{1, 1, 2, 2, 255, 255});
}

TEST_CASE("derivatives of interpolation") {
  const Tensor x = input({1, 2, 3, 4});
  for (InterpolateOptions o : kModes) {
    INFO(o.mode);
    o.size = {5, 3};
    gradcheck([&](const Tensors& in) { return interpolate(square(in[0]), o); }, {x});
    o.size = {};
    o.scale_factor = {0.6, 2.3};
    gradcheck([&](const Tensors& in) { return interpolate(in[0], o); }, {x});
  }
  gradcheck([](const Tensors& in) { return interpolate(in[0], {.size = {4, 2}, .mode = "area"}); }, {x});
  gradcheck(
      [](const Tensors& in) {
        return interpolate(in[0], {.size = {3, 2, 5}, .mode = "trilinear"});
      },
      {input({1, 1, 2, 3, 2})});
  gradcheck([](const Tensors& in) { return interpolate(in[0], {.size = 7, .mode = "linear"}); },
            {input({1, 2, 4})});
}

TEST_CASE("empty batches and refusals") {
  CHECK(interpolate(zeros({0, 2, 3, 4}), {.size = 2}).sizes() == IntArray{0, 2, 2, 2});
  const Tensor x = zeros({2, 3, 6, 7});
  const auto category = [](const Tensor& x, const InterpolateOptions& o) {
    try {
      interpolate(x, o);
    } catch (const Error& e) {
      return e.category();
    }
    return Category::unsupported;
  };
  const Category bad = Category::bad_argument;
  CHECK(category(x, {}) == bad);
  CHECK(category(x, {.size = 2, .scale_factor = 2}) == bad);
  CHECK(category(x, {.size = {2}}) == bad);
  CHECK(category(x, {.scale_factor = {2, 2, 2}}) == bad);
  CHECK(category(x, {.size = 0}) == bad);
  CHECK(category(x, {.scale_factor = 0.01}) == bad);
  CHECK(category(x, {.scale_factor = -2}) == bad);
  CHECK(category(x, {.scale_factor = NAN}) == bad);
  CHECK(category(x, {.size = 2, .mode = "cubic"}) == bad);
  CHECK(category(x, {.size = 2, .align_corners = false}) == bad);
  CHECK(category(x, {.size = 2, .antialias = true}) == bad);
  CHECK(category(x, {.size = 2, .mode = "lanczos"}) == bad);
  CHECK(category(x, {.size = 2, .recompute_scale_factor = true}) == bad);
  CHECK(category(zeros({2, 0, 3, 4}), {.size = 2}) == bad);
  CHECK(category(zeros({3, 4}), {.size = 2}) == Category::bad_dim);
  CHECK(category(zeros({1, 3, 4}), {.size = 2, .mode = "bilinear"}) == Category::bad_dim);
  CHECK(category(to(x, kInt64), {.size = 2}) == Category::dtype_mismatch);
  CHECK(category(to(x, kUInt8), {.size = 2, .mode = "bilinear"}) == Category::dtype_mismatch);
}

}  // namespace
}  // namespace retrograd
