// Beyond 16-bit counts: cat and stack of any number of tensors, in each mode; records and nodes with more operands or
// results than they may have are refused with the limit.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
namespace ag = rg::autograd;
using rg::Category;

constexpr int64_t kMany = 70'000;
constexpr int64_t kPlaces[] = {0, 1, 4'463, 4'464, 32'766, 32'767, 32'768, 65'535, 65'536, 69'999};

// A tensor of one element for each element of x, by halving: the gradient of a piece has the size of what it was cut from.
void append_pieces(const Tensor& x, Tensors& pieces) {
  const int64_t n = x.size(0);
  if (n == 1) return pieces.push_back(x);
  append_pieces(x.narrow(0, 0, n / 2), pieces);
  append_pieces(x.narrow(0, n / 2, n - n / 2), pieces);
}
Tensors pieces_of(const Tensor& x) {
  Tensors pieces;
  append_pieces(x, pieces);
  return pieces;
}

struct Many : rg::Function<Many> {
  static Tensors forward(rg::AutogradContext*, const Tensor& x, int64_t n) {
    return Tensors(static_cast<size_t>(n), x);
  }
  static Tensors backward(rg::AutogradContext*, const Tensors& g) { return {g[0], {}}; }
};
struct Joins : rg::Function<Joins> {
  static Tensor forward(rg::AutogradContext*, const Tensors& x) { return x[0] * 2.0; }
  static Tensors backward(rg::AutogradContext*, const Tensors& g) { return {g[0]}; }
};

template <class F>
void check_limit(F f) {
  CHECK(category_of(f) == Category::unsupported);
  CHECK_THAT(error_of(f), Catch::Contains("at most 32767"));
}

}  // namespace

TEST_CASE("cat and stack of 70,000 tensors") {
  const Tensor weights = rg::arange(kMany).to(rg::kFloat64);
  for (const bool stacks : {false, true}) {
    INFO((stacks ? "stack" : "cat"));
    const auto loss = [&](const Tensor& x) {
      const Tensors pieces = pieces_of(x);
      const Tensor all = stacks ? rg::stack(pieces).view({kMany}) : rg::cat(pieces);
      return rg::sum(all * weights);
    };
    const auto check = [&](const Tensor& value, const Tensor& grad) {
      CHECK(value.item<double>() == (kMany - 1.0) * kMany / 2);
      for (const int64_t i : kPlaces) CHECK(grad.select(0, i).item<double>() == static_cast<double>(i));
    };
    const auto leaf_of_ones = [] { return rg::ones({kMany}, {rg::kFloat64}).requires_grad_(); };
    {
      INFO("eager");
      const Tensor x = leaf_of_ones(), y = loss(x);
      y.backward();
      check(y, x.grad());
    }
    {
      INFO("traced");
      rg::CompiledBackward compiled = rg::compile_backward();
      for (int i = 0; i < 2; ++i) {
        const Tensor x = leaf_of_ones(), y = loss(x);
        compiled.backward({y});
        check(y, x.grad());
      }
    }
    {
      INFO("step");
      auto step = rg::compile_step([&](const Tensor& x) {
        const Tensor y = loss(x);
        return Tensors{y, ag::grad({y}, {x})[0]};
      });
      for (int i = 0; i < 2; ++i) {
        const Tensors given = step(leaf_of_ones());
        check(given[0], given[1]);
      }
    }
  }
}

TEST_CASE("cat of leaves, each of which gets its gradient") {
  Tensors leaves;
  for (int64_t i = 0; i < kMany; ++i) leaves.push_back(rg::ones({1}).requires_grad_());
  const Tensor all = rg::cat(leaves);
  rg::sum(all * all).backward();
  for (const int64_t i : kPlaces) CHECK(leaves[static_cast<size_t>(i)].grad().item<double>() == 2);
}

TEST_CASE("more operands or results of one record than there may be") {
  const Tensor x = leaf({1});
  check_limit([&] { Many::apply(x, 32'768); });
  CHECK(Many::apply(x, 32'767).back().requires_grad());
  Tensors leaves;
  for (int64_t i = 0; i < kMany; ++i) leaves.push_back(leaf({1}));
  check_limit([&] { Joins::apply(leaves); });
  auto of_leaves = rg::compile([&] { return rg::sum(rg::cat(leaves)); });
  check_limit([&] { of_leaves(); });
  auto of_results = rg::compile([&](const Tensor& t) { return pieces_of(t * 2.0); });
  check_limit([&] { of_results(rg::ones({kMany}).requires_grad_()); });
  CHECK(of_results(rg::ones({100}).requires_grad_()).size() == 100);
}
