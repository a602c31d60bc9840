// Normalisations against means and variances in double, and derivatives. Not tested here: PyTorch's values
// (tests/conformance), speed.
#include "ops/norms.h"

#include "engine/saved_tensor_hooks.h"
#include "ops/unary.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::Function;
using testing::gradcheck;
using testing::input;

struct Stats {
  double mean = 0, var = 0;
};

template <class At>
Stats stats_of(size_t n, const At& at) {
  Stats s;
  for (size_t i = 0; i < n; ++i) s.mean += at(i) / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) s.var += (at(i) - s.mean) * (at(i) - s.mean) / static_cast<double>(n);
  return s;
}

TEST_CASE("layer_norm for lengths around a register and a chunk") {
  for (ScalarType dtype : {kFloat64, kFloat32, kBFloat16})
    for (int64_t n : {1, 2, 15, 16, 33, 5000}) {
      const double tolerance = dtype == kFloat64 ? 1e-11 : dtype == kFloat32 ? 2e-5 : 4e-2;
      const Tensor x = to(input({3, n}, 99, 101, 4).detach(), dtype),
                   w = to(input({n}, 0.5, 2, 5).detach(), dtype);
      const Tensor b = to(input({n}, -1, 1, 6).detach(), dtype);
      const std::vector<double> vx = x.to_vector(), vw = w.to_vector(), vb = b.to_vector();
      const std::vector<double> full = layer_norm(x, {n}, w, b).to_vector(),
                                plain = layer_norm(x, {n}).to_vector();
      const std::vector<double> shifted = layer_norm(x, {n}, {}, b).to_vector();
      for (size_t r = 0; r < 3; ++r) {
        const size_t m = static_cast<size_t>(n);
        const Stats s = stats_of(m, [&](size_t i) { return vx[r * m + i]; });
        for (size_t i = 0; i < m; ++i) {
          const double xhat = (vx[r * m + i] - s.mean) / std::sqrt(s.var + 1e-5);
          REQUIRE(std::abs(plain[r * m + i] - xhat) <= tolerance);
          REQUIRE(std::abs(full[r * m + i] - (xhat * vw[i] + vb[i])) <= 3 * tolerance);
          REQUIRE(std::abs(shifted[r * m + i] - (xhat + vb[i])) <= 2 * tolerance);
        }
      }
    }
}

TEST_CASE("rms_norm divides by the root of the mean square") {
  const Tensor y = rms_norm(tensor({3, 4}, {kFloat64}), {2}, tensor({1, 2}, {kFloat64}), 0.0);
  CHECK(y.to_vector()[0] == Approx(3 / std::sqrt(12.5)));
  CHECK(y.to_vector()[1] == Approx(8 / std::sqrt(12.5)));
}

TEST_CASE("batch_norm in training moves the running statistics") {
  const Tensor x = to(input({4, 2, 3}, -2, 5, 8).detach(), kFloat32);
  const Tensor mean = tensor({1, -1}, {kFloat32}), var = tensor({2, 0.5}, {kFloat32});
  const Tensor y = batch_norm(x, {}, {}, mean, var, true, 0.25, 1e-3);
  const std::vector<double> v = x.to_vector();
  for (size_t c = 0; c < 2; ++c) {
    const auto at = [&](size_t i) { return v[(i / 3 * 2 + c) * 3 + i % 3]; };
    const Stats s = stats_of(12, at);
    CHECK(mean.to_vector()[c] == Approx(0.75 * (c == 0 ? 1 : -1) + 0.25 * s.mean).epsilon(1e-5));
    CHECK(var.to_vector()[c] == Approx(0.75 * (c == 0 ? 2 : 0.5) + 0.25 * s.var * 12 / 11).epsilon(1e-5));
    CHECK(y.to_vector()[c * 3 + 1] == Approx((at(1) - s.mean) / std::sqrt(s.var + 1e-3)).epsilon(1e-4));
  }
}

TEST_CASE("group_norm of one group per channel is instance_norm, and of one group layer_norm") {
  const Tensor x = input({2, 4, 3}).detach();
  const auto close = [](const Tensor& a, const Tensor& b) {
    return sum(square(sub(a, b))).item<double>() < 1e-20;
  };
  CHECK(close(group_norm(x, 4), instance_norm(x)));
  CHECK(close(group_norm(x, 1), layer_norm(x, {4, 3})));
  CHECK_FALSE(close(group_norm(x, 2), instance_norm(x)));
}

// Values and gradients of a normalisation with weight and bias by channel, compared with a composition of ops.
void check_by_channel(const Function& norm, const Tensor& x, double tolerance) {
  const Dim channels = x.impl().shape()[1];
  const auto parameter = [&](int seed) {
    return to(input({channels}, 0.5, 2, seed).detach(), x.dtype()).requires_grad_();
  };
  Shape beside{1, channels};
  beside.resize(x.impl().rank());
  const Function apart = [&](const Tensors& in) {
    return add(mul(norm({in[0]}), reshape_to(in[1], beside)), reshape_to(in[2], beside));
  };
  const Tensors in{x, parameter(2), parameter(3)};
  std::vector<Tensors> found;
  for (const Function& f : {norm, apart}) {
    const Tensor y = f(in);
    const Tensor g = to(input(y.impl().shape(), -1, 1, 9).detach(), x.dtype());
    found.push_back(autograd::grad({y}, in, {g}));
    found.back().push_back(y.detach());
  }
  for (size_t i = 0; i < 4; ++i) {
    const std::vector<double> a = found[0][i].to_vector(), b = found[1][i].to_vector();
    REQUIRE(a.size() == b.size());
    for (size_t k = 0; k < a.size(); ++k) REQUIRE(std::abs(a[k] - b[k]) <= tolerance * (1 + std::abs(b[k])));
  }
}

TEST_CASE("weights by channel are like products and sums after the normalisation") {
  const auto of = [](const Tensors& in, size_t i) { return in.size() > 1 ? in[i] : Tensor(); };
  const std::vector<Function> norms{
      [&](const Tensors& in) { return group_norm(in[0], 2, of(in, 1), of(in, 2)); },
      [&](const Tensors& in) { return group_norm(in[0], 4, of(in, 1), of(in, 2)); },
      [&](const Tensors& in) { return group_norm(in[0], 1, of(in, 1), of(in, 2)); },
      [&](const Tensors& in) { return batch_norm(in[0], of(in, 1), of(in, 2), {}, {}, true); },
      [&](const Tensors& in) {
        return in[0].dim() > 2 ? instance_norm(in[0], of(in, 1), of(in, 2)) : in[0] * 1;
      }};
  for (const Shape& shape : {Shape{5, 8}, Shape{90, 72}, Shape{1100, 72}, Shape{3, 4, 2}, Shape{2, 8, 5},
                             Shape{2, 4, 17, 3}, Shape{2, 12, 4, 40}, Shape{0, 4, 3}, Shape{2, 4, 0}})
    for (size_t i = 0; i + (shape.rank() == 2) < norms.size(); ++i)
      for (ScalarType dtype : {kFloat64, kFloat32}) {
        const Tensor x = to(input(shape, 1, 3, 7).detach(), dtype).requires_grad_();
        const double tolerance = dtype == kFloat64 ? 1e-10 : 2e-4;
        check_by_channel(norms[i], x, tolerance);
        IntArray turned(static_cast<size_t>(shape.rank()));
        for (size_t d = 0; d < turned.size(); ++d) turned[d] = static_cast<int64_t>(turned.size() - 1 - d);
        const Tensor strided = permute(contiguous(permute(x.detach(), turned)), turned);
        check_by_channel(norms[i], strided.requires_grad_(), tolerance);
      }
}

TEST_CASE("16-bit inputs with weights by channel are rounded once") {
  const Tensor x = to(input({2, 4, 6}, -2, 3, 7).detach(), kBFloat16),
               w = to(input({4}, 0.5, 2, 2).detach(), kBFloat16),
               b = to(input({4}, -1, 1, 3).detach(), kBFloat16);
  const auto wide = [](const Tensor& t) { return to(t, kFloat32); };
  const auto same = [](const Tensor& y, const Tensor& exact) {
    return y.to_vector() == to(exact, kBFloat16).to_vector();
  };
  CHECK(same(group_norm(x, 2, w, b), group_norm(wide(x), 2, wide(w), wide(b))));
  CHECK(same(batch_norm(x, w, b, {}, {}, true), batch_norm(wide(x), wide(w), wide(b), {}, {}, true)));
}

TEST_CASE("derivatives of normalisations") {
  const Tensor x = input({2, 3, 4}), w = input({4}, 0.5, 2, 2), b = input({4}, -1, 1, 3),
               w2 = input({3, 4}, 0.5, 2, 4);
  gradcheck([](const Tensors& in) { return layer_norm(in[0], {4}); }, {x});
  gradcheck([](const Tensors& in) { return layer_norm(in[0], {4}, in[1], in[2]); }, {x, w, b});
  gradcheck([](const Tensors& in) { return layer_norm(in[0], {3, 4}, in[1]); }, {x, w2});
  gradcheck([](const Tensors& in) { return layer_norm(in[0], {4}, {}, in[1]); }, {x, b});
  gradcheck([](const Tensors& in) { return rms_norm(in[0], {4}, in[1]); }, {x, w});
  gradcheck([](const Tensors& in) { return rms_norm(in[0], {3, 4}, {}, 0.1); }, {x});
  const Tensor c = input({3}, 0.5, 2, 5), d = input({3}, -1, 1, 6);
  gradcheck([](const Tensors& in) { return group_norm(in[0], 3, in[1], in[2]); }, {x, c, d});
  gradcheck([](const Tensors& in) { return batch_norm(in[0], in[1], in[2], {}, {}, true); }, {x, c, d});
  gradcheck([](const Tensors& in) { return instance_norm(in[0], in[1], in[2]); }, {x, c, d});
  const Tensor mean = tensor({1, 2, 3}, {kFloat64}), var = tensor({1, 0.5, 2}, {kFloat64});
  gradcheck([&](const Tensors& in) { return batch_norm(in[0], in[1], in[2], mean, var); }, {x, c, d});
}

Tensor gradient_of(const Function& f, const Tensors& in) {
  EnableGradGuard records;
  return autograd::grad({sum(mul(f(in), in[1]))}, {in[0]}, {}, true, true)[0];
}

TEST_CASE("third derivatives of group_norm and rms_norm see through the kept statistics") {
  const Tensors in = {input({2, 3}), input({2, 3}, -1, 1, 3)};
  gradcheck(
      [](const Tensors& x) { return gradient_of([](const Tensors& y) { return group_norm(y[0], 1); }, x); },
      in);
  gradcheck(
      [](const Tensors& x) {
        return gradient_of([](const Tensors& y) { return rms_norm(y[0], {3}, {}, 0.1); }, x);
      },
      in);
}

TEST_CASE("third derivatives of layer_norm hold the statistics, as PyTorch's do") {
  // For x with its own statistics; the exact result for group_norm differs here.
  const Tensor x = input({1, 3});
  const auto third = [&](const Function& f) {
    Tensor y = sum(square(f({x})));
    for (int order = 0; order < 3; ++order)
      y = sum(mul(autograd::grad({y}, {x}, {}, true, true)[0], tensor({1, -2, 3}, {1, 3}, {kFloat64})));
    return y.item<double>();
  };
  const auto exact = [](const Tensors& in) { return group_norm(in[0], 1, {}, {}, 0.5); };
  const auto held = [](const Tensors& in) { return layer_norm(in[0], {3}, {}, {}, 0.5); };
  CHECK(std::abs(third(exact) - third(held)) > 1e-3);
}

// The derivative in the direction v of layer_norm's gradient for the cotangent g, for given statistics: v's
// part of what ops/norms.h calls the second derivative, in one row of plain numbers.
std::vector<double> second_derivative(const std::vector<double>& x, const std::vector<double>& g,
                                      const std::vector<double>& v, double mean, double rstd) {
  using Numbers = std::vector<double>;
  const size_t n = x.size();
  const auto average = [n](const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum / static_cast<double>(n);
  };
  const Numbers ones(n, 1);
  Numbers xhat(n), mixed(n), result(n);
  for (size_t i = 0; i < n; ++i) xhat[i] = (x[i] - mean) * rstd;
  const double a = average(v, xhat), b = average(g, xhat);
  const double q = average(v, g) - average(v, ones) * average(g, ones) - a * b;
  for (size_t i = 0; i < n; ++i) mixed[i] = rstd * (v[i] * b + g[i] * a);
  for (size_t i = 0; i < n; ++i)
    result[i] = -rstd * (mixed[i] - average(mixed, ones) - xhat[i] * average(mixed, xhat)) -
                rstd * rstd * xhat[i] * q;
  return result;
}

TEST_CASE("third derivatives of layer_norm are those of its second derivative for constant statistics") {
  const std::vector<double> x{0.3, -1.1, 0.9, 0.4}, g{1, -2, 0.5, 3}, v{-0.7, 0.2, 1.5, 1}, w{2, 1, -1, 0.3};
  const auto leaf = [](const std::vector<double>& values) {
    return tensor(values, {1, 4}, {kFloat64, kCPU, true});
  };
  const Tensor at = leaf(x), y = layer_norm(at, {4}, {}, {}, 0.5);
  const Tensor first = autograd::grad({y}, {at}, {leaf(g).detach()}, true, true)[0];
  const Tensor second = autograd::grad({first}, {at}, {leaf(v).detach()}, true, true)[0];
  const std::vector<double> third = autograd::grad({second}, {at}, {leaf(w).detach()})[0].to_vector();
  const Stats s = stats_of(x.size(), [&](size_t i) { return x[i]; });
  const auto at_moved = [&](size_t place, double step) {
    std::vector<double> moved = x;
    moved[place] += step;
    const std::vector<double> d = second_derivative(moved, g, v, s.mean, 1 / std::sqrt(s.var + 0.5));
    return d[0] * w[0] + d[1] * w[1] + d[2] * w[2] + d[3] * w[3];
  };
  for (size_t i = 0; i < x.size(); ++i)
    CHECK(third[i] == Approx((at_moved(i, 1e-5) - at_moved(i, -1e-5)) / 2e-5).epsilon(1e-7));
}

TEST_CASE("gradients of weight and bias over many rows, in every block") {
  const Tensor x = to(input({5000, 6}, -1, 1, 2).detach(), kFloat32).requires_grad_(),
               w = ones({6}, {kFloat32, kCPU, true});
  const Tensor b = zeros({6}, {kFloat32, kCPU, true}), g = to(input({5000, 6}, -1, 1, 3).detach(), kFloat32);
  const Tensors got = autograd::grad({layer_norm(x, {6}, w, b)}, {w, b}, {g});
  const Tensor xhat = layer_norm(x.detach(), {6});
  const std::vector<double> dw = sum(mul(to(xhat, kFloat64), g), {0}).to_vector(),
                            db = sum(to(g, kFloat64), {0}).to_vector();
  for (size_t j = 0; j < 6; ++j) {
    CHECK(got[0].to_vector()[j] == Approx(dw[j]).margin(1e-4));
    CHECK(got[1].to_vector()[j] == Approx(db[j]).margin(1e-4));
  }
}

TEST_CASE("rows without elements have statistics, and gradients") {
  const Tensor x = zeros({2, 0}).requires_grad_(), w = zeros({0}).requires_grad_();
  for (int i = 0; i < 4; ++i) full({2, 1}, 7.5);  // fills freed memory: unwritten memory has these values
  Tensors saved;
  const auto keep = [&](const Tensor& t) {
    if (t.numel() > 0) saved.push_back(t);
    return t;
  };
  Tensor y;
  {
    SavedTensorHooksGuard guard(keep, [](const Tensor& t) { return t; });
    y = layer_norm(x, {0}, w);
  }
  REQUIRE(saved.size() == 2);  // mean and rstd
  for (const Tensor& t : saved) CHECK(t.to_vector() == std::vector<double>{0, 0});
  const Tensors g = autograd::grad({y}, {x, w}, {ones({2, 0})});
  CHECK(g[0].sizes() == IntArray{2, 0});
  CHECK(g[1].sizes() == IntArray{0});
}

TEST_CASE("training on no values leaves the running statistics as they are") {
  const Tensor mean = full({2}, 3.0), var = full({2}, 4.0);
  for (const Shape& shape : {Shape{3, 2, 3, 0}, Shape{0, 2}, Shape{0, 2, 4}}) {
    const Tensor x = zeros(shape).requires_grad_();
    const Tensor y = batch_norm(x, ones({2}), {}, mean, var, true);
    CHECK(y.impl().shape() == shape);
    CHECK(autograd::grad({sum(y)}, {x})[0].impl().shape() == shape);
  }
  CHECK(mean.to_vector() == std::vector<double>{3, 3});
  CHECK(var.to_vector() == std::vector<double>{4, 4});
}

TEST_CASE("empty inputs and refusals") {
  CHECK(layer_norm(zeros({0, 3}), {3}).sizes() == IntArray{0, 3});
  CHECK(group_norm(zeros({0, 4, 2}), 2).sizes() == IntArray{0, 4, 2});
  const Tensor x = zeros({2, 4, 3});
  const auto category = [](auto f) {
    try {
      f();
    } catch (const Error& e) {
      return e.category();
    }
    return Category::unsupported;
  };
  CHECK(category([&] { layer_norm(x, {4}); }) == Category::shape_mismatch);
  CHECK(category([&] { layer_norm(x, {3}, zeros({2})); }) == Category::shape_mismatch);
  CHECK(category([&] { layer_norm(x, {3}, zeros({3}, {kFloat64})); }) == Category::dtype_mismatch);
  CHECK(category([&] { layer_norm(to(x, kInt64), {3}); }) == Category::dtype_mismatch);
  CHECK(category([&] { group_norm(x, 3); }) == Category::bad_argument);
  CHECK(category([&] { batch_norm(x, {}, {}, zeros({3}), zeros({4})); }) == Category::shape_mismatch);
  CHECK(category([&] { batch_norm(x); }) == Category::bad_argument);
  CHECK(category([&] { batch_norm(zeros({1, 4}), {}, {}, {}, {}, true); }) == Category::bad_argument);
  CHECK(category([&] { instance_norm(zeros({4})); }) == Category::bad_dim);
}

}  // namespace
}  // namespace retrograd
