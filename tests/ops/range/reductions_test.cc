// Reductions, softmax, normalisations and losses over the range of each dtype.
#include <catch2/catch.hpp>

#include "engine/autograd.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/cumulative.h"
#include "ops/distances.h"
#include "ops/join.h"
#include "ops/losses.h"
#include "ops/norms.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/softmax.h"
#include "tests/ops/range/walk.h"
#include "tracer/function/compile.h"

namespace range {
namespace {

std::vector<int> every(int least, int most, int step = 1) {
  std::vector<int> all;
  for (int k = least; k <= most; k += step) all.push_back(k);
  return all;
}

Walk walk(std::string name, Function f, std::vector<Numbers> inputs, std::vector<int> scales) {
  return {std::move(name), std::move(f), std::move(inputs), false, std::move(scales)};
}

const Numbers kFour = {1, 2, 3, 4}, kMixed = {1.5, -0.25, 2.75, -3.5, 0.875, 2.125};
const std::vector<int> kAll = every(-36, 37);

// The same constants, for a 16-bit tensor and for float64.
Tensor constant(const Numbers& x, const Tensor& like) {
  return rg::to(rg::tensor(x, {static_cast<int64_t>(x.size())}, {rg::kFloat64}), like.dtype());
}
Tensor classes(int64_t target) {
  return rg::to(rg::tensor({static_cast<double>(target)}, {1}, {rg::kFloat64}), rg::kInt64);
}

}  // namespace

TEST_CASE("reductions over the range") {
  std::vector<Walk> walks;
  const auto add = [&](const char* name, const Function& f, const Numbers& x,
                       const std::vector<int>& scales) {
    walks.push_back(walk(name, f, {x}, scales));
    // The same down the columns of a matrix.
    walks.push_back(walk(
        std::string(name) + " down columns",
        [f](const Tensors& in) {
          const Tensor x = rg::reshape(in[0], {in[0].numel(), 1});
          return f({rg::cat(Tensors{x, x}, 1)});
        },
        {x}, scales));
  };
  for (const double p : {1.0, 2.0, 3.0, 0.5, 4.5})
    add(
        "norm", [p](const Tensors& x) { return rg::vector_norm(x[0], p, 0); }, kMixed, kAll);
  add(
      "largest", [](const Tensors& x) { return rg::vector_norm(x[0], HUGE_VAL, 0); }, kMixed, kAll);
  add(
      "var", [](const Tensors& x) { return rg::var(x[0], 0); }, kFour, kAll);
  add(
      "std", [](const Tensors& x) { return rg::std(x[0], 0); }, kFour, kAll);
  add(
      "std without correction", [](const Tensors& x) { return rg::std(x[0], 0, 0); }, kMixed, kAll);
  add(
      "mean", [](const Tensors& x) { return rg::mean(x[0], 0); }, kMixed, kAll);
  add(
      "logsumexp", [](const Tensors& x) { return rg::logsumexp(x[0], 0); }, {1, 1, 0.5, 1, -1},
      every(-36, 37));
  add("logsumexp of one far above", [](const Tensors& x) { return rg::logsumexp(x[0], 0); },
      {0, -20, -25, -30}, {0});
  for (auto w = walks.end() - 2; w != walks.end(); ++w) w->excused_second = "1 - p of a rounded p near 1";
  add(
      "prod", [](const Tensors& x) { return rg::prod(x[0], 0); }, {1.5, -0.25, 2.75}, every(-20, 20));
  for (Walk& w : walks) {
    w.saves_result = w.name.starts_with("norm") || w.name.starts_with("prod");
    check(w);
  }
}

TEST_CASE("cumulative sums of exponentials and distances over the range") {
  check(walk(
      "logcumsumexp", [](const Tensors& x) { return rg::logcumsumexp(x[0], 0); }, {{1, 1, 0.5, 1, -1}},
      every(-36, 37)));
  for (const double p : {1.0, 2.0, 3.0})
    check(walk(
        "cdist",
        [p](const Tensors& x) {
          const Tensor row = rg::reshape(x[0], {1, x[0].numel()});
          return rg::cdist(row, rg::zeros_like(row), p);
        },
        {kMixed}, kAll));
}

TEST_CASE("softmax and cross entropy over the range") {
  const std::vector<int> logits = every(-30, 36);
  const auto row = [](const Tensor& x) { return rg::reshape(x, {1, x.numel()}); };
  // Excludes an element far above the others: there gradients are 1 - p of a rounded p.
  for (const Numbers& x :
       {Numbers{1, 1, 0.5, 1, -1}, Numbers{-20, 12.5, 12.5, 12.5}, Numbers{12.25, 12.25, 12.25}}) {
    check(walk(
        "softmax", [](const Tensors& in) { return rg::softmax(in[0], 0); }, {x}, logits));
    check(walk(
        "log_softmax", [](const Tensors& in) { return rg::log_softmax(in[0], 0); }, {x}, logits));
    check(walk(
        "cross_entropy", [row](const Tensors& in) { return rg::cross_entropy(row(in[0]), classes(1)); }, {x},
        logits));
    check(walk(
        "cross_entropy of the largest",
        [row](const Tensors& in) { return rg::cross_entropy(row(in[0]), classes(0)); }, {x}, logits));
  }
}

TEST_CASE("normalisations over the range") {
  const auto rows = [](const Tensor& x) { return rg::reshape(x, {1, x.numel()}); };
  const auto check_with = [&](double eps, const std::vector<int>& scales) {
    check(walk(
        "layer_norm", [=](const Tensors& x) { return rg::layer_norm(rows(x[0]), {4}, {}, {}, eps); }, {kFour},
        scales));
    check(walk(
        "rms_norm", [=](const Tensors& x) { return rg::rms_norm(rows(x[0]), {4}, {}, eps); }, {kFour},
        scales));
    check(walk(
        "group_norm", [=](const Tensors& x) { return rg::group_norm(rows(x[0]), 1, {}, {}, eps); }, {kFour},
        scales));
    check(walk(
        "batch_norm",
        [=](const Tensors& x) {
          return rg::batch_norm(rg::reshape(x[0], {x[0].numel(), 1}), {}, {}, {}, {}, true, 0.1, eps);
        },
        {kFour}, scales));
  };
  check_with(1e-5, every(-1, 36));
  check_with(0.0, every(-35, 36));
}

TEST_CASE("losses over the range") {
  const auto pair = [](const char* name, auto f, double distance, const std::vector<int>& scales) {
    check(walk(
        name,
        [=](const Tensors& x) {
          return f(x[0], rg::mul(constant(each(kMixed, [&](double v) { return v * distance; }), x[0]), 0.0));
        },
        {kMixed}, scales));
  };
  for (const double beta : {1.0, 1e-5, 1e-3, 10.0}) {
    pair(
        "smooth_l1", [=](const Tensor& x, const Tensor& t) { return rg::smooth_l1_loss(x, t, "sum", beta); },
        1, kAll);
    pair(
        "huber", [=](const Tensor& x, const Tensor& t) { return rg::huber_loss(x, t, "sum", beta); }, 1,
        kAll);
  }
  pair(
      "mse", [](const Tensor& x, const Tensor& t) { return rg::mse_loss(x, t, "sum"); }, 1, kAll);
  pair(
      "l1", [](const Tensor& x, const Tensor& t) { return rg::l1_loss(x, t, "sum"); }, 1, kAll);
  for (const double target : {0.0, 1.0, 0.25})
    check({"binary_cross_entropy_with_logits",
           [=](const Tensors& x) {
             return rg::binary_cross_entropy_with_logits(
                 x[0], constant(Numbers(static_cast<size_t>(x[0].numel()), target), x[0]), {}, {}, "none");
           },
           {{-6, 6, -20.4, 20.4, -40, 40, -71.9, 71.9, 1e-3, -1e-5, 300, -300, 3e4, -3e4, 1e30, -1e30}}});
  check(walk(
      "cosine_similarity", [](const Tensors& x) { return rg::cosine_similarity(x[0], x[1], 0); },
      {{3, 4, -1}, {1, -2, 2}}, every(-6, 36)));
}

// Cases from a user's run, in float32 and smaller: exact values.
TEST_CASE("values and gradients that went wrong") {
  const auto gradient = [](const Tensor& y, const Tensor& x) {
    return rg::autograd::grad({y}, {x})[0].to_vector();
  };
  const auto leaf = [](const Numbers& x, const rg::Shape& shape, rg::ScalarType dtype) {
    return rg::tensor(x, shape, {dtype}).requires_grad_();
  };
  const Tensor same = leaf({1e7, 1e7}, {1, 2}, rg::kFloat32);
  CHECK(gradient(rg::cross_entropy(same, classes(0)), same) == std::vector<double>{-0.5, 0.5});
  const Tensor logits = leaf({INFINITY, -INFINITY, INFINITY, -INFINITY}, {4}, rg::kFloat32);
  const Tensor loss = rg::binary_cross_entropy_with_logits(
      logits, rg::tensor({1.0, 0.0, 0.0, 1.0}, {4}, {rg::kFloat32}), {}, {}, "none");
  CHECK(loss.detach().to_vector() == std::vector<double>{0, 0, INFINITY, INFINITY});
  CHECK(gradient(rg::sum(loss), logits) == std::vector<double>{0, 0, 1, -1});
  const Tensor far = leaf({3}, {1}, rg::kFloat16);
  CHECK(gradient(rg::smooth_l1_loss(far, rg::tensor({0.0}, {1}, {rg::kFloat16}), "sum", 1e-5), far) ==
        std::vector<double>{1});
  const Tensor small = leaf({1e-4}, {1}, rg::kFloat16);
  CHECK(gradient(rg::norm(small, 3), small) == std::vector<double>{1});
  const Tensor large = leaf({3e30, 4e30}, {2}, rg::kFloat32);
  CHECK(rg::norm(large).item().to_double() == Approx(5e30));
}

TEST_CASE("a conversion rounds once") {
  const auto check = [](double from, rg::ScalarType dtype, double want) {
    for (const int64_t n : {1, 40}) {
      const Tensor x = rg::full({n}, from, {rg::kFloat64});
      auto f = rg::compile([dtype](const Tensor& t) { return rg::to(t * 1.0, dtype); });
      for (const Tensor& y : {rg::to(x, dtype), rg::to(rg::expand(x.narrow(0, 0, 1), {n}), dtype), f(x)})
        CHECK(y.to_vector()[static_cast<size_t>(n - 1)] == want);
    }
  };
  check(1 + 0x1p-8 + 0x1p-40, rg::kBFloat16, 1.0078125);
  check(-1 - 0x1p-8 - 0x1p-40, rg::kBFloat16, -1.0078125);
  check(1 + 0x1p-8 - 0x1p-40, rg::kBFloat16, 1);
  check(1 + 0x1p-8, rg::kBFloat16, 1);
  check(1 + 0x1p-11 + 0x1p-40, rg::kFloat16, 1 + 0x1p-10);
  check(0x1p-25 + 0x1p-70, rg::kFloat16, 0x1p-24);
  check(0x1p-25, rg::kFloat16, 0);
  check(65519.9999999, rg::kFloat16, 65504);
  check(65520, rg::kFloat16, INFINITY);
  check(-1e-300, rg::kFloat16, 0);
  CHECK(rg::full({2}, 1 + 0x1p-8 + 0x1p-40, {rg::kBFloat16}).to_vector()[1] == 1.0078125);
  const int64_t large = (int64_t{1} << 60) + (int64_t{1} << 52) + 1;
  for (const auto& [from, want] : {std::pair{large, 0x1p60 * (1 + 0x1p-7)},
                                   {large - 1, 0x1p60},
                                   {-large, -0x1p60 * (1 + 0x1p-7)},
                                   {int64_t{-259}, -260.0}}) {
    const Tensor whole = rg::full({2}, rg::Scalar(from), {rg::kInt64});
    auto f = rg::compile([](const Tensor& t) { return rg::to(t * 1, rg::kBFloat16) * 1.0; });
    CHECK(rg::to(whole, rg::kBFloat16).to_vector()[1] == want);
    CHECK(f(whole).to_vector()[1] == want);
  }
}

}  // namespace range
