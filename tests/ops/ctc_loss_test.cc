// ctc_loss against the sum over all paths, its special cases and its errors. Derivatives: tests/ops/derivatives.
#include "ops/ctc_loss.h"

#include "autograd/functional.h"
#include "engine/autograd.h"
#include "ops/activations.h"
#include "ops/softmax.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::input;

Tensor whole(std::initializer_list<double> values) {
  return tensor(std::vector<double>(values), {static_cast<int64_t>(values.size())}, {kInt64});
}

// What a path of classes spells: repetitions dropped, then blanks.
std::vector<int64_t> spelled(const std::vector<int64_t>& path, int64_t blank) {
  std::vector<int64_t> word;
  for (size_t t = 0; t < path.size(); ++t)
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) word.push_back(path[t]);
  return word;
}

// -log of the probability of the paths of `steps` steps that spell a word.
double by_paths(const std::vector<double>& logp, int64_t steps, int64_t classes,
                const std::vector<int64_t>& word, int64_t blank) {
  double total = 0;
  std::vector<int64_t> path(static_cast<size_t>(steps));
  for (int64_t number = 0, all = static_cast<int64_t>(std::pow(classes, steps)); number < all; ++number) {
    double sum = 0;
    for (int64_t t = 0, rest = number; t < steps; ++t, rest /= classes) {
      path[static_cast<size_t>(t)] = rest % classes;
      sum += logp[static_cast<size_t>(t * classes + rest % classes)];
    }
    if (spelled(path, blank) == word) total += std::exp(sum);
  }
  return -std::log(total);
}

TEST_CASE("ctc_loss is the sum over all paths that spell the target") {
  const Tensor logp = log_softmax(input({5, 3}, -3, 3), 1).detach();
  const std::vector<double> values = logp.to_vector();
  for (int64_t blank : {0, 2})
    for (const std::vector<int64_t>& word :
         std::vector<std::vector<int64_t>>{{}, {1}, {1, 1}, {1, 1, 1}, {1, 2 - blank, 1}}) {
      const Tensor target = tensor(std::vector<int64_t>(word), {static_cast<int64_t>(word.size())}, {kInt64});
      const Tensor loss = ctc_loss(logp, target, tensor({5.}, {kInt64}),
                                   tensor({static_cast<double>(word.size())}, {kInt64}), blank, "sum");
      CHECK(std::abs(loss.item<double>() - by_paths(values, 5, 3, word, blank)) < 1e-12);
    }
}

TEST_CASE("ctc_loss: batches, padded targets, targets one after the other, and single samples agree") {
  const Tensor logp = log_softmax(input({6, 3, 4}), 2).detach(), steps = whole({6, 4, 5}),
               lengths = whole({3, 1, 2});
  const Tensor padded = tensor({1, 2, 2, 3, 1, 1, 3, 1, 2}, {3, 3}, {kInt64}),
               joined = whole({1, 2, 2, 3, 3, 1});
  const Tensor losses = ctc_loss(logp, padded, steps, lengths, 0, "none");
  CHECK(losses.to_vector() == ctc_loss(logp, joined, steps, lengths, 0, "none").to_vector());
  for (int64_t n = 0; n < 3; ++n) {
    const Tensor one = ctc_loss(select(logp, 1, n), select(padded, 0, n), select(steps, 0, n),
                                select(lengths, 0, n), 0, "none");
    CHECK(one.dim() == 0);
    CHECK(one.item<double>() == losses.to_vector()[static_cast<size_t>(n)]);
  }
  const std::vector<double> l = losses.to_vector();
  CHECK(std::abs(ctc_loss(logp, padded, steps, lengths).item<double>() - (l[0] / 3 + l[1] + l[2] / 2) / 3) <
        1e-12);
}

TEST_CASE("a target that no alignment spells has an infinite loss, or none") {
  const Tensor x = log_softmax(input({3, 2, 3}), 2).detach().requires_grad_();
  const Tensor targets = tensor({1, 1, 1, 2}, {2, 2}, {kInt64}), steps = whole({2, 3}),
               lengths = whole({2, 2});
  CHECK(std::isinf(ctc_loss(x, targets, steps, lengths, 0, "none").to_vector()[0]));
  const Tensor loss = ctc_loss(x, targets, steps, lengths, 0, "none", true);
  CHECK(loss.to_vector()[0] == 0);
  CHECK(loss.to_vector()[1] > 0);
  sum(loss).backward();
  const std::vector<double> g = x.grad().to_vector();
  for (size_t t = 0; t < 3; ++t)
    for (size_t c = 0; c < 3; ++c) CHECK(g[t * 6 + c] == 0);
  // No step spells the empty target.
  CHECK(ctc_loss(x, targets, whole({0, 3}), whole({0, 2}), 0, "none").to_vector()[0] == 0);
  CHECK(std::isinf(ctc_loss(x, targets, whole({0, 3}), whole({1, 2}), 0, "none").to_vector()[0]));
}

TEST_CASE("ctc_loss at improbable paths: the only alignment counts, however unlikely it is") {
  const Tensor logp = tensor({-2000., 0, -2000, 0, -2000, 0}, {3, 2}, {kFloat64}).requires_grad_();
  const Tensor loss = ctc_loss(logp, whole({1, 1}), tensor({3.}, {kInt64}), tensor({2.}, {kInt64}), 0, "sum");
  CHECK(loss.item<double>() == 2000);
  loss.backward();
  CHECK(logp.grad().to_vector() == std::vector<double>{0, -1, -1, 0, 0, -1});
}

TEST_CASE("ctc_loss: gradients in 16 bits are those of float64, rounded") {
  const Tensor x = input({8, 2, 5}).detach(), targets = tensor({1, 2, 3, 4, 1, 1}, {2, 3}, {kInt64});
  for (ScalarType dtype : {kFloat32, kFloat16, kBFloat16}) {
    const Tensor low = to(x, dtype).detach().requires_grad_(),
                 high = to(low, kFloat64).detach().requires_grad_();
    for (const Tensor& leaf : {low, high}) ctc_loss(leaf, targets, whole({8, 7}), whole({3, 2})).backward();
    CHECK(low.grad().dtype() == dtype);
    const double eps = dtype == kFloat32 ? 1e-6 : dtype == kFloat16 ? 1e-3 : 8e-3;
    CHECK(testing::worst_difference(to(low.grad(), kFloat64), high.grad()) < eps);
  }
}

TEST_CASE("ctc_loss: third derivatives are refused, not wrong") {
  const Tensor x = log_softmax(input({4, 1, 3}), 2).detach().requires_grad_();
  const Tensor target = tensor({1, 2}, {1, 2}, {kInt64});
  const Tensor loss = ctc_loss(x, target, whole({4}), whole({2}), 0, "sum");
  const Tensor first = autograd::grad({loss}, {x}, {}, {}, true)[0];
  const Tensor second = autograd::grad({sum(first * first)}, {x}, {}, {}, true)[0];
  CHECK(category_of([&] { autograd::grad({sum(second)}, {x}); }) == Category::unsupported);
}

TEST_CASE("ctc_loss refuses what does not fit") {
  const Tensor x = log_softmax(input({4, 2, 3}), 2).detach(),
               targets = tensor({1, 2, 1, 1}, {2, 2}, {kInt64}), steps = whole({4, 4}),
               lengths = whole({2, 1});
  const auto refused = [&](const auto& f) { return category_of(f); };
  CHECK(refused([&] { ctc_loss(x, targets, steps, lengths, 3); }) == Category::bad_argument);
  CHECK(refused([&] { ctc_loss(x, targets, whole({5, 4}), lengths); }) == Category::bad_argument);
  CHECK(refused([&] { ctc_loss(x, targets, steps, whole({3, 1})); }) == Category::bad_argument);
  CHECK(refused([&] { ctc_loss(x, targets, steps, whole({-1, 1})); }) == Category::bad_argument);
  CHECK(refused([&] { ctc_loss(x, targets, whole({4}), lengths); }) == Category::shape_mismatch);
  CHECK(refused([&] { ctc_loss(x, whole({1, 2}), steps, lengths); }) == Category::shape_mismatch);
  CHECK(refused([&] { ctc_loss(x, whole({1, 2, 1, 1}), steps, lengths); }) == Category::shape_mismatch);
  CHECK(refused([&] {
          ctc_loss(x, tensor({1, 3, 1, 1}, {2, 2}, {kInt64}), steps, lengths);
        }) == Category::index_out_of_range);
  CHECK(refused([&] {
          ctc_loss(narrow(x, 0, 0, 0), targets, whole({0, 0}), lengths);
        }) == Category::bad_argument);
  CHECK(refused([&] { ctc_loss(reshape(x, {24}), targets, steps, lengths); }) == Category::bad_dim);
  CHECK(refused([&] { ctc_loss(x, to(targets, kFloat32), steps, lengths); }) == Category::dtype_mismatch);
  CHECK(refused([&] { ctc_loss(x, targets, steps, lengths, 0, "average"); }) == Category::bad_argument);
}

}  // namespace
}  // namespace retrograd
