// Pooling against a plain loop over windows, and derivatives. Not tested here: PyTorch's values
// (tests/conformance), speed.
#include "ops/pooling.h"

#include "ops/index_ops.h"
#include "ops/interpolate.h"
#include "ops/join.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/ops/gradcheck.h"
#include "tracer/backward/compile_backward.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

// Windows along a dim of n elements: where each begins, perhaps in the padding, and where it ends.
struct Window {
  int64_t begin, end, step;
};
std::vector<Window> windows(int64_t n, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                            bool ceil) {
  std::vector<Window> list;
  for (int64_t begin = -padding;; begin += stride) {
    const int64_t end = begin + (kernel - 1) * dilation + 1;
    const bool whole = end <= n + padding, part = ceil && begin < n && end < n + padding + stride;
    if (!whole && !part) return list;
    list.push_back({begin, end, dilation});
  }
}
std::vector<Window> adaptive_windows(int64_t n, int64_t out) {
  std::vector<Window> list;
  for (int64_t i = 0; i < out; ++i) list.push_back({i * n / out, ((i + 1) * n + out - 1) / out, 1});
  return list;
}

struct Pooled {
  std::vector<double> largest, sum, inside;  // inside: how many elements a window has
  std::vector<double> place;
};
Pooled pool(const std::vector<double>& x, int64_t h, int64_t w, const std::vector<Window>& down,
            const std::vector<Window>& across) {
  Pooled p;
  for (size_t plane = 0; plane < x.size() / static_cast<size_t>(h * w); ++plane)
    for (const Window& v : down)
      for (const Window& u : across) {
        double largest = -INFINITY, sum = 0, inside = 0, place = -1;
        for (int64_t i = v.begin; i < v.end; i += v.step)
          for (int64_t j = u.begin; j < u.end; j += u.step) {
            if (i < 0 || j < 0 || i >= h || j >= w) continue;
            const double value = x[plane * static_cast<size_t>(h * w) + static_cast<size_t>(i * w + j)];
            if (place < 0 || value > largest || std::isnan(value))
              largest = value, place = static_cast<double>(i * w + j);
            sum += value;
            ++inside;
          }
        p.largest.push_back(largest);
        p.sum.push_back(sum);
        p.inside.push_back(inside);
        p.place.push_back(place);
      }
  return p;
}

void check_close(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> values = got.to_vector();
  const double tolerance = got.dtype() == kFloat64   ? 1e-12
                           : got.dtype() == kFloat32 ? 1e-5
                           : got.dtype() == kFloat16 ? 2e-3
                                                     : 1e-2;
  REQUIRE(values.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (!(std::isnan(values[i]) && std::isnan(want[i])) && values[i] != want[i])
      REQUIRE(std::abs(values[i] - want[i]) <= tolerance * (1 + std::abs(want[i])));
}

struct Case {
  int64_t h, w, kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
  bool ceil;
};
const Case kCases[] = {
    {5, 7, 2, 2, 2, 2, 0, 0, 1, 1, false},   {5, 7, 2, 2, 2, 2, 0, 0, 1, 1, true},
    {6, 41, 3, 3, 2, 2, 1, 1, 1, 1, false},  {9, 100, 3, 5, 1, 3, 1, 2, 1, 1, true},
    {1, 1, 1, 1, 1, 1, 0, 0, 1, 1, false},   {12, 37, 4, 2, 3, 1, 2, 1, 3, 2, false},
    {8, 64, 2, 3, 1, 2, 1, 1, 2, 2, true},   {200, 3, 5, 3, 7, 1, 0, 0, 1, 1, false},
    {3, 300, 1, 4, 1, 40, 0, 2, 1, 3, true}, {6, 70, 2, 2, 2, 2, 0, 0, 1, 1, false},
    {9, 100, 3, 3, 2, 2, 0, 0, 1, 1, false}, {4, 67, 2, 4, 2, 2, 0, 0, 1, 1, false},
    {3, 64, 1, 1, 1, 2, 0, 0, 1, 1, false},
};

TEST_CASE("pools of all dtypes and layouts are those of a plain loop") {
  for (const Case& c : kCases)
    for (ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16})
      for (bool permuted : {false, true}) {
        Tensor x = to(input({2, 3, c.h, c.w}).detach(), dtype);
        if (permuted) x = permute(clone(permute(x, {3, 1, 0, 2})), {2, 1, 3, 0});
        INFO(describe(x) << ", kernel " << c.kernel_h << "x" << c.kernel_w);
        const auto down = windows(c.h, c.kernel_h, c.stride_h, c.padding_h, c.dilation_h, c.ceil),
                   across = windows(c.w, c.kernel_w, c.stride_w, c.padding_w, c.dilation_w, c.ceil);
        const Pooled want = pool(x.to_vector(), c.h, c.w, down, across);
        const IntList kernel{c.kernel_h, c.kernel_w}, stride{c.stride_h, c.stride_w},
            padding{c.padding_h, c.padding_w};
        const MaxPoolResult got =
            max_pool2d_with_indices(x, kernel, stride, padding, {c.dilation_h, c.dilation_w}, c.ceil);
        check_close(got.values, want.largest);
        CHECK(got.indices.to_vector() == want.place);
        if (c.dilation_h * c.dilation_w > 1) continue;
        std::vector<double> mean = want.sum, total = want.sum;
        for (size_t i = 0; i < mean.size(); ++i) mean[i] /= want.inside[i], total[i] /= -3;
        check_close(avg_pool2d(x, kernel, stride, padding, c.ceil, false), mean);
        check_close(avg_pool2d(x, kernel, stride, padding, c.ceil, true, -3), total);
      }
}

TEST_CASE("adaptive pools cover the grid") {
  for (auto [h, w, oh, ow] :
       {std::array<int64_t, 4>{7, 10, 3, 4}, {5, 50, 5, 33}, {2, 3, 6, 7}, {40, 17, 1, 5}}) {
    const Tensor x = input({3, h, w}).detach();
    const Pooled want = pool(x.to_vector(), h, w, adaptive_windows(h, oh), adaptive_windows(w, ow));
    std::vector<double> mean = want.sum;
    for (size_t i = 0; i < mean.size(); ++i) mean[i] /= want.inside[i];
    check_close(adaptive_avg_pool2d(x, {oh, ow}), mean);
    const MaxPoolResult largest = adaptive_max_pool2d_with_indices(x, {oh, ow});
    CHECK(largest.values.to_vector() == want.largest);
    CHECK(largest.indices.to_vector() == want.place);
  }
  CHECK(adaptive_avg_pool2d(zeros({2, 3, 5, 6}), {std::nullopt, 2}).sizes() == IntArray{2, 3, 5, 2});
  CHECK(adaptive_avg_pool2d(zeros({2, 3, 5, 6}), 1).sizes() == IntArray{2, 3, 1, 1});
  CHECK(adaptive_max_pool1d(zeros({3, 5}), 0).sizes() == IntArray{3, 0});
}

TEST_CASE("pools in one and three dims are those in two, dim by dim") {
  const Tensor x = input({2, 3, 4, 5, 6}).detach();
  const Tensor flat = avg_pool2d(x.reshape({6, 4, 5, 6}).reshape({6, 4, 30}), {2, 1}, {1, 1});
  check_close(avg_pool3d(x, {2, 3, 2}, {1, 2, 2}),
              avg_pool2d(flat.reshape({6, 3, 5, 6}), {3, 2}, {2, 2}).to_vector());
  const Tensor line = input({2, 40}).detach();
  check_close(max_pool1d(line, 3, 2, 1), max_pool2d(unsqueeze(line, 1), {1, 3}, {1, 2}, {0, 1}).to_vector());
  const Tensor planes = max_pool2d(x.reshape({6, 4, 30}), {2, 1}, {1, 1}).reshape({6, 3, 5, 6});
  const MaxPoolResult cube = max_pool3d_with_indices(x, {2, 3, 2}, {1, 2, 2});
  check_close(cube.values, max_pool2d(planes, {3, 2}, {2, 2}).to_vector());
  const Tensor found = gather(x.reshape({6, 120}), 1, cube.indices.reshape({6, 18}));
  CHECK(found.to_vector() == cube.values.to_vector());
}

TEST_CASE("of equal elements the first is taken, and nan before everything") {
  const double nan = NAN, inf = INFINITY;
  const auto places = [](const std::vector<double>& x, int64_t kernel, int64_t stride = 1) {
    const Tensor row = tensor(x, {1, 1, static_cast<int64_t>(x.size())}, {kFloat32});
    return max_pool1d_with_indices(row, kernel, stride).indices.to_vector();
  };
  CHECK(places({2, 2, 1, 1, 2}, 3) == std::vector<double>{0, 1, 4});
  CHECK(places({1, nan, 5, nan}, 3) == std::vector<double>{1, 3});
  CHECK(places({-inf, -inf, -inf}, 2) == std::vector<double>{0, 1});
  std::vector<double> pairs, first_of_pairs;
  for (double at = 0; at < 100; at += 10) {
    pairs.insert(pairs.end(), {2, 2, nan, 5, 5, nan, nan, nan, -inf, -inf});
    first_of_pairs.insert(first_of_pairs.end(), {at, at + 2, at + 5, at + 7, at + 8});
  }
  CHECK(places(pairs, 2, 2) == first_of_pairs);
  const Tensor ints = tensor({-5, -9, 3, 3}, {1, 2, 2}, {kInt64});
  CHECK(max_pool2d(ints, 2).to_vector() == std::vector<double>{3});
  CHECK(avg_pool2d(ints, 2).to_vector() == std::vector<double>{-2});
}

TEST_CASE("averages of integers wrap around") {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  const Tensor x = full({1, 1, 4}, Scalar(least), {kInt64});
  const auto value = [](const Tensor& t) { return select(t, -1, 0).item<int64_t>(); };
  CHECK(value(avg_pool1d(x, 2)) == 0);
  const Tensor plane = view(x, {1, 1, 2, 2});
  CHECK(value(view(avg_pool2d(plane, 1, {}, 0, false, true, -1), {4})) == least);
  CHECK(value(view(avg_pool2d(plane, 1, {}, 0, false, true, least), {4})) == 1);
}

TEST_CASE("a window may have infinite neighbours") {
  const Tensor x = tensor({INFINITY, 1, 2, 3, 4, 5}, {1, 1, 6}, {kFloat32});
  CHECK(avg_pool1d(x, 2).to_vector() == std::vector<double>{INFINITY, 2.5, 4.5});
  CHECK(adaptive_avg_pool1d(x, 2).to_vector() == std::vector<double>{INFINITY, 4});
}

TEST_CASE("derivatives of pools") {
  const Tensor x = input({2, 3, 5, 6});
  gradcheck([](const Tensors& in) { return max_pool2d(in[0], 2); }, {x});
  gradcheck([](const Tensors& in) { return max_pool2d(in[0], {3, 2}, {1, 2}, {1, 0}, 1, true); }, {x});
  gradcheck([](const Tensors& in) { return max_pool2d(square(in[0]), 2, 3, 0, 2); }, {x});
  gradcheck([](const Tensors& in) { return avg_pool2d(in[0], 2, 1); }, {x});
  gradcheck(
      [](const Tensors& in) {
        return avg_pool2d(square(in[0]), {3, 2}, {2, 2}, {1, 1}, true, false);
      },
      {x});
  gradcheck([](const Tensors& in) { return avg_pool2d(in[0], 3, 2, 1, true, true, 7); }, {x});
  gradcheck([](const Tensors& in) { return avg_pool2d(in[0], 1, 3); }, {x});
  gradcheck([](const Tensors& in) { return adaptive_avg_pool2d(in[0], {2, 7}); }, {x});
  gradcheck([](const Tensors& in) { return adaptive_max_pool2d(in[0], {2, 4}); }, {x});
  const Tensor cube = input({2, 3, 4, 3}), line = input({2, 9});
  gradcheck([](const Tensors& in) { return max_pool3d(in[0], 2, 1); }, {cube});
  gradcheck([](const Tensors& in) { return avg_pool3d(in[0], 2, 1, 1); }, {cube});
  gradcheck([](const Tensors& in) { return adaptive_avg_pool3d(in[0], {2, 3, 2}); }, {cube});
  gradcheck([](const Tensors& in) { return max_pool1d(in[0], 3, 2); }, {line});
  gradcheck([](const Tensors& in) { return avg_pool1d(in[0], 3, 2, 1); }, {line});
}

TEST_CASE("gradients of small floats are added in float32") {
  // 301 windows give their gradient to the last element; in bfloat16 a sum of ones ends at 256.
  const Tensor low = zeros({1, 1, 1200}, {kBFloat16}), peak = tensor({1}, {1, 1, 1}, {kBFloat16});
  const Tensor x = cat({low, peak}, 2).requires_grad_();
  const Tensor g = autograd::grad({sum(max_pool1d(x, 601, 1, 300))}, {x})[0];
  CHECK(g.to_vector().back() == Approx(301).epsilon(0.005));
}

// The op by itself: its operands may be any that its schema allows.
Tensor max_pool_backward(const Tensor& g, const Tensor& places, const Shape& size) {
  return ops::emit<ops::MaxPoolBackward>({g.get(), places.get()}, {size}, {});
}

TEST_CASE("gradients at places in any layout") {
  const Tensor g = input({2, 2, 3}).detach(),
               places = tensor({0, 5, 2, 7, 7, 1, 3, 3, 0, 6, 2, 4}, {2, 2, 3}, {kInt64});
  const auto turned = [](const Tensor& t) { return transpose(clone(transpose(t, 1, 2)), 1, 2); };
  const std::vector<double> want = max_pool_backward(g, places, {2, 4}).to_vector();
  CHECK(max_pool_backward(turned(g), turned(places), {2, 4}).to_vector() == want);
  for (const double wrong : {-1.0, 8.0}) {
    const Tensor at = index_copy(places, 2, tensor({1}, {kInt64}), full({2, 2, 1}, wrong, {kInt64}));
    CHECK_THROWS_AS(max_pool_backward(g, at, {2, 4}), Error);
  }
}

TEST_CASE("gradients of grids without elements are zeros") {
  const auto used_memory = [](const Shape& shape) { full(shape, 7, {kFloat64}); };
  for (const Shape& grid : {Shape{0, 3, 3}, Shape{int64_t{1} << 40, 0, 3}, Shape{int64_t{1} << 40, 3, 0}}) {
    used_memory({2, 2, 2});
    CHECK(max_pool_backward(zeros(grid, {kFloat64}), zeros(grid, {kInt64}), {2, 2, 2}).to_vector() ==
          std::vector<double>(8));
  }
  const Tensor x = input({1, 2, 3, 4});
  for (const PerDim<std::optional<int64_t>>& size : {PerDim<std::optional<int64_t>>{0, 2}, {2, 0}}) {
    used_memory({1, 2, 3, 4});
    CHECK(autograd::grad({sum(adaptive_avg_pool2d(x, size))}, {x})[0].to_vector() == std::vector<double>(24));
  }
}

TEST_CASE("a captured backward serves grids of other sizes") {
  CompiledBackward backward = compile_backward();
  for (int64_t n :
       {20, 26, 32}) {  // sizes that are never equal to each other by chance: such would share a symbol
    const auto loss = [n](const Tensor& x) {
      const Tensor y = avg_pool2d(max_pool2d(x, 2), 3, 2, 1);
      return sum(
          square(interpolate(adaptive_avg_pool2d(y, {4, n - 1}), {.scale_factor = 1.5, .mode = "bicubic"})));
    };
    const Tensor x = input({2, 3, n, 2 * n + 3}), same = x.detach().requires_grad_();
    backward(loss(x));
    CHECK(x.grad().to_vector() == autograd::grad({loss(same)}, {same})[0].to_vector());
  }
  CHECK(backward.stats().captures == 1);
}

TEST_CASE("empty batches and refusals") {
  CHECK(max_pool2d(zeros({0, 2, 4, 4}), 2).sizes() == IntArray{0, 2, 2, 2});
  CHECK(avg_pool2d(zeros({0, 2, 4, 4}), 2).sizes() == IntArray{0, 2, 2, 2});
  const Tensor x = zeros({2, 3, 6, 7});
  const auto category = [](auto f) {
    try {
      f();
    } catch (const Error& e) {
      return e.category();
    }
    return Category::unsupported;
  };
  const Category bad = Category::bad_argument;
  CHECK(category([&] { max_pool2d(x, 0); }) == bad);
  CHECK(category([&] { max_pool2d(x, 2, 0); }) == bad);
  CHECK(category([&] { max_pool2d(x, 3, 1, 2); }) == bad);
  CHECK(category([&] { max_pool2d(x, 3, 1, -1); }) == bad);
  CHECK(category([&] { max_pool2d(x, 2, 1, 0, 0); }) == bad);
  CHECK(category([&] { max_pool2d(x, 8); }) == bad);
  CHECK(category([&] { max_pool2d(x, {2, 2, 2}); }) == bad);
  CHECK(category([&] { max_pool2d(zeros({2, 0, 4, 4}), 2); }) == bad);
  CHECK(category([&] { max_pool2d(zeros({4, 4}), 2); }) == Category::bad_dim);
  CHECK(category([&] { max_pool2d(to(x, kBool), 2); }) == Category::dtype_mismatch);
  CHECK(category([&] { avg_pool2d(to(x, kInt32), 2); }) == Category::dtype_mismatch);
  CHECK(category([&] { avg_pool2d(x, 9); }) == bad);
  CHECK(category([&] { avg_pool2d(x, 2, 2, 0, false, true, 0); }) == bad);
  CHECK(category([&] { adaptive_avg_pool2d(x, {-1, 2}); }) == bad);
  CHECK(category([&] { adaptive_avg_pool2d(x, {1, 2, 3}); }) == bad);
  CHECK(category([&] { adaptive_avg_pool2d(zeros({3, 0, 4}), 2); }) == bad);
  CHECK(category([&] { adaptive_avg_pool1d(zeros({4}), 2); }) == Category::bad_dim);
}

}  // namespace
}  // namespace retrograd
