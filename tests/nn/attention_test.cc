// MultiheadAttention: queries without keys, weights, inputs that are one tensor, sizes that vary in recordings, causal
// attention, dropout, hooks, 16 bits, second derivatives, initial values, errors.
//
// Not tested here: PyTorch's numbers, for all options and masks (attention_numbers_test.cc).
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "ir/graph.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Category;
using rg::Tensor;
using rg::testing::same_bits;

namespace {

constexpr int64_t kWidth = 8, kHeads = 2;

nn::MultiheadAttentionOptions batch_first() { return {.batch_first = true}; }

double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return rg::max(rg::abs(a - b)).item<double>();
}

// True from column `length[i]` on.
Tensor padding(const std::vector<int64_t>& lengths, int64_t longest) {
  const int64_t rows = std::ssize(lengths);
  return rg::ge(rg::arange(longest), rg::tensor(lengths, {rows, 1}, {rg::kInt64}));
}

// `mask` is true for what follows a position.
Tensor following(int64_t length) { return rg::triu(rg::ones({length, length}, {rg::kBool}), 1); }

TEST_CASE("a query with all keys left out gets zeros and no gradient, with and without weights") {
  const nn::MultiheadAttention m(nullptr, "", kWidth, kHeads, batch_first());
  const Tensor x = rg::randn({2, 3, kWidth}).requires_grad_(), mask = padding({0, 2}, 3);
  for (bool need_weights : {true, false}) {
    const auto out = m(x, x, x, mask, need_weights);
    CHECK(rg::max(rg::abs(out.output.select(0, 0))).item<double>() == 0);  // the bias of out_proj is zero
    CHECK(rg::max(rg::abs(out.output.select(0, 1))).item<double>() > 0);
    if (need_weights) CHECK(rg::max(out.weights.select(0, 0)).item<double>() == 0);
    const Tensor grad = rg::autograd::grad({rg::sum(out.output)}, {x})[0];
    CHECK(rg::max(rg::abs(grad.select(0, 0))).item<double>() == 0);
    CHECK(rg::all(rg::isfinite(grad)).item<bool>());
  }
}

TEST_CASE("weights sum up to one, and asking for them does not change the output") {
  const nn::MultiheadAttention m(nullptr, "", kWidth, kHeads, batch_first());
  const Tensor x = rg::randn({2, 3, kWidth}), y = rg::randn({2, 5, kWidth}), mask = padding({5, 2}, 5);
  const auto [output, weights] = m(x, y, y, mask);
  CHECK(weights.sizes() == rg::IntArray{2, 3, 5});
  CHECK(distance(rg::sum(weights, -1), rg::ones({2, 3})) < 1e-6);
  CHECK(rg::max(weights.select(0, 1).narrow(1, 2, 3)).item<double>() == 0);
  const auto of_heads = m(x, y, y, mask, true, {}, false);
  CHECK(of_heads.weights.sizes() == rg::IntArray{2, kHeads, 3, 5});
  CHECK(distance(rg::mean(of_heads.weights, 1), weights) < 1e-6);
  const auto without = m(x, y, y, mask, false);
  CHECK_FALSE(without.weights.defined());
  CHECK(distance(without.output, output) < 1e-6);
  CHECK(distance(m(x, y, y, {}, false).output, m(x, y, y).output) < 1e-6);  // the fused attention
}

int64_t products(const rg::FunctionCache& f) {
  return std::ranges::count_if(f.graph()->nodes(),
                               [](const auto& node) { return node.op->name == "linear"; });
}

TEST_CASE("inputs that are one tensor are projected in one product") {
  const nn::MultiheadAttention m(nullptr, "", kWidth, kHeads, batch_first());
  const Tensor x = rg::randn({2, 3, kWidth}), y = rg::randn({2, 3, kWidth});
  auto one = rg::compile([&](const Tensor& q) { return m(q, q, q).output; });
  auto two = rg::compile([&](const Tensor& q, const Tensor& k) { return m(q, k, k).output; });
  auto three =
      rg::compile([&](const Tensor& q, const Tensor& k, const Tensor& v) { return m(q, k, v).output; });
  CHECK(distance(one(x), m(x, x.clone(), x.clone()).output) < 1e-6);
  CHECK(distance(two(x, y), m(x, y, y.clone()).output) < 1e-6);
  CHECK(products(one) == 2);
  CHECK(products(two) == 3);
  // A recording of one tensor in several places is not used for several.
  CHECK(distance(three(x, x, x), one(x)) < 1e-6);
  CHECK(distance(three(x, y, y), two(x, y)) < 1e-6);
  CHECK(distance(three(y, x, y), m(y, x, y).output) < 1e-6);
  CHECK(products(three) == 4);
}

TEST_CASE("one recording serves all batches and lengths") {
  const nn::MultiheadAttention m(nullptr, "", kWidth, kHeads, {.add_bias_kv = true, .add_zero_attn = true});
  auto compiled = rg::compile([&](const Tensor& q, const Tensor& k, const Tensor& pad, const Tensor& mask) {
    const auto out = m(q, k, k, pad, true, mask);
    return rg::sum(rg::square(out.output)) + rg::sum(out.weights) +
           rg::sum(m(q, q, q, {}, false, {}, true, true).output);
  });
  for (int64_t n : {4, 7, 3, 9}) {
    const Tensor q = rg::randn({n, n + 1, kWidth}), k = rg::randn({n + 2, n + 1, kWidth});
    const Tensor pad = padding(std::vector<int64_t>(static_cast<size_t>(n + 1), n), n + 2),
                 mask = rg::gt(rg::rand({(n + 1) * kHeads, n, n + 2}), 0.5);
    const Tensor got = compiled(q, k, pad, mask);
    const auto out = m(q, k, k, pad, true, mask);
    const Tensor wanted = rg::sum(rg::square(out.output)) + rg::sum(out.weights) +
                          rg::sum(m(q, q, q, {}, false, {}, true, true).output);
    CHECK(same_bits(got, wanted));
    const auto a = rg::autograd::grad({got}, m.parameters()),
               b = rg::autograd::grad({wanted}, m.parameters());
    for (size_t i = 0; i < a.size(); ++i) CHECK(same_bits(a[i], b[i]));
  }
  CHECK(compiled.stats().captures == 2);  // with fixed sizes, then with symbols
}

TEST_CASE("is_causal leaves out what follows a position") {
  const nn::MultiheadAttention m(nullptr, "", kWidth, kHeads, batch_first());
  const nn::MultiheadAttention further(nullptr, "", kWidth, kHeads,
                                       {.add_bias_kv = true, .batch_first = true});
  const Tensor x = rg::randn({2, 5, kWidth}), mask = following(5), pad = padding({5, 3}, 5);
  for (const auto* module : {&m, &further})
    for (const Tensor& padded : {Tensor(), pad})
      for (bool need_weights : {true, false}) {
        const Tensor wanted = (*module)(x, x, x, padded, need_weights, mask).output;
        CHECK(distance((*module)(x, x, x, padded, need_weights, {}, true, true).output, wanted) < 1e-6);
        CHECK(distance((*module)(x, x, x, padded, need_weights, mask, true, true).output, wanted) < 1e-6);
      }
}

TEST_CASE("dropout acts on weights, in training alone") {
  nn::MultiheadAttention m(nullptr, "", kWidth, kHeads, {.dropout = 0.5, .batch_first = true});
  const Tensor x = rg::randn({2, 3, kWidth});
  CHECK_FALSE(same_bits(m(x, x, x).output, m(x, x, x).output));
  CHECK_FALSE(same_bits(m(x, x, x, {}, false).output, m(x, x, x, {}, false).output));
  const Tensor weights = m(x, x, x, {}, true, {}, false).weights;
  CHECK(rg::sum(rg::eq(weights, 0)).item<int64_t>() > 0);
  m.eval();
  CHECK(same_bits(m(x, x, x).output, m(x, x, x).output));
  nn::MultiheadAttention all(nullptr, "", kWidth, kHeads, {.dropout = 1});
  CHECK(rg::max(rg::abs(all(x, x, x, {}, false).output)).item<double>() == 0);
}

TEST_CASE("hooks see inputs and results, and leave one tensor one") {
  nn::MultiheadAttention m(nullptr, "", kWidth, kHeads, batch_first());
  const Tensor x = rg::randn({2, 3, kWidth});
  const Tensor wanted = m(x, x, x).output;
  size_t inputs = 0, results = 0;
  m.register_forward_pre_hook([&](nn::Module&, const rg::Tensors& in) { inputs = in.size(); });
  m.register_forward_hook(
      [&](nn::Module&, const rg::Tensors&, const rg::Tensors& out) { results = out.size(); });
  CHECK(same_bits(m(x, x, x).output, wanted));
  CHECK(inputs == 3);
  CHECK(results == 2);
}

TEST_CASE("16 bits, and autocast to them, are near float32") {
  nn::MultiheadAttention m(nullptr, "", kWidth, kHeads, batch_first());
  const Tensor x = rg::randn({2, 3, kWidth}), pad = padding({3, 2}, 3);
  for (bool need_weights : {true, false})
    for (const Tensor& mask : {Tensor(), pad}) {
      const Tensor wide = m(x, x, x, mask, need_weights).output;
      {
        const rg::autocast guard(rg::kBFloat16);
        CHECK(distance(m(x, x, x, mask, need_weights).output.to(rg::kFloat32), wide) < 0.05);
      }
      m.to(rg::kBFloat16);
      const Tensor y = x.to(rg::kBFloat16);
      const Tensor narrow = m(y, y, y, mask, need_weights).output;
      CHECK(narrow.dtype() == rg::kBFloat16);
      CHECK(distance(narrow.to(rg::kFloat32), wide) < 0.05);
      m.to(rg::kFloat32);
    }
}

TEST_CASE("second derivatives") {
  nn::MultiheadAttention m(nullptr, "", 4, 2, {.add_bias_kv = true});
  m.to(rg::kFloat64);
  const Tensor x = rg::randn({3, 1, 4}, {rg::kFloat64}).requires_grad_();
  const Tensor pad = padding({2}, 3);
  const auto slope = [&](const Tensor& at) {
    const auto out = m(at, at, at, pad);
    const Tensor loss = rg::sum(rg::square(out.output)) + rg::sum(rg::square(out.weights));
    return rg::sum(rg::square(rg::autograd::grad({loss}, {at}, {}, true, true)[0]));
  };
  const Tensor second = rg::autograd::grad({slope(x)}, {x})[0];
  const double h = 1e-5;
  for (int64_t i = 0; i < x.numel(); ++i) {
    std::vector<double> step(static_cast<size_t>(x.numel()));
    step[static_cast<size_t>(i)] = h;
    const Tensor delta = rg::tensor(step, {3, 1, 4}, {rg::kFloat64});
    const double up = slope((x.detach() + delta).requires_grad_()).item<double>(),
                 down = slope((x.detach() - delta).requires_grad_()).item<double>();
    CHECK(second.to_vector()[static_cast<size_t>(i)] ==
          Approx((up - down) / (2 * h)).epsilon(1e-5).margin(1e-7));
  }
}

double largest(const Tensor& x) { return rg::max(rg::abs(x.detach())).item<double>(); }

TEST_CASE("initial values and shapes of parameters are PyTorch's") {
  const nn::MultiheadAttention packed(nullptr, "", 64, 4, {.add_bias_kv = true});
  CHECK(packed.in_proj_weight.sizes() == rg::IntArray{192, 64});
  const double bound = std::sqrt(6.0 / (192 + 64));
  CHECK(largest(packed.in_proj_weight) <= bound);
  CHECK(largest(packed.in_proj_weight) > 0.95 * bound);
  CHECK(largest(packed.in_proj_bias) == 0);
  CHECK(largest(packed.out_proj.bias) == 0);
  CHECK(packed.bias_k.sizes() == rg::IntArray{1, 1, 64});
  CHECK(rg::std(packed.bias_v.detach()).item<double>() == Approx(1 / 8.0).epsilon(0.5));
  CHECK_FALSE(packed.q_proj_weight.defined());
  const nn::MultiheadAttention apart(nullptr, "", 64, 4, {.bias = false, .kdim = 32});
  CHECK_FALSE(apart.in_proj_weight.defined());
  CHECK(apart.k_proj_weight.sizes() == rg::IntArray{64, 32});
  CHECK(largest(apart.k_proj_weight) > 0.95 * std::sqrt(6.0 / (64 + 32)));
  CHECK(apart.v_proj_weight.sizes() == rg::IntArray{64, 64});
  CHECK(apart.parameters().size() == 4);
}

TEST_CASE("what attention cannot do is refused at the caller's line") {
  const nn::MultiheadAttention m(nullptr, "", kWidth, kHeads);
  const Tensor x = rg::zeros({3, 2, kWidth}), key = rg::zeros({4, 2, kWidth});
  const auto check = [&](Category category, auto&& call) {
    std::string text;
    CHECK(rg::category_of(call, &text) == category);
    INFO(text);
    CHECK(text.find("attention_test.cc") != std::string::npos);
  };
  check(Category::bad_dim, [&] { m(x.select(0, 0), x, x); });
  check(Category::bad_dim, [&] { m(rg::zeros({kWidth}), rg::zeros({kWidth}), rg::zeros({kWidth})); });
  check(Category::shape_mismatch, [&] { m(rg::zeros({3, 2, 4}), key, key); });
  check(Category::shape_mismatch, [&] { m(x, key, x); });
  check(Category::shape_mismatch, [&] { m(rg::zeros({3, 1, kWidth}), key, key); });
  check(Category::shape_mismatch, [&] { m(x, rg::zeros({4, 2, 5}), rg::zeros({4, 2, 5})); });
  check(Category::shape_mismatch, [&] { m(x, key, key, rg::zeros({2, 3}, {rg::kBool})); });
  check(Category::shape_mismatch, [&] { m(x, key, key, {}, true, rg::zeros({4, 3})); });
  check(Category::shape_mismatch, [&] { m(x, key, key, {}, true, rg::zeros({2, 3, 4})); });
  check(Category::dtype_mismatch, [&] { m(x, key, key, {}, true, rg::zeros({3, 4}, {rg::kInt64})); });
  check(Category::bad_argument, [] { nn::MultiheadAttention(nullptr, "", 8, 3); });
  check(Category::bad_argument, [] { nn::MultiheadAttention(nullptr, "", 8, 0); });
  check(Category::bad_argument, [] { nn::MultiheadAttention(nullptr, "", 8, 2, {.dropout = 1.5}); });
  check(Category::bad_argument, [] { nn::MultiheadAttention(nullptr, "", 8, 2, {.kdim = 0}); });
  check(Category::bad_argument, [&] {
    nn::functional::multi_head_attention_forward(x, x, x,
                                                 {.embed_dim_to_check = kWidth,
                                                  .num_heads = kHeads,
                                                  .in_proj_weight = m.in_proj_weight,
                                                  .bias_k = x,
                                                  .out_proj_weight = m.out_proj.weight});
  });
}

}  // namespace
