// Objects that outlive a recording: values of the function that user code has kept, leaves that the function makes,
// state of modules, and scopes and features that are opened while a function is recorded. Each is right in every mode,
// or one clear error.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
namespace ag = rg::autograd;
using rg::Category;

using Loss = std::function<Tensor(const Tensor& x)>;

// The loss's gradient at x = [2, 3] eagerly, and three times through each mode.
struct Outcome {
  std::vector<double> value, gradient;
  bool operator==(const Outcome&) const = default;
};
template <class F>
Outcome differentiated(F&& f) {
  const Tensor x = leaf({2, 3});
  const Tensor loss = f(x);
  loss.backward();
  return {values(loss.detach()), values(x.grad())};
}

void check_all_modes(const Loss& loss) {
  const Outcome expected = differentiated(loss);
  {
    INFO("traced");
    rg::CompiledBackward compiled = rg::compile_backward();
    for (int i = 0; i < 3; ++i) {
      const Tensor x = leaf({2, 3});
      const Tensor l = loss(x);
      compiled(l);
      CHECK(Outcome{values(l.detach()), values(x.grad())} == expected);
    }
  }
  {
    auto function = rg::compile(loss);
    for (int i = 0; i < 3; ++i) {
      INFO("function, call " << i);
      CHECK(differentiated(function) == expected);
    }
  }
  {
    auto step = rg::compile_step([&](const Tensor& x) {
      const Tensor l = loss(x);
      l.backward();
      return Tensors{l.detach(), x.grad()};
    });
    for (int i = 0; i < 3; ++i) {
      INFO("step, call " << i << ", run as it is: " << step.last_eager_reason());
      const Tensors found = step(leaf({2, 3}));
      CHECK(Outcome{values(found[0]), values(found[1])} == expected);
    }
  }
}

struct OpaqueScale : rg::Function<OpaqueScale> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, const Tensor& by) {
    ctx->save_for_backward({by});
    return x * by;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    return {g[0] * ctx->get_saved_variables()[0], {}};
  }
};

struct OpaqueSquare : rg::Function<OpaqueSquare> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    return {g[0] * ctx->get_saved_variables()[0] * 2.0};
  }
};

}  // namespace

TEST_CASE("an opaque hook that keeps a tensor of the function finds its values") {
  SECTION("an argument") {
    check_all_modes([](const Tensor& x) {
      const Tensor h = x * 2.0;
      h.register_hook([x](const Tensor& g) { return g * x.detach(); });
      return rg::sum(h);
    });
  }
  SECTION("an inner tensor") {
    check_all_modes([](const Tensor& x) {
      const Tensor h = rg::exp(x), k = rg::sin(x);
      k.register_hook([h](const Tensor& g) { return g * h.detach(); });
      return rg::sum(h * k);
    });
  }
  SECTION("the number in an inner tensor") {
    check_all_modes([](const Tensor& x) {
      const Tensor s = rg::sum(x), h = rg::exp(x);
      h.register_hook([s](const Tensor& g) { return g * s.item<double>(); });
      return rg::sum(h);
    });
  }
  SECTION("a result of an opaque function") {
    check_all_modes([](const Tensor& x) {
      const Tensor y = OpaqueSquare::apply(x), h = y * 1.0;
      h.register_hook([y](const Tensor& g) { return g * y.detach(); });
      return rg::sum(h);
    });
  }
  SECTION("a tensor that it puts a hook on") {
    check_all_modes([](const Tensor& x) {
      const Tensor h = x * 2.0, y = h * h;
      y.register_hook([h](const Tensor& g) {
        h.register_hook([](const Tensor& q) { return q * 10.0; });
        return g;
      });
      return rg::sum(y);
    });
  }
  SECTION("a pack hook's unpack") {
    check_all_modes([](const Tensor& x) {
      const Tensor h = rg::exp(x);
      rg::SavedTensorHooksGuard guard([](const Tensor& t) { return t; },
                                      [h](const Tensor& t) { return t + h.detach() * 0.0; });
      return rg::sum(rg::sin(x));
    });
  }
}

TEST_CASE("user code that keeps nothing does not keep a function from being recorded") {
  const auto loss = [](const Tensor& x) {
    const Tensor h = rg::exp(x);
    const Tensor y = OpaqueScale::apply(h, rg::sin(h));
    y.register_hook([](const Tensor& g) { return g * 2.0; });
    y.grad_fn().register_prehook([](const Tensors& g) { return g; });
    rg::SavedTensorHooksGuard guard([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; });
    return rg::sum(y * rg::cos(x));
  };
  check_all_modes(loss);
  auto function = rg::compile(loss);
  for (int i = 0; i < 3; ++i) differentiated(function);
  CHECK(function.stats().captures == 1);
  CHECK(function.stats().eager == 1);  // the first call of opaque functions
  auto step = rg::compile_step([&](const Tensor& x) { loss(x).backward(); });
  for (int i = 0; i < 3; ++i) step(leaf({2, 3}));
  CHECK(step.stats().captures == 1);
  CHECK(step.stats().eager == 1);
}

TEST_CASE("a kept value that is used when the recording is over is one clear error") {
  Tensor kept;
  auto step = rg::compile_step([&](const Tensor& x) {
    kept = x * 2.0;
    return kept + 1.0;
  });
  step(rg::ones({1}));
  for (const std::string& error : {error_of([&] { kept.item(); }), error_of([&] { kept.to_vector(); }),
                                   error_of([&] { kept + 1.0; }), error_of([&] { kept.detach(); })}) {
    INFO(error);
    CHECK(error.find("made while a function was recorded") != std::string::npos);
    CHECK(error.find("Hint:") != std::string::npos);
  }
  CHECK(error_of([&] { kept + 1.0; }).find("kept_values_test.cc:") != std::string::npos);
  CHECK(error_of([&] { kept.detach(); }).find("kept_values_test.cc:") != std::string::npos);
  auto other = rg::compile_step([&](const Tensor& x) { return x * kept; });
  const std::string error = error_of([&] { other(rg::ones({1})); });
  INFO(error);
  CHECK(error.find("another recording") != std::string::npos);
  CHECK(error.find("kept_values_test.cc:") != std::string::npos);
}

TEST_CASE("opaque functions with grad and create_graph inside recorded functions: each call alike") {
  SECTION("grad of an opaque function") {
    auto step =
        rg::compile_step([](const Tensor& x) { return ag::grad({rg::sum(OpaqueSquare::apply(x))}, {x})[0]; });
    for (int i = 0; i < 4; ++i) CHECK(values(step(leaf({2}))) == std::vector<double>{4});
    CHECK(step.stats().captures == 1);
    auto function =
        rg::compile([](const Tensor& x) { return ag::grad({rg::sum(OpaqueSquare::apply(x))}, {x})[0]; });
    for (int i = 0; i < 4; ++i) CHECK(values(function(leaf({2})).detach()) == std::vector<double>{4});
  }
  SECTION("an opaque hook that only looks, in a backward with create_graph") {
    int seen = 0;
    const auto body = [&](const Tensor& x) {
      const Tensor h = x * 1.0;
      h.register_hook([&](const Tensor&) {
        ++seen;
        return Tensor();
      });
      const Tensor g = ag::grad({rg::sum(h * h)}, {x}, {}, true, true)[0];
      return ag::grad({rg::sum(g)}, {x})[0].detach();
    };
    auto step = rg::compile_step(body);
    auto function = rg::compile(body);
    for (int i = 0; i < 3; ++i) {
      seen = 0;
      CHECK(values(body(leaf({3}))) == std::vector<double>{2});
      const int eagerly = std::exchange(seen, 0);
      CHECK(values(step(leaf({3}))) == std::vector<double>{2});
      CHECK(std::exchange(seen, 0) == eagerly);
      CHECK(values(function(leaf({3}))) == std::vector<double>{2});
      CHECK(seen == eagerly);
    }
    CHECK(step.last_eager_reason().find("create_graph") != std::string::npos);
    CHECK(step.last_eager_reason().find("kept_values_test.cc:") != std::string::npos);
  }
  SECTION("a second derivative through an opaque function") {
    const auto body = [](const Tensor& x) {
      const Tensor g = ag::grad({rg::sum(OpaqueSquare::apply(x) * x)}, {x}, {}, true, true)[0];
      return ag::grad({rg::sum(g)}, {x})[0].detach();
    };
    const std::vector<double> expected = values(body(leaf({3})));
    auto step = rg::compile_step(body);
    auto function = rg::compile(body);
    for (int i = 0; i < 4; ++i) {
      CHECK(values(step(leaf({3}))) == expected);
      CHECK(values(function(leaf({3}))) == expected);
    }
  }
}

TEST_CASE("leaves that a compiled function makes") {
  SECTION("returned together with values that depend on it") {
    auto f = rg::compile([](const Tensor& u) {
      const Tensor p = rg::zeros({2});
      p.requires_grad_();
      return Tensors{p, p + u, p * u};
    });
    for (int i = 0; i < 3; ++i) {
      const Tensors out = f(rg::full({2}, 5.0 + i));
      REQUIRE(out[0].requires_grad());
      REQUIRE(out[0].is_leaf());
      REQUIRE(out[1].requires_grad());
      REQUIRE(out[2].requires_grad());
      rg::sum(out[1] + out[2]).backward();
      CHECK(values(out[0].grad()) == std::vector<double>{6.0 + i, 6.0 + i});
    }
  }
  SECTION("next to an argument with a gradient") {
    auto f = rg::compile([](const Tensor& u) {
      const Tensor p = rg::full({2}, 3.0).requires_grad_();
      return Tensors{p * u, p};
    });
    for (int i = 0; i < 3; ++i) {
      const Tensor u = leaf({1, 2});
      const Tensors out = f(u);
      rg::sum(out[0] * out[0]).backward();
      CHECK(values(u.grad()) == std::vector<double>{18, 36});
      CHECK(values(out[1].grad()) == std::vector<double>{6, 24});
    }
  }
  SECTION("not returned") {
    auto f = rg::compile([](const Tensor& u) { return rg::zeros({2}).requires_grad_() + u; });
    for (int i = 0; i < 3; ++i) {
      const Tensor out = f(rg::ones({2}));
      CHECK(out.requires_grad());
      CHECK_NOTHROW(rg::sum(out).backward());
    }
  }
  SECTION("gradients of gradients are refused where it is returned") {
    auto f = rg::compile([](const Tensor& u) {
      const Tensor p = rg::full({2}, 3.0).requires_grad_();
      return Tensors{p * u * u, p};
    });
    const Tensor u = leaf({1, 2});
    CHECK(category_of([&] { ag::grad({rg::sum(f(u)[0])}, {u}, {}, true, true); }) == Category::unsupported);
  }
}

TEST_CASE("what a module is switched to is part of what a recording depends on") {
  struct Net : rg::nn::Module {
    rg::nn::Dropout dropout{this, "dropout", 0.5};
    rg::nn::LSTM lstm{this, "lstm", 3, 4, {.num_layers = 2, .dropout = 0.5}};
  } net;
  const Tensor x = rg::ones({1000});
  const auto zeros_in = [](const Tensor& t) {
    int count = 0;
    for (double v : t.to_vector()) count += v == 0;
    return count;
  };
  auto function = rg::compile([&](const Tensor& v) { return net.dropout(v); });
  auto step = rg::compile_step([&](const Tensor& v) { return net.dropout(v); });
  for (int round = 0; round < 2; ++round) {
    net.train();
    CHECK(zeros_in(function(x)) > 300);
    CHECK(zeros_in(step(x)) > 300);
    net.eval();
    CHECK(zeros_in(function(x)) == 0);
    CHECK(zeros_in(step(x)) == 0);
  }
  CHECK(step.stats().captures == 2);
  CHECK(step.stats().hits == 2);
  CHECK(step.last_capture_reason() == "a module was switched between training and use");
}

TEST_CASE("a module that is gone does not count") {
  std::optional<rg::nn::Dropout> dropout;
  dropout.emplace(nullptr, "", 0.5);
  bool use = true;
  auto step = rg::compile_step([&](const Tensor& v) { return use ? (*dropout)(v) : v * 2.0; });
  step(rg::ones({2}));
  use = false;
  dropout.reset();
  CHECK_NOTHROW(step(rg::ones({2})));
}

TEST_CASE("scopes that are opened while a function is recorded") {
  SECTION("saved tensors may be written to") {
    check_all_modes([](const Tensor& x) {
      Tensor g;
      {
        rg::AllowMutationOnSavedTensors allow;
        const Tensor h = x * 1.0, y = h * h;
        h.mul_(3.0);
        g = ag::grad({rg::sum(y)}, {x}, {}, true)[0];
      }
      return rg::sum(x * g.detach());
    });
  }
  SECTION("anomaly mode") {
    check_all_modes([](const Tensor& x) {
      rg::autograd::DetectAnomalyGuard guard;
      const Tensor g = ag::grad({rg::sum(x * x)}, {x}, {}, true)[0];
      return rg::sum(x * g.detach());
    });
  }
  SECTION("forward mode") {
    check_all_modes([](const Tensor& x) {
      const Tensor t =
          ag::jvp([](const Tensors& v) { return Tensors{rg::exp(v[0])}; }, {x.detach()}, {rg::ones({2})})
              .tangents[0];
      return rg::sum(x * t);
    });
  }
  SECTION("a captured backward") {
    check_all_modes([](const Tensor& x) {
      rg::CompiledBackward inner = rg::compile_backward();
      rg::CompiledBackwardScope scope(inner);
      const Tensor g = ag::grad({rg::sum(x * x)}, {x}, {}, true)[0];
      return rg::sum(x * g.detach());
    });
  }
  SECTION("a compiled function") {
    auto inner = rg::compile([](const Tensor& v) { return v * v; });
    check_all_modes([&](const Tensor& x) { return rg::sum(inner(x) * x); });
  }
}

TEST_CASE("features that read values are refused while a function is recorded, with name, line and hint") {
  const auto check_refused = [](std::string_view name, const std::function<void(const Tensor&)>& f) {
    for (const bool is_step : {true, false}) {
      const std::string error = error_of([&] {
        if (is_step)
          rg::compile_step([&](const Tensor& x) { f(x * 2.0); })(leaf({2, 3}));
        else
          rg::compile([&](const Tensor& x) { f(x * 2.0); })(leaf({2, 3}));
      });
      INFO(name << ": " << error);
      CHECK(error.find(name) == 0);
      CHECK(error.find("kept_values_test.cc:") != std::string::npos);
      CHECK(error.find("Hint:") != std::string::npos);
    }
  };
  check_refused("item", [](const Tensor& h) { rg::sum(h).item(); });
  check_refused("item", [](const Tensor& h) { rg::sum(h).item<double>(); });
  check_refused("to_vector", [](const Tensor& h) { h.to_vector(); });
  check_refused("data_ptr", [](const Tensor& h) { h.data_ptr<float>(); });
}
