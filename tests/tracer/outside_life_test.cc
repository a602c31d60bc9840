// Life of tensors from outside that a recorded function uses: those of others are freed when their owners are gone, and a
// later call is an error; those that only the recording has stay.
#include <catch2/catch.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace {

namespace rg = retrograd;
using rg::Category;
using rg::Tensor;
using rg::Tensors;
namespace optim = rg::optim;

constexpr int64_t kWide = 64;

// What a training function refers to, as a user's program has it.
struct Training {
  Tensor w = rg::full({kWide, kWide}, 0.5, {rg::kFloat64, rg::kCPU, true});
  Tensor b = rg::ones({kWide}, {rg::kFloat64, rg::kCPU, true});
  optim::AdamW optimizer{Tensors{w, b}, {.lr = 0.1}};

  // The line that uses `w`.
  static int& used_at() {
    static int line = 0;
    return line;
  }
  Tensor step(const Tensor& x) {
    used_at() = __LINE__ + 1;
    const Tensor loss = rg::mean(rg::square(rg::matmul(x, w) + b));
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  }
};

struct Counts {
  int64_t bytes, tensors;
  static Counts now() { return {rg::memory::stats().live_bytes, rg::memory::stats().live_tensors}; }
};

std::string text_of(const auto& call) {
  std::string text;
  CHECK(rg::category_of(call, &text) == Category::bad_argument);
  return text;
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE(
    "a recorded step frees model and optimizer that are destroyed, and says so when it is called again") {
  const Tensor x = rg::full({2, kWide}, 0.25, {rg::kFloat64});
  std::unique_ptr<Training> training;
  auto step = rg::compile_step([&](const Tensor& input) { return training->step(input); });
  const Counts before = Counts::now();
  training = std::make_unique<Training>();
  const int64_t of_training = Counts::now().bytes - before.bytes;
  REQUIRE(of_training >= 3 * kWide * kWide * 8);
  step(x), step(x);
  const rg::WeakRef<rg::TensorImpl> weight(training->w.impl());
  CHECK(!weight.expired());

  training.reset();
  CHECK(weight.expired());
  CHECK(Counts::now().bytes - before.bytes < kWide * 8);  // constants of the recording

  for (int i = 0; i < 2; ++i) {  // again and again
    const std::string error = text_of([&] { step(x); });
    INFO(error);
    CHECK(has(error, "compile_step"));
    CHECK(has(error, "f64[64,64]"));
    CHECK(has(error, "outside_life_test.cc:" + std::to_string(Training::used_at())));
    CHECK(has(error, "gone"));
    CHECK(has(error, "Hint"));
  }
  CHECK(step.stats().dropped == 1);
  CHECK(step.stats().captures == 1);
  CHECK(step.graph() == nullptr);
  CHECK(Counts::now().tensors == before.tensors);
  CHECK(Counts::now().bytes == before.bytes);
}

TEST_CASE("after a reset the function is recorded with the model and the optimizer that there are then") {
  const Tensor x = rg::full({2, kWide}, 0.25, {rg::kFloat64});
  std::optional<Training> training(std::in_place), eager(std::in_place);
  auto step = rg::compile_step([&](const Tensor& input) { return training->step(input); });
  step(x);
  training.emplace();  // at the same address
  CHECK(rg::category_of([&] { step(x); }) == Category::bad_argument);
  step.reset();
  for (int i = 0; i < 3; ++i) {
    step(x);
    eager->step(x);
  }
  CHECK(training->w.to_vector() == eager->w.to_vector());
  CHECK(step.stats().captures == 1);
}

TEST_CASE(
    "what only the recording has stays: constants that the function makes, and what it returns of them") {
  rg::NoGradGuard no_grad;
  auto compiled = rg::compile([](const Tensor& x) {
    const Tensor factors = rg::tensor({1.0, 2.0, 3.0}, {rg::kFloat64});
    return std::pair(x * factors, factors);
  });
  auto of_lambda = rg::compile([w = rg::full({3}, 4.0, {rg::kFloat64})](const Tensor& x) { return x * w; });
  const Tensor x = rg::ones({3}, {rg::kFloat64});
  for (int i = 0; i < 3; ++i) {
    const auto [product, factors] = compiled(x);
    CHECK(product.to_vector() == std::vector<double>{1, 2, 3});
    CHECK(factors.to_vector() == std::vector<double>{1, 2, 3});
    CHECK(of_lambda(x).to_vector() == std::vector<double>{4, 4, 4});
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("a tensor that is gone is not needed by a recording for other arguments") {
  rg::NoGradGuard no_grad;
  Tensor mask = rg::full({2}, 3.0);
  auto compiled = rg::compile([&](const Tensor& x, bool masked) { return masked ? x * mask : x + 1; });
  const Tensor x = rg::ones({2});
  compiled(x, true), compiled(x, false);
  mask = rg::full({2}, 5.0);
  CHECK(compiled(x, false).to_vector() == std::vector<double>{2, 2});
  CHECK(rg::category_of([&] { compiled(x, true); }) == Category::bad_argument);
  CHECK(compiled(x, false).to_vector() == std::vector<double>{2, 2});
  compiled.reset();
  CHECK(compiled(x, true).to_vector() == std::vector<double>{5, 5});
}

TEST_CASE("a view keeps the parameter that it shows") {
  Tensor whole = rg::ones({4}, {rg::kFloat64});
  Tensor part = whole.narrow(0, 0, 2);
  auto step = rg::compile_step([&](const Tensor& x) { part.add_(x); });
  const Tensor x = rg::ones({2}, {rg::kFloat64});
  step(x);
  const Tensor other = whole.detach();
  whole.reset();
  step(x);
  CHECK(other.to_vector() == std::vector<double>{3, 3, 1, 1});
  part.reset();
  CHECK(rg::category_of([&] { step(x); }) == Category::bad_argument);
  CHECK(other.to_vector() == std::vector<double>{3, 3, 1, 1});
}

TEST_CASE("leaves with opaque hooks are freed, too, and so are gradients") {
  auto leaf = std::make_unique<Tensor>(rg::ones({kWide}, {rg::kFloat64, rg::kCPU, true}));
  int calls = 0;
  leaf->register_hook([&](const Tensor&) { ++calls; });
  leaf->register_post_accumulate_grad_hook([&](const Tensor&) { ++calls; });
  auto step = rg::compile_step([&](const Tensor& x) { rg::sum(x * *leaf).backward(); });
  const Tensor x = rg::ones({kWide}, {rg::kFloat64});
  step(x), step(x);
  CHECK(calls == 4);
  const rg::WeakRef<rg::TensorImpl> weak(leaf->impl());
  leaf.reset();
  CHECK(weak.expired());
  CHECK(rg::category_of([&] { step(x); }) == Category::bad_argument);
  CHECK(calls == 4);
}

TEST_CASE("an optimizer without state that is gone is an error of its own") {
  const Tensor w = rg::ones({4}, {rg::kFloat64, rg::kCPU, true});
  std::optional<optim::SGD> optimizer(std::in_place, Tensors{w});
  auto step = rg::compile_step([&] {
    rg::sum(w).backward();
    optimizer->step();
    optimizer->zero_grad();
  });
  step();
  optimizer.reset();
  const std::string error = text_of([&] { step(); });
  INFO(error);
  CHECK(has(error, "optimizer that no longer exists"));
  CHECK(w.to_vector() == std::vector<double>(4, 1 - 1e-3));
}

TEST_CASE("runs on other threads while the owner lets go: each is whole or an error") {
  const Tensor x = rg::full({2, kWide}, 0.25, {rg::kFloat64});
  for (int round = 0; round < 20; ++round) {
    Tensor w = rg::full({kWide, kWide}, 0.5, {rg::kFloat64});
    const double sum = [&] {
      rg::NoGradGuard no_grad;
      return rg::sum(rg::matmul(x, w)).item<double>();
    }();
    auto step = rg::compile_step([&w](const Tensor& input) { return rg::sum(rg::matmul(input, w)); });
    step(x);
    std::atomic<int> wrong = 0, runs = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (;;) try {
            wrong += step(x).item<double>() != sum;
            ++runs;
          } catch (const rg::Error& e) {
            wrong += e.category() != Category::bad_argument;
            return;
          }
      });
    while (runs < 3) std::this_thread::yield();
    w.reset();
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
  }
}
