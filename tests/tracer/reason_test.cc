// Why a backward is captured again: the text names the old and the new state, for every part of the key. And the
// counter of runs that leave their graph. tests/scenarios tests which changes need a capture at all.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

Tensor leaf(const rg::Shape& shape = {2}, rg::ScalarType dtype = rg::kFloat32) {
  return rg::ones(shape, {dtype}).requires_grad_();
}

// The reason that `second` is captured after `first`.
std::string reason(const std::function<void(rg::CompiledBackward&)>& first,
                   const std::function<void(rg::CompiledBackward&)>& second) {
  rg::CompiledBackward traced = rg::compile_backward();
  first(traced);
  second(traced);
  REQUIRE(traced.stats().captures == 2);
  return traced.last_capture_reason();
}

Tensor keep(const Tensor& g) { return g; }

}  // namespace

TEST_CASE("another question") {
  const Tensor x = leaf(), y = rg::sum(x * x);
  const auto grad = [&](rg::CompiledBackward& t) { t.grad({y}, {x}, {}, true); };
  CHECK(reason([&](auto& t) { t.backward({y}, {}, true); }, grad) ==
        "gradients were accumulated, are returned");
  CHECK(reason(grad, [&](auto& t) { t.grad({y}, {x}, {}, true, true); }) ==
        "create_graph was false, is true");
  CHECK(reason(grad, [&](auto& t) { t.grad({y, y}, {x}, {}, true); }) == "there were 1 roots, are 2");
  CHECK(reason(grad, [&](auto& t) { t.grad({y}, {x, x}, {}, true); }) == "there were 1 inputs, are 2");
  CHECK(reason([&](auto& t) { t.backward({y}, {}, true); },
               [&](auto& t) { t.backward({y}, {}, true, false, rg::Tensors{x}); }) ==
        "there were no inputs, are 1");
}

TEST_CASE("another op, another type, another operand that wants a gradient") {
  const Tensor x = leaf(), w = rg::ones({2});
  const auto backward = [](const Tensor& y) {
    return [y](rg::CompiledBackward& t) { t.backward({y}, {rg::ones_like(y)}, true); };
  };
  CHECK(reason(backward(rg::exp(x)), backward(rg::log(x))) ==
        "record 0 was exp (f32[2]) -> f32[2], is log (f32[2]) -> f32[2]");
  CHECK(reason(backward(rg::exp(x)), backward(rg::exp(leaf({2}, rg::kFloat64)))) ==
        "cotangent 0 was f32[2], is f64[2]");
  CHECK_THAT(reason(backward(x * w), backward(x * leaf())),
             Catch::StartsWith("operand 1 of record 0 (mul") && Catch::EndsWith("now wants a gradient"));
  CHECK_THAT(reason(backward(x * leaf()), backward(x * x)), Catch::Contains("came from leaf") ||
                                                                 Catch::Contains("2 leaves were reached, now 1"));
}

TEST_CASE("other hooks") {
  const Tensor x = leaf();
  const Tensor plain = rg::exp(x), hooked = rg::exp(x);
  hooked.register_hook(keep);
  const auto backward = [](const Tensor& y) {
    return [y](rg::CompiledBackward& t) { t.backward({y}, {rg::ones_like(y)}, true); };
  };
  CHECK(reason(backward(plain), backward(hooked)) ==
        "record 0 (exp) had no hooks or packed values, has 1 tensor hook");
  const Tensor twice = rg::exp(x);
  twice.register_hook(keep);
  twice.register_hook(keep);
  twice.retain_grad();
  CHECK(reason(backward(hooked), backward(twice)) ==
        "record 0 (exp) had 1 tensor hook, has 2 tensor hooks, 1 retained gradient");
  Tensor packed;
  {
    rg::SavedTensorHooksGuard guard(keep, keep);
    packed = rg::exp(x);
  }
  CHECK(reason(backward(packed), backward(plain)) ==
        "record 0 (exp) had packed slots 0, has no hooks or packed values");
  const auto add = [&](rg::CompiledBackward& t) {
    x.register_post_accumulate_grad_hook([](const Tensor&) {});
    t.backward({plain}, {rg::ones_like(plain)}, true);
  };
  CHECK(reason(backward(plain), add) == "leaf 0 had no hooks or packed values, has 1 post-accumulate hook");
}

TEST_CASE("a run that leaves its graph is counted") {
  rg::CompiledBackward traced = rg::compile_backward();
  bool adds = false;
  int calls = 0;
  const auto run = [&] {
    const Tensor x = leaf();
    const Tensor early = rg::exp(x), late = rg::exp(early);
    late.register_hook([&, early](const Tensor& g) {
      if (adds) early.register_hook([&](const Tensor& h) { return ++calls, h; });
      return g;
    });
    traced.backward({late}, {rg::ones_like(late)});
    return x.grad().to_vector();
  };
  const auto before = run();
  run();
  CHECK(traced.stats().left == 0);
  adds = true;
  CHECK(run() == before);
  CHECK(calls == 1);
  CHECK(traced.stats().left == 1);
  CHECK(traced.explain().find("1 runs left their graph") != std::string::npos);
}
