// compile_step (tracer/function/compile.h): whole training steps as one graph. Each is run eagerly and compiled, and
// must agree bit for bit.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
using rg::Category;
using rg::Tensor;
using rg::Tensors;

namespace {

using rg::testing::same_bits;

struct Net : rg::nn::Module {
  rg::nn::Linear fc1{this, "fc1", 6, 16};
  rg::nn::Linear fc2{this, "fc2", 16, 3};
  Tensor forward(rg::Operand x) { return fc2(rg::tanh(fc1(x))); }
};

Tensor batch(int64_t n, int64_t k, int seed) {
  rg::Generator& g = rg::default_generator();
  const rg::GeneratorState before = g.state();
  rg::manual_seed(static_cast<uint64_t>(seed));
  Tensor x = rg::randn({n, k});
  g.set_state(before);
  return x;
}

// Two nets with the same parameters; one is trained eagerly, the other compiled.
template <class MakeOptimizer, class Body>
void train_both(const MakeOptimizer& make, const Body& body, int steps = 4) {
  rg::manual_seed(1);
  Net plain;
  rg::manual_seed(1);
  Net recorded;
  auto plain_optimizer = make(plain), recorded_optimizer = make(recorded);
  const auto step_of = [&](Net& net, auto& optimizer) {
    return [&net, &optimizer, &body](const Tensor& x, const Tensor& y) { return body(net, optimizer, x, y); };
  };
  auto step = rg::compile_step(step_of(recorded, recorded_optimizer));
  auto eager = step_of(plain, plain_optimizer);
  for (int i = 0; i < steps; ++i) {
    INFO("step " << i);
    const Tensor x = batch(5, 6, i), y = batch(5, 3, 100 + i);
    rg::manual_seed(static_cast<uint64_t>(i));
    const Tensor expected = eager(x, y).detach();
    rg::manual_seed(static_cast<uint64_t>(i));
    const Tensor loss = step(x, y);
    CHECK(same_bits(loss, expected));
    CHECK_FALSE(loss.requires_grad());
    const Tensors p = plain.parameters(), q = recorded.parameters();
    for (size_t k = 0; k < p.size(); ++k) {
      CHECK(same_bits(p[k], q[k]));
      CHECK(same_bits(p[k].grad(), q[k].grad()));
      CHECK(q[k].is_leaf());
    }
  }
  CHECK(step.stats().captures == 1);
  CHECK(step.stats().hits == steps - 1);
}

}  // namespace

TEST_CASE("a step with AdamW trains as it does eagerly, bit for bit") {
  train_both([](Net& net) { return rg::optim::AdamW(net.parameters(), {.lr = 0.05, .amsgrad = true}); },
             [](Net& net, auto& optimizer, const Tensor& x, const Tensor& y) {
               optimizer.zero_grad();
               const Tensor loss = rg::mean(rg::square(net.forward(x) - y));
               loss.backward();
               optimizer.step();
               return loss;
             });
}

TEST_CASE("a step with SGD and momentum; the learning rate changes without another recording") {
  int calls = 0;
  train_both(
      [](Net& net) {
        return rg::optim::SGD(net.parameters(), {.lr = 0.1, .momentum = 0.9, .nesterov = true});
      },
      [&](Net& net, auto& optimizer, const Tensor& x, const Tensor& y) {
        ++calls;
        const Tensor loss = rg::mean(rg::square(net.forward(x) - y));
        loss.backward();
        optimizer.step();
        optimizer.zero_grad();
        return loss;
      });
  CHECK(calls == 4 + 1);
}

TEST_CASE(
    "gradients accumulate over steps that do not clear them: one more recording, for .grad that is there") {
  rg::manual_seed(1);
  Net plain;
  rg::manual_seed(1);
  Net recorded;
  const auto body = [](Net& net, const Tensor& x) {
    const Tensor loss = rg::sum(net.forward(x));
    loss.backward();
    return loss;
  };
  auto step = rg::compile_step([&](const Tensor& x) { return body(recorded, x); });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = batch(5, 6, i);
    CHECK(same_bits(body(plain, x).detach(), step(x)));
    for (size_t k = 0; k < plain.parameters().size(); ++k)
      CHECK(same_bits(plain.parameters()[k].grad(), recorded.parameters()[k].grad()));
  }
  CHECK(step.stats().captures == 2);
  CHECK(step.last_capture_reason().find(".grad") != std::string::npos);
}

TEST_CASE("the learning rate of each run counts") {
  const Tensor w = rg::ones({3}).requires_grad_();
  rg::optim::SGD optimizer({w}, {.lr = 1});
  auto step = rg::compile_step([&](const Tensor& x) {
    optimizer.zero_grad();
    rg::sum(w * x).backward();
    optimizer.step();
  });
  const Tensor x = rg::ones({3});
  step(x);
  CHECK(w.to_vector() == std::vector<double>{0, 0, 0});
  optimizer.set_lr(2);
  step(x);
  CHECK(w.to_vector() == std::vector<double>{-2, -2, -2});
  CHECK(step.stats().captures == 1);
}

TEST_CASE("writes in place, through views and detached tensors, to what is made inside and outside") {
  const auto body = [](const Tensor& x, const Tensor& buffer) {
    rg::NoGradGuard no_grad;
    Tensor t = x * 2.0;
    t.narrow(0, 0, 1).mul_(rg::full({1, 3}, 5.0));
    t.detach().add_(x);
    const Tensor row = t.select(0, 1);
    t.mul_(3.0);
    buffer.select(1, 0).copy_(row.narrow(0, 0, 2));
    buffer.add_(rg::ones({2, 3}));
    return t.t() + rg::sum(row);
  };
  const Tensor plain = rg::zeros({2, 3}), recorded = rg::zeros({2, 3});
  auto step = rg::compile_step([&](const Tensor& x) { return body(x, recorded); });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = batch(2, 3, i);
    const Tensor expected = body(x, plain);
    const uint32_t version = recorded.version();
    CHECK(same_bits(step(x), expected));
    CHECK(same_bits(plain, recorded));
    CHECK(recorded.version() > version);
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("a layout that does not allow a view is copied, as eagerly") {
  const auto body = [](const Tensor& x) { return rg::reshape(rg::transpose(x, 0, 1), {-1}) * 2.0; };
  auto step = rg::compile_step(body);
  const Tensor x = batch(2, 3, 0);
  CHECK(same_bits(step(x), body(x)));
}

TEST_CASE("a value written outside and one between, of one fused group") {
  const auto body = [](const Tensor& x, const Tensor& buffer) {
    rg::NoGradGuard no_grad;
    const Tensor between = buffer - 1.0, y = rg::sigmoid(x);
    buffer.copy_(between * y);
    return Tensors{between, y};
  };
  const Tensor plain = batch(2, 3, 9), recorded = rg::clone(plain);
  auto step = rg::compile_step([&](const Tensor& x) { return body(x, recorded); });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = batch(2, 3, i);
    const Tensors expected = body(x, plain), got = step(x);
    for (size_t k = 0; k < 2; ++k) CHECK(same_bits(expected[k], got[k]));
    CHECK(same_bits(plain, recorded));
  }
}

TEST_CASE("values that leave through each other: a swap of two buffers") {
  const Tensor a = rg::full({2}, 1.0), b = rg::full({2}, 2.0);
  auto step = rg::compile_step([&] {
    rg::NoGradGuard no_grad;
    const Tensor old = rg::clone(a);
    a.copy_(b);
    b.copy_(old);
    return Tensors{};
  });
  step();
  CHECK(a.to_vector() == std::vector<double>{2, 2});
  CHECK(b.to_vector() == std::vector<double>{1, 1});
  step();
  CHECK(a.to_vector() == std::vector<double>{1, 1});
}

TEST_CASE("random numbers are new in each run, and those of an eager one") {
  const Tensor x = rg::ones({64});
  auto step = rg::compile_step([&](const Tensor& t) { return rg::dropout(t, 0.5, true) + rg::rand({64}); });
  rg::manual_seed(7);
  const Tensor a = step(x), b = step(x);
  rg::manual_seed(7);
  const auto eager = [&] { return rg::dropout(x, 0.5, true) + rg::rand({64}); };
  CHECK(same_bits(a, eager()));
  CHECK(same_bits(b, eager()));
  CHECK_FALSE(same_bits(a, b));
}

TEST_CASE("other shapes, dtypes and modes are recorded again, and kept") {
  auto step = rg::compile_step([](const Tensor& x) { return rg::sum(x * x); });
  step(rg::ones({3}));
  step(rg::ones({4}));
  CHECK(step.last_capture_reason().find("f32[3]") != std::string::npos);
  step(rg::ones({3}, {rg::kFloat64}));
  step(rg::ones({3}));
  step(rg::ones({4}));
  CHECK(step.stats().captures == 3);
  CHECK(step.stats().hits == 2);
}

TEST_CASE("opaque hooks run in their place in each run, traceable ones are part of the graph") {
  const Tensor w = rg::ones({2}).requires_grad_();
  int calls = 0;
  rg::HookHandle opaque = w.register_hook([&](const Tensor& g) {
    ++calls;
    return g * 2.0;
  });
  auto step = rg::compile_step([&](const Tensor& x) {
    w.set_grad({});
    Tensor y = w * x;
    y.register_hook([](const Tensor& g) { return g + 1.0; }).set_traceable();
    rg::sum(y).backward();
  });
  for (int i = 1; i <= 3; ++i) {
    step(rg::full({2}, static_cast<double>(i)));
    CHECK(w.grad().to_vector() == std::vector<double>{4.0 * i, 4.0 * i});
    CHECK(calls == i);
  }
  opaque.remove();
  step(rg::ones({2}));
  CHECK(w.grad().to_vector() == std::vector<double>{2, 2});
  CHECK(calls == 3);
  CHECK(step.stats().captures == 2);
}

TEST_CASE("reading a computed value is an error that names the line; nothing outside has changed") {
  const Tensor w = rg::ones({2}).requires_grad_();
  bool reads = true;
  auto step = rg::compile_step([&](const Tensor& x) {
    const Tensor loss = rg::sum(w * x);
    loss.backward();
    if (reads && loss.item<double>() > 0) return loss;
    return loss * 2.0;
  });
  try {
    step(rg::ones({2}));
    FAIL("no error");
  } catch (const rg::Error& e) {
    CHECK(std::string(e.what()).find("compile_step_test.cc") != std::string::npos);
  }
  CHECK_FALSE(w.grad().defined());
  CHECK(w.is_leaf());
  reads = false;
  CHECK(step(rg::ones({2})).item<double>() == 4);
}

TEST_CASE("a version error inside a step is that of the eager step") {
  const Tensor w = rg::ones({2}).requires_grad_();
  auto step = rg::compile_step([&](const Tensor& x) {
    const Tensor y = rg::exp(w * x);
    y.detach().add_(rg::ones({2}));
    rg::sum(y).backward();
  });
  try {
    step(rg::ones({2}));
    FAIL("no error");
  } catch (const rg::Error& e) {
    CHECK(e.category() == Category::version_mismatch);
  }
}
