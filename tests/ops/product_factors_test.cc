// addmm and related functions with factors that exclude an operand: alpha = 0 excludes the product, beta = 0 the added
// input, whatever their values. In every dtype, with and without an inner dim, eagerly and compiled.
//
// Gradients follow PyTorch's formulas, in which a factor of 0 multiplies the gradient: the gradient of an excluded
// operand is 0 if the rest is finite.
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

using AddProduct = Tensor (*)(const Tensor& start, const Tensor& a, const Tensor& b, rg::Scalar beta,
                              rg::Scalar alpha);

struct Kind {
  const char* name;
  int batch;  // dims in front
  AddProduct f;
};
const Kind kKinds[] = {
    {"addmm", 0,
     [](const Tensor& s, const Tensor& a, const Tensor& b, rg::Scalar beta, rg::Scalar alpha) {
       return rg::addmm(s, a, b, beta, alpha);
     }},
    {"baddbmm", 1,
     [](const Tensor& s, const Tensor& a, const Tensor& b, rg::Scalar beta, rg::Scalar alpha) {
       return rg::baddbmm(s, a, b, beta, alpha);
     }},
};

constexpr rg::ScalarType kFloats[] = {rg::kFloat64, rg::kFloat32, rg::kBFloat16, rg::kFloat16};

rg::IntArray sizes(int batch, int64_t rows, int64_t columns) {
  rg::IntArray s(static_cast<size_t>(batch), 2);
  s.push_back(rows), s.push_back(columns);
  return s;
}

void check_all(const Tensor& x, double want) {
  const std::vector<double> values = x.to_vector();
  for (const double v : values) CHECK((v == want || (std::isnan(v) && std::isnan(want))));
}

// The function eagerly, and compiled, twice.
template <class F>
void in_each_mode(const F& f, const Tensors& in, double want) {
  check_all(f(in), want);
  rg::FunctionCache cache(rg::FunctionKind::function);
  for (int run = 0; run < 2; ++run)
    check_all(cache.run([&](const Tensors& x) { return Tensors{f(x)}; }, in).at(0), want);
}

TEST_CASE("alpha = 0 leaves the product out, beta = 0 what is added") {
  for (const Kind& kind : kKinds)
    for (const rg::ScalarType dtype : kFloats)
      for (const int64_t n : {1, 3, 40})
        for (const int64_t k : {0, 1, 5, 70})
          for (const double odd : {NAN, INFINITY}) {
            CAPTURE(kind.name, rg::name(dtype), n, k, odd);
            const auto filled = [&](int64_t rows, int64_t columns, double v) {
              return rg::full(sizes(kind.batch, rows, columns), v, {dtype});
            };
            const Tensor one = filled(n, n, 1), factor = filled(n, k, odd), other = filled(k, n, 1),
                         none = filled(n, n, odd), ones = filled(n, k, 1);
            in_each_mode([&](const Tensors& x) { return kind.f(x[0], x[1], x[2], 1, 0); },
                         {one, factor, other}, 1);
            in_each_mode([&](const Tensors& x) { return kind.f(x[0], x[1], x[2], 2.0, 0.0); },
                         {one, factor, other}, 2);
            in_each_mode([&](const Tensors& x) { return kind.f(x[0], x[1], x[2], 0, 1); },
                         {none, ones, other}, static_cast<double>(k));
            in_each_mode([&](const Tensors& x) { return kind.f(x[0], x[1], x[2], 0, 0); },
                         {none, factor, other}, 0);
          }
}

TEST_CASE("Integers: factors of 0, and no inner dim") {
  for (const Kind& kind : kKinds)
    for (const int64_t k : {0, 3}) {
      CAPTURE(kind.name, k);
      const auto filled = [&](int64_t rows, int64_t columns, int64_t v) {
        return rg::full(sizes(kind.batch, rows, columns), v, {rg::kInt64});
      };
      const Tensors in = {filled(2, 2, 5), filled(2, k, 7), filled(k, 2, 1)};
      in_each_mode([&](const Tensors& x) { return kind.f(x[0], x[1], x[2], 1, 0); }, in, 5);
      in_each_mode([&](const Tensors& x) { return kind.f(x[0], x[1], x[2], 0, 1); }, in,
                   static_cast<double>(7 * k));
      in_each_mode([&](const Tensors& x) { return kind.f(x[0], x[1], x[2], 3, 2); }, in,
                   static_cast<double>(15 + 14 * k));
    }
}

TEST_CASE("Gradients with a factor of 0, eager, captured and compiled") {
  const auto check = [](rg::Scalar beta, rg::Scalar alpha, double s_value, double a_value,
                        const std::vector<double>& want) {
    for (const std::string mode : {"eager", "traced", "compiled"}) {
      CAPTURE(mode, s_value, a_value);
      const Tensors in = {rg::full({1, 1}, s_value, {rg::kFloat64}).requires_grad_(),
                          rg::full({1, 1}, a_value, {rg::kFloat64}).requires_grad_(),
                          rg::full({1, 1}, 3, {rg::kFloat64}).requires_grad_()};
      const auto f = [&](const Tensors& x) { return Tensors{rg::addmm(x[0], x[1], x[2], beta, alpha)}; };
      rg::FunctionCache cache(rg::FunctionKind::function);
      const Tensor y = mode == "compiled" ? cache.run(f, in).at(0) : f(in).at(0);
      rg::CompiledBackward captured;
      const Tensors g =
          mode == "eager" ? rg::autograd::grad({rg::sum(y)}, in) : captured.grad({rg::sum(y)}, in);
      for (size_t i = 0; i < 3; ++i) check_all(g[i], want[i]);
    }
  };
  check(2, 0, 1, 5, {2, 0, 0});
  check(0, 2, 1, 5, {0, 6, 10});
  check(0, 2, NAN, 5, {0, 6, 10});
  check(2, 0, 1, NAN, {2, 0, NAN});  // the product's rule: 0 times nan, as in PyTorch
}

TEST_CASE("linear without an inner dim is its bias, or zeros") {
  for (const rg::ScalarType dtype : kFloats) {
    CAPTURE(rg::name(dtype));
    const Tensors in = {rg::zeros({3, 0}, {dtype}), rg::zeros({2, 0}, {dtype}), rg::full({2}, 4, {dtype})};
    in_each_mode([](const Tensors& x) { return rg::linear(x[0], x[1], x[2]); }, in, 4);
    in_each_mode([](const Tensors& x) { return rg::linear(x[0], x[1]); }, in, 0);
  }
}

}  // namespace
