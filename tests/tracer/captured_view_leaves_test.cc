// Leaves from outside that are views: a compiled function gives them their gradients, whichever other tensors of their
// memory it uses.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

TEST_CASE("a leaf that is a view receives its gradient from a compiled function") {
  const Tensor x = rg::ones({2, 4}), base = rg::ones({4, 16});
  const auto gradient = [&](const Tensor& leaf, const auto& f) {
    const auto compiled = rg::compile(f);
    for (int call = 0; call < 3; ++call) {
      leaf.set_grad({});
      compiled(x).backward();
      REQUIRE(leaf.grad().defined());
      CHECK(leaf.grad().sum().item<float>() == 32);
    }
    return compiled.stats().eager;
  };
  const Tensor whole = rg::ones({16}).view({4, 4}).requires_grad_();
  CHECK(gradient(whole, [&](const Tensor& in) { return rg::sum(rg::mm(in, whole)); }) == 0);
  const Tensor part = base.narrow(1, 4, 4).requires_grad_();
  CHECK(gradient(part, [&](const Tensor& in) { return rg::sum(rg::mm(in, part)); }) == 0);
  CHECK(gradient(part, [&](const Tensor& in) { return rg::sum(rg::mm(in, part)) + rg::sum(base); }) >= 0);
  CHECK(gradient(part, [&](const Tensor& in) { return rg::sum(base) + rg::sum(rg::mm(in, part)); }) >= 0);
}
