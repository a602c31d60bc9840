// linear_cross_entropy: with options it is the loss of all logits, which never exist at once.
#include "nn/linear_cross_entropy.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
namespace F = retrograd::nn::functional;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;
using rg::testing::same_bits;

namespace {

Tensor wave(rg::IntArray shape, double shift = 0) {
  return rg::sin(rg::arange(rg::Shape(shape).numel().value(), rg::kFloat64) * 0.7 + shift).view(shape);
}

struct Case {
  const char* what;
  rg::IntArray of_row;  // (C, d1, ...)
  bool bias, weight;
  std::string reduction;
  double smoothing;
  bool probabilities;
};

// Of ten rows with three features.
Tensors operands(const Case& c) {
  rg::IntArray weight = c.of_row, logits = c.of_row;
  weight.push_back(3);
  logits.insert(logits.begin(), 10);
  rg::IntArray samples = logits;
  samples.erase(samples.begin() + 1);
  Tensor target = rg::arange(rg::Shape(samples).numel().value()).view(samples).remainder(c.of_row[0] + 1) - 1;
  if (c.probabilities) target = rg::softmax(wave(logits, 0.9), 1);
  return {wave({10, 3}).requires_grad_(), wave(weight, 0.3).requires_grad_(), target,
          c.bias ? wave(c.of_row, 1.1).requires_grad_() : Tensor(),
          c.weight ? wave({c.of_row[0]}, 0.2) + 1.5 : Tensor()};
}

Tensor loss_of(const Case& c, const Tensors& in,
               const std::optional<nn::LinearCrossEntropyOptions>& options) {
  return F::linear_cross_entropy(in[0], in[1], in[2], in[3], in[4], c.reduction, -1, c.smoothing, options);
}

Tensors leaves_of(const Tensors& in) {
  Tensors leaves{in[0], in[1]};
  if (in[3].defined()) leaves.push_back(in[3]);
  return leaves;
}

double distance(const Tensor& a, const Tensor& b) { return rg::max(rg::abs(rg::sub(a, b))).item<double>(); }

// Indices from -1, which is ignored.
const Case kCases[] = {
    {"mean", {7}, true, false, "mean", 0, false},
    {"sum without bias", {7}, false, false, "sum", 0, false},
    {"losses of rows", {7}, true, false, "none", 0, false},
    {"class weights", {7}, true, true, "mean", 0, false},
    {"class weights, smoothing", {7}, true, true, "mean", 0.2, false},
    {"smoothing, none", {7}, false, true, "none", 0.2, false},
    {"probabilities", {7}, true, true, "mean", 0.1, true},
    {"more dims", {5, 2}, true, true, "mean", 0, false},
    {"more dims, probabilities", {5, 2}, true, false, "none", 0, true},
};

}  // namespace

TEST_CASE("linear_cross_entropy: PyTorch's numbers") {
  const Tensor x = wave({6, 4}).requires_grad_(), w = wave({5, 4}, 0.3).requires_grad_(),
               b = wave({5}, 1.1).requires_grad_();
  const Tensor classes = rg::tensor({1., 2., .5, 1.5, 3.}, rg::kFloat64);
  const Tensor loss = F::linear_cross_entropy(x, w, rg::tensor({0, 4, -1, 2, 1, 3}), b, classes, "mean", -1,
                                              0.1, nn::LinearCrossEntropyOptions{4});
  CHECK(loss.item<double>() == Approx(2.961263153959491).epsilon(1e-13));
  loss.backward();
  const Tensor want_w = rg::tensor(
      {0.041017431039085, 0.047913799642304, -0.030031822474457, -0.138290395115091, 0.079390986908159},
      rg::kFloat64);
  const Tensor want_x = rg::tensor({-0.02756282026863672, 0.35962407937969937, 0.0, 0.045262494866511904,
                                    -0.07661093374064243, -0.06353676984082124},
                                   rg::kFloat64);
  CHECK(distance(w.grad().select(1, 1), want_w) < 1e-14);
  CHECK(distance(x.grad().select(1, 0), want_x) < 1e-14);
}

TEST_CASE("linear_cross_entropy: pieces give the loss and the gradients of the whole") {
  for (const Case& c : kCases) {
    INFO(c.what);
    for (int64_t size : {1, 4, 9, 10, 64}) {
      const Tensors in = operands(c), leaves = leaves_of(in);
      const Tensor whole = loss_of(c, in, {}), pieces = loss_of(c, in, nn::LinearCrossEntropyOptions{size});
      CHECK(distance(pieces, whole) < 1e-14);
      const Tensors want = rg::autograd::grad({rg::sum(whole)}, leaves),
                    got = rg::autograd::grad({rg::sum(pieces)}, leaves);
      for (size_t i = 0; i < leaves.size(); ++i) CHECK(distance(got[i], want[i]) < 1e-14);
    }
  }
}

TEST_CASE("linear_cross_entropy: derivatives of any order and forward mode") {
  for (const Case& c : kCases) {
    INFO(c.what);
    const Tensors in = operands(c);
    const rg::autograd::VectorFunction f = [&](const Tensors& leaves) {
      Tensors all = in;
      all[0] = leaves[0];
      all[1] = leaves[1];
      return Tensors{loss_of(c, all, nn::LinearCrossEntropyOptions{4})};
    };
    CHECK(rg::autograd::gradcheck(f, {in[0], in[1]}));
    CHECK(rg::autograd::gradgradcheck(f, {in[0], in[1]}));
  }
}

TEST_CASE("linear_cross_entropy: recorded functions give the bits of eager") {
  const Case& c = kCases[3];
  const Tensors in = operands(c);
  const auto loss = [&] { return loss_of(c, in, nn::LinearCrossEntropyOptions{4}); };
  loss().backward();
  const Tensor want = in[1].grad();
  const auto function = rg::compile(loss);
  const auto step = rg::compile_step([&] { loss().backward(); });
  for (int run = 0; run < 4; ++run) {
    in[1].set_grad({});
    if (run % 2)
      step();
    else
      function().backward();
    CHECK(same_bits(in[1].grad(), want));
  }
}

TEST_CASE("linear_cross_entropy: the logits of the batch never exist") {
  constexpr int64_t kN = 2048, kIn = 32, kClasses = 2048;
  constexpr int64_t kLogits = kN * kClasses * 4, kWeight = kClasses * kIn * 4;
  const Tensor x = wave({kN, kIn}).to(rg::kFloat32).requires_grad_();
  const Tensor w = wave({kClasses, kIn}, 0.3).to(rg::kFloat32).requires_grad_();
  const Tensor target = (rg::arange(kN) * 7).remainder(kClasses);
  const auto peak = [&](const std::optional<nn::LinearCrossEntropyOptions>& options) {
    for (const Tensor& leaf : {x, w}) leaf.set_grad({});
    const int64_t before = rg::memory::stats().live_bytes;
    rg::memory::reset_peak();
    F::linear_cross_entropy(x, w, target, {}, {}, "mean", -100, 0.0, options).backward();
    return rg::memory::stats().peak_bytes - before;
  };
  CHECK(peak({}) >= 2 * kLogits);
  // Pieces of 128 rows: logits and their gradient. The gradient of the weight is a sum, to which that of a piece is
  // added.
  CHECK(peak(nn::LinearCrossEntropyOptions{}) < 2 * kLogits / 16 + 4 * kWeight);
}

TEST_CASE("LinearCrossEntropyLoss: the layer and its loss") {
  const nn::LinearCrossEntropyLoss loss(nullptr, "", 3, 5,
                                        {.out_features = {2},
                                         .bias = true,
                                         .weight = rg::ones({5}),
                                         .options = nn::LinearCrossEntropyOptions{2}});
  std::vector<std::string> keys;
  for (const auto& [name, value] : loss.state_dict()) keys.push_back(name);
  CHECK(keys == std::vector<std::string>{"linear.bias", "linear.weight", "weight"});
  CHECK(loss.linear.weight.sizes() == rg::IntArray{10, 3});
  const Tensor x = wave({6, 3}).to(rg::kFloat32), target = rg::arange(12).view({6, 2}).remainder(5);
  const Tensor logits = rg::linear(x, loss.linear.weight, loss.linear.bias).view({6, 5, 2});
  CHECK(distance(loss(x, target), rg::cross_entropy(logits, target)) < 1e-6);
}

TEST_CASE("linear_cross_entropy: what is refused") {
  const Tensor x = rg::ones({4, 3}), w = rg::ones({5, 3}), t = rg::zeros({4}, rg::kInt64);
  const auto refused = [&](const Tensor& weight, const Tensor& target, const Tensor& bias,
                           const char* reduction, std::optional<int64_t> rows) {
    return category_of([&] {
      F::linear_cross_entropy(x, weight, target, bias, {}, reduction, -100, 0.0,
                              nn::LinearCrossEntropyOptions{rows});
    });
  };
  CHECK(refused(w, t, {}, "mean", 0) == rg::Category::bad_argument);
  CHECK(refused(w, t, {}, "median", 2) == rg::Category::bad_argument);
  CHECK(refused(rg::ones({5}), t, {}, "mean", 2) == rg::Category::bad_dim);
  CHECK(refused(w, t, rg::ones({4}), "mean", 2) == rg::Category::shape_mismatch);
  CHECK(refused(w, rg::zeros({3}, rg::kInt64), {}, "mean", 2) == rg::Category::shape_mismatch);
  const auto mapped = rg::vmap([&](const Tensor& rows) {
    return F::linear_cross_entropy(rows, w, t, {}, {}, "mean", -100, 0.0, nn::LinearCrossEntropyOptions{2});
  });
  CHECK(category_of([&] { mapped(rg::ones({2, 4, 3}).requires_grad_()); }) == rg::Category::unsupported);
  CHECK(refused(w, t + 5, {}, "mean", 2) == rg::Category::index_out_of_range);
  std::string text;
  try {
    F::linear_cross_entropy(x, rg::ones({5, 2}), t, {}, {}, "mean", -100, 0.0,
                            nn::LinearCrossEntropyOptions{2});
  } catch (const rg::Error& e) {
    text = e.what();
  }
  CHECK(text.starts_with("linear_cross_entropy"));
  CHECK(text.find("linear_cross_entropy_test.cc") != std::string::npos);
}
