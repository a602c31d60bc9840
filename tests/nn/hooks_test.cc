// Hooks of modules: what they see and replace, their order, removal; in backwards, the gradients of inputs and results;
// in recorded functions, that a change of hooks is noticed and that a run does what eager code does.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Category;
using rg::Tensor;
using rg::Tensors;

namespace {

// y = w x, with w = 3.
struct Scale : nn::Module {
  nn::Parameter w{this, "w", rg::full({}, 3.0)};
  using Module::Module;
  Tensor forward(rg::Operand x) const { return x.tensor() * w; }
  Tensor operator()(rg::Operand x) const { return call(*this, x); }
};

struct SumAndProduct : nn::Module {
  struct Output {
    Tensor sum;
    std::optional<Tensor> product;
  };
  Output forward(const Tensor& a, const Tensors& more, double factor) const {
    return {a + more[0], a * more[0] * factor};
  }
  Output operator()(const Tensor& a, const Tensors& more, double factor) const {
    return call(*this, a, more, factor);
  }
};

struct Net : nn::Module {
  Scale inner{this, "inner"};
  Tensor forward(const Tensor& x) const { return inner(x) + 1.0; }
};

double value(const Tensor& x) { return x.item<double>(); }
Tensor number(double v, bool requires_grad = false) {
  const Tensor x = rg::full({}, v);
  return requires_grad ? Tensor(x.requires_grad_()) : x;
}

}  // namespace

TEST_CASE("forward hooks see inputs and results, replace them, and run in order until they are removed") {
  Scale m;
  std::vector<std::string> log;
  auto pre = m.register_forward_pre_hook([&](nn::Module& module, const Tensors& in) {
    CHECK(&module == &m);
    log.push_back("pre " + std::to_string(static_cast<int>(value(in.at(0)))));
    return in[0] + 1.0;
  });
  auto looks = m.register_forward_hook([&](nn::Module&, const Tensors& in, const Tensor& out) {
    log.push_back(std::to_string(static_cast<int>(value(in.at(0)))) + " -> " +
                  std::to_string(static_cast<int>(value(out))));
  });
  auto adds = m.register_forward_hook(
      [](nn::Module&, const Tensors&, const Tensors& out) { return Tensors{out.at(0) + 100.0}; });
  m.register_forward_hook([&](nn::Module&, const Tensors&, const Tensor&) { log.push_back("first"); }, true);
  CHECK(value(m(number(1))) == 106);
  CHECK(log == std::vector<std::string>{"pre 1", "first", "2 -> 6"});
  CHECK(value(m.forward(number(1))) == 3);  // forward itself runs none
  adds.remove();
  adds.remove();
  pre.remove();
  CHECK(value(m(number(1))) == 3);
  CHECK(log.back() == "1 -> 3");
  looks.remove();
  const size_t before = log.size();
  m(number(1));
  CHECK(log.size() == before + 1);
}

TEST_CASE("hooks see the tensors in lists, optionals and structs") {
  SumAndProduct m;
  m.register_forward_pre_hook([](nn::Module&, const Tensors& in) {
    CHECK(in.size() == 2);
    return Tensors{in[1], in[0] * 10.0};
  });
  m.register_forward_hook([](nn::Module&, const Tensors&, const Tensors& out) {
    CHECK(out.size() == 2);
    return Tensors{Tensor(), out[1] + 0.5};
  });
  const SumAndProduct::Output out = m(number(2), {number(3)}, 2.0);
  CHECK(value(out.sum) == 3 + 20);
  CHECK(value(*out.product) == 3 * 20 * 2 + 0.5);
}

TEST_CASE("a hook that returns another number of tensors is an error that names the module") {
  Scale m;
  auto handle =
      m.register_forward_pre_hook([](nn::Module&, const Tensors&) { return Tensors(2, rg::ones({})); });
  std::string text;
  CHECK(rg::category_of([&] { m(number(1)); }, &text) == Category::hook_bad_result);
  CHECK_THAT(text, Catch::Contains("Scale"));
  handle.remove();
  SumAndProduct two;
  two.register_forward_hook([](nn::Module&, const Tensors&, const Tensor&) {});
  CHECK(rg::category_of([&] { two(number(1), {number(2)}, 1); }) == Category::hook_bad_result);
  CHECK(rg::category_of([&] {
          m.register_forward_hook(std::function<void(nn::Module&, Tensors, Tensors)>());
        }) == Category::bad_argument);
}

TEST_CASE("a hook may remove itself, and outlive its module's handle") {
  auto m = std::make_unique<Scale>();
  int calls = 0;
  nn::RemovableHandle handle;
  handle =
      m->register_forward_hook([&](nn::Module&, const Tensors&, const Tensor&) { ++calls, handle.remove(); });
  (*m)(number(1));
  (*m)(number(1));
  CHECK(calls == 1);
  nn::RemovableHandle late = m->register_forward_hook([](nn::Module&, const Tensors&, const Tensor&) {});
  m.reset();
  late.remove();
}

TEST_CASE("full backward hooks: gradients of inputs and results, as PyTorch gives them") {
  Scale m;
  Tensors seen;
  m.register_full_backward_pre_hook(
      [](nn::Module&, const Tensors& grad_output) { return grad_output[0] * 2.0; });
  m.register_full_backward_hook(
      [&](nn::Module& module, const Tensors& grad_input, const Tensors& grad_output) {
        CHECK(&module == &m);
        seen = {grad_input.at(0), grad_output.at(0)};
        return grad_input[0] + 1000.0;
      });
  const Tensor x = number(5, true);
  (m(x) * 7.0).backward();
  REQUIRE(seen.size() == 2);
  CHECK(value(seen[1]) == 14);
  CHECK(value(seen[0]) == 42);
  CHECK(value(x.grad()) == 1042);
  CHECK(value(m.w.grad()) == 5 * 14);
}

TEST_CASE("a full backward hook without a gradient of an input sees those of results, and replaces nothing") {
  Scale m;
  int calls = 0;
  auto handle = m.register_full_backward_hook([&](nn::Module&, const Tensors& in, const Tensors& out) {
    ++calls;
    CHECK((in.size() == 1 && !in[0].defined() && value(out.at(0)) == 1));
  });
  m(number(2)).backward();
  CHECK(calls == 1);
  handle.remove();
  handle = m.register_full_backward_hook([](nn::Module&, const Tensors&, const Tensors& out) { return out; });
  const Tensor y = m(number(2));
  CHECK(rg::category_of([&] { y.backward(); }) == Category::hook_bad_result);
  {
    rg::NoGradGuard no_grad;
    CHECK_FALSE(m(number(2)).requires_grad());
  }
}

TEST_CASE("backward hooks of several inputs and results; undefined for one that requires no gradient") {
  SumAndProduct m;
  Tensors grads_in, grads_out;
  m.register_full_backward_hook(
      [&](nn::Module&, const Tensors& in, const Tensors& out) { grads_in = in, grads_out = out; });
  const Tensor a = number(2, true);
  const SumAndProduct::Output out = m(a, {number(3)}, 1.0);
  (out.sum * 10.0 + *out.product).backward();
  REQUIRE(grads_in.size() == 2);
  CHECK(value(grads_in[0]) == 13);
  CHECK_FALSE(grads_in[1].defined());
  CHECK(value(grads_out[0]) == 10);
  CHECK(value(grads_out[1]) == 1);
}

TEST_CASE("a call keeps the backward hooks that it began with, and a shared module; a gone one is an error") {
  const Tensor x = number(1, true);
  int calls = 0;
  const auto count = [&](nn::Module&, const Tensors&, const Tensors&) { ++calls; };
  Tensor y;
  {
    const auto m = std::make_shared<Scale>();
    auto handle = m->register_full_backward_hook(count);
    y = (*m)(x);
    handle.remove();
  }
  y.backward();
  CHECK(calls == 1);
  {
    const auto net = std::make_shared<Net>();  // shares its member, too
    net->inner.register_full_backward_hook(count);
    y = net->inner(x);
  }
  y.backward();
  CHECK(calls == 2);
  {
    Scale m;
    m.register_full_backward_hook(count);
    y = m(x);
  }
  CHECK(rg::category_of([&] { y.backward(); }) == Category::hook_forbidden);
}

TEST_CASE("double backward through a module with backward hooks") {
  Scale m;
  int calls = 0;
  m.register_full_backward_hook([&](nn::Module&, const Tensors&, const Tensors&) { ++calls; });
  const Tensor x = number(2, true);
  const Tensor y = m(x * x);
  const Tensor g = rg::autograd::grad({y}, {x}, {}, {}, true)[0];
  CHECK(value(g) == 12);
  CHECK(value(rg::autograd::grad({g}, {x})[0]) == 6);
  CHECK(calls == 1);
}

TEST_CASE("hooks run where functional_call calls a module, and in modules of modules") {
  Net net;
  net.register_forward_hook([](nn::Module&, const Tensors&, const Tensor& out) { return out * 2.0; });
  CHECK(value(nn::functional_call(net, {{"inner.w", number(5)}}, number(1))) == 12);
  net.inner.register_forward_hook([](nn::Module&, const Tensors&, const Tensor& out) { return out + 1.0; });
  CHECK(value(nn::functional_call(net, {{"inner.w", number(5)}}, number(1))) == 14);
}

TEST_CASE("a recorded function notices added and removed hooks, and records what they compute") {
  Net net;
  auto f = rg::compile([&](const Tensor& x) { return net.forward(x); });
  const Tensor x = rg::full({3}, 2.0);
  CHECK(f(x).to_vector() == std::vector<double>(3, 7));
  CHECK(f(x).to_vector() == std::vector<double>(3, 7));
  CHECK(f.stats().captures == 1);
  auto handle = net.inner.register_forward_hook(
      [](nn::Module&, const Tensors& in, const Tensor& out) { return out * in[0]; });
  CHECK(f(x).to_vector() == std::vector<double>(3, 13));
  CHECK(f(rg::full({3}, 3.0)).to_vector() == std::vector<double>(3, 28));
  CHECK(f.stats().captures == 2);
  CHECK_THAT(std::string(f.last_capture_reason()), Catch::Contains("hooks of a module"));
  handle.remove();
  CHECK(f(x).to_vector() == std::vector<double>(3, 7));
}

TEST_CASE(
    "backward hooks in recorded steps: called in each run, with eager's gradients; traceable ones inlined") {
  for (const bool traceable : {false, true}) {
    Scale eager, recorded;
    std::vector<double> seen[2];
    const auto set_up = [&](Scale& m, std::vector<double>& log) {
      auto handle =
          m.register_full_backward_hook([&, traceable](nn::Module&, const Tensors& in, const Tensors& out) {
            if (!traceable) log.push_back(value(rg::sum(in[0]))), log.push_back(value(rg::sum(out[0])));
            return in[0] * 0.5;
          });
      handle.set_traceable(traceable);
    };
    set_up(eager, seen[0]), set_up(recorded, seen[1]);
    const Tensor before[2] = {number(1, true), number(1, true)};
    const auto step = [](Scale& m, const Tensor& start, const Tensor& x) {
      const Tensor loss = rg::sum(m(start * x) * x);
      loss.backward();
      return loss;
    };
    auto compiled = rg::compile_step([&](const Tensor& x) { return step(recorded, before[1], x); });
    for (int i = 1; i <= 4; ++i) {
      const Tensor x = rg::full({2}, i);
      CHECK(value(step(eager, before[0], x)) == value(compiled(x)));
      CHECK(value(before[0].grad()) == value(before[1].grad()));
      CHECK(value(eager.w.grad()) == value(recorded.w.grad()));
    }
    CHECK(seen[0] == seen[1]);
    CHECK(seen[0].size() == (traceable ? 0 : 8));
    CHECK(compiled.stats().hits >= 2);
  }
}

TEST_CASE("backward hooks with captured backwards") {
  Scale m;
  std::vector<double> seen;
  m.register_full_backward_hook([&](nn::Module&, const Tensors& in, const Tensors& out) {
    seen.push_back(value(in[0]) + 100 * value(out[0]));
  });
  auto backward = rg::compile_backward();
  const Tensor x = number(2, true);
  for (int i = 1; i <= 3; ++i) backward(m(x) * i);
  CHECK(seen == std::vector<double>{103, 206, 309});
  CHECK(value(x.grad()) == 18);
}
