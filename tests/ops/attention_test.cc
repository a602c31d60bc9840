// Attention against the formula written with matmul and softmax: the fused op, masks, broadcasting, blocks,
// derivatives to second order, errors. Not tested here: speed, recorded graphs, results against PyTorch
// (tests/conformance).
#include "ops/attention.h"

#include "cpu/parallel.h"
#include "ops/comparison.h"
#include "ops/matmul.h"
#include "ops/rearrange.h"
#include "ops/softmax.h"
#include "ops/ternary.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;
using testing::worst_difference;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor formula(const Tensor& q, const Tensor& k, const Tensor& v, bool causal = false, double scale = 0) {
  Tensor s =
      matmul(q, transpose(k, -2, -1)) * (scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.size(-1))));
  if (causal) s = where(tril(ones({q.size(-2), k.size(-2)}, kBool)), s, -kInfinity);
  return matmul(softmax(s, -1), v);
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, bool causal = false,
              std::optional<Scalar> scale = {}) {
  return scaled_dot_product_attention(q, k, v, {}, 0.0, causal, scale);
}

TEST_CASE("the fused op gives the formula's values, in blocks too") {
  for (const IntArray& s : {IntArray{1, 1, 1, 1}, IntArray{5, 3, 4, 2}, IntArray{3, 7, 2, 5},
                            IntArray{150, 70, 8, 20}, IntArray{70, 150, 16, 8}})
    for (bool causal : {false, true}) {
      const Tensor q = input({2, 3, s[0], s[2]}), k = input({2, 3, s[1], s[2]}, -1, 1, 2),
                   v = input({2, 3, s[1], s[3]}, -1, 1, 3);
      INFO(s[0] << " queries, " << s[1] << " keys, causal " << causal);
      CHECK(worst_difference(attend(q, k, v, causal), formula(q, k, v, causal)) < 1e-13);
      CHECK(worst_difference(attend(to(q, kFloat32), to(k, kFloat32), to(v, kFloat32), causal, 0.3),
                             to(formula(q, k, v, causal, 0.3), kFloat32)) < 2e-6);
    }
}

// Matrices, queries, keys: strips of two panels and wider ones, one block of queries and several, few matrices and
// many, a last strip that is not full, keys that no query sees.
const IntArray kCuts[] = {{2, 150, 70}, {6, 130, 40}, {5, 100, 600}, {1, 30, 600},
                          {6, 1, 17},   {6, 14, 40},  {6, 30, 60},   {6, 10, 600},
                          {5, 69, 600}, {1, 3, 40},   {1, 200, 30},  {2, 2, 1500}};

// A batch of so many matrices; of one batch dim, or of heads, whose results are interleaved.
IntArray batch_of(int64_t matrices, bool heads, int64_t rows, int64_t columns) {
  if (!heads) return {matrices, rows, columns};
  return matrices % 2 ? IntArray{1, matrices, rows, columns} : IntArray{2, matrices / 2, rows, columns};
}

void check_gradients(const IntArray& s, bool causal, bool heads) {
  INFO(s[0] << " matrices, " << s[1] << " queries, " << s[2] << " keys, causal " << causal << ", heads "
            << heads);
  const auto sizes = [&](int64_t rows, int64_t columns) { return batch_of(s[0], heads, rows, columns); };
  const Tensor q = input(sizes(s[1], 8)), k = input(sizes(s[2], 8), -1, 1, 2),
               v = input(sizes(s[2], 5), -1, 1, 3), g = input(sizes(s[1], 5), -1, 1, 4).detach();
  // What a kernel finds in the memory that it works in must not show.
  const Tensor none = full(q.sizes(), std::numeric_limits<double>::quiet_NaN(), kFloat64).requires_grad_();
  autograd::grad({attend(none, k, v, causal)}, {none, k, v}, {g});
  const Tensors got = autograd::grad({attend(q, k, v, causal)}, {q, k, v}, {g}),
                want = autograd::grad({formula(q, k, v, causal)}, {q, k, v}, {g});
  for (size_t i = 0; i < 3; ++i) CHECK(worst_difference(got[i], want[i]) < 1e-13);
  const int64_t seen = causal ? std::min(s[1], s[2]) : s[2];
  for (size_t i : {1, 2})
    if (seen < s[2]) {
      const Tensor unseen = narrow(got[i], -2, seen, s[2] - seen);
      CHECK(worst_difference(unseen, zeros(unseen.sizes(), kFloat64)) == 0);
    }
}

TEST_CASE("gradients of the fused op equal those of the formula, in blocks too") {
  for (const IntArray& s : kCuts)
    for (bool causal : {false, true})
      for (bool heads : {false, true}) check_gradients(s, causal, heads);
}

// Exponentials that are no normal numbers, and rows that have some of them; a largest score that is not the first.
TEST_CASE("scores may lie far apart") {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const IntArray& s : {IntArray{30, 30}, IntArray{7, 100}, IntArray{3, 1500}})
      for (bool causal : {false, true}) {
        INFO(name(dtype) << ", " << s[0] << " queries, " << s[1] << " keys, causal " << causal);
        const double spread = dtype == kFloat32 ? 60 : 500;  // of scores: a few of a row underflow
        Tensors wide, given;
        for (const Tensor& x :
             {input({4, s[0], 8}) * spread, input({4, s[1], 8}, -1, 1, 2), input({4, s[1], 5}, -1, 1, 3)}) {
          given.push_back(x.detach().to(dtype).requires_grad_());
          wide.push_back(given.back().detach().to(kFloat64).requires_grad_());
        }
        const Tensor g = input({4, s[0], 5}, -1, 1, 4).detach(),
                     out = attend(given[0], given[1], given[2], causal),
                     want = formula(wide[0], wide[1], wide[2], causal);
        // Scores are as far from 0 as they are wide.
        const double tolerance = dtype == kFloat32 ? 3e-4 : 1e-12;
        CHECK(worst_difference(out.to(kFloat64), want) < tolerance);
        const Tensors got = autograd::grad({out}, given, {g.to(dtype)}),
                      gradients = autograd::grad({want}, wide, {g});
        for (size_t i = 0; i < 3; ++i)
          CHECK(worst_difference(got[i].to(kFloat64), gradients[i]) < spread * tolerance);
      }
}

TEST_CASE("results of heads have interleaved rows, and so have gradients: no copy is needed") {
  const Tensor x = input({2, 30, 3 * 4 * 8});
  Tensors heads;
  for (const Tensor& part : split(x, 32, 2)) heads.push_back(transpose(part.view({2, 30, 4, 8}), 1, 2));
  const Tensor y = attend(heads[0], heads[1], heads[2], true), rows = transpose(y, 1, 2);
  CHECK(rows.is_contiguous());
  CHECK(rows.reshape({2, 30, 32}).raw_data() == y.raw_data());
  Tensors leaves;
  for (const Tensor& h : heads) leaves.push_back(h.detach().requires_grad_());
  for (const Tensor& g : autograd::grad({attend(leaves[0], leaves[1], leaves[2], true)}, leaves,
                                        {ones({2, 4, 30, 8}, kFloat64)}))
    CHECK(transpose(g, 1, 2).is_contiguous());
  CHECK(attend(ones({2, 3, 0, 4}), ones({2, 3, 5, 4}), ones({2, 3, 5, 6})).sizes() == IntArray{2, 3, 0, 6});
}

TEST_CASE("attention has the same bits with any number of threads") {
  struct Restore {
    int before = cpu::get_num_threads();
    ~Restore() { cpu::set_num_threads(before); }
  } restore;
  for (const IntArray& s : kCuts)
    for (bool causal : {false, true}) {
      const auto results = [&](int threads) {
        cpu::set_num_threads(threads);
        const auto x = [&](int64_t rows, int64_t columns, int seed) {
          return to(input({s[0], rows, columns}, -1, 1, seed), kFloat32).detach().requires_grad_();
        };
        const Tensors in{x(s[1], 8, 1), x(s[2], 8, 2), x(s[2], 5, 3)};
        const Tensor y = attend(in[0], in[1], in[2], causal);
        Tensors all = autograd::grad({sum(y * y)}, in);
        all.push_back(y);
        return all;
      };
      const Tensors one = results(1), three = results(3);
      INFO(s[0] << " matrices, " << s[1] << " queries, " << s[2] << " keys, causal " << causal);
      for (size_t i = 0; i < one.size(); ++i) CHECK(worst_difference(one[i], three[i]) == 0);
    }
}

TEST_CASE("the backward op takes any layout") {
  const auto gradients = [](const Tensors& x) {
    std::vector<TensorImpl*> operands;
    for (const Tensor& t : x) operands.push_back(t.get());
    ops::AttentionAttrs attrs{false, 0.5};
    Tensors results(3);
    Emitter::current().emit({&ops::info<ops::AttentionBackward>, operands, &attrs, {}, 3}, results.data());
    return results;
  };
  Tensors dense, turned;
  for (const Shape& shape :
       {Shape{2, 3, 4}, Shape{2, 5, 4}, Shape{2, 5, 2}, Shape{2, 3, 2}, Shape{2, 3}, Shape{2, 3, 2}})
    dense.push_back(input(shape, -1, 1, static_cast<int>(dense.size())).detach());
  for (const Tensor& t : dense) turned.push_back(transpose(clone(transpose(t, 0, -1)), 0, -1));
  const Tensors want = gradients(dense), got = gradients(turned);
  for (size_t i = 0; i < 3; ++i) CHECK(worst_difference(got[i], want[i]) < 1e-14);
}

TEST_CASE("layouts, batches and ranks") {
  const Tensor x = input({2, 6, 3 * 2 * 4});  // queries, keys and values of two heads, interleaved
  Tensors heads;
  for (const Tensor& part : split(x, 8, 2)) heads.push_back(transpose(part.view({2, 6, 2, 4}), 1, 2));
  CHECK(worst_difference(attend(heads[0], heads[1], heads[2], true),
                         formula(heads[0], heads[1], heads[2], true)) < 1e-14);
  const Tensor q = input({5, 4}), k = input({3, 4}, -1, 1, 2), v = input({3, 2}, -1, 1, 3);
  CHECK(worst_difference(attend(q, k, v), formula(q, k, v)) < 1e-14);
  CHECK(worst_difference(attend(input({2, 1, 5, 4}), expand(k, {3, 3, 4}), v),
                         formula(input({2, 1, 5, 4}), expand(k, {3, 3, 4}), v)) < 1e-14);
  CHECK(attend(ones({0, 2, 3}), ones({0, 4, 3}), ones({0, 4, 5})).sizes() == IntArray{0, 2, 5});
  for (const IntArray& s : {IntArray{30, 0, 8, 4}, IntArray{3, 0, 8, 4}, IntArray{0, 3, 8, 4},
                            IntArray{30, 40, 0, 4}, IntArray{30, 40, 8, 0}}) {
    INFO(s[0] << " queries, " << s[1] << " keys, heads of " << s[2] << " and " << s[3]);
    const Tensors x{input({5, s[0], s[2]}), input({5, s[1], s[2]}, -1, 1, 2),
                    input({5, s[1], s[3]}, -1, 1, 3)};
    const Tensor y = attend(x[0], x[1], x[2], false, 0.5);
    CHECK(y.sizes() == IntArray{5, s[0], s[3]});
    if (s[1] == 0) CHECK(worst_difference(y, zeros(y.sizes(), kFloat64)) == 0);
    const Tensors gradients = autograd::grad({y}, x, {ones_like(y)});
    CHECK(gradients[1].sizes() == x[1].sizes());
    if (s[0] == 0) CHECK(worst_difference(gradients[2], zeros(x[2].sizes(), kFloat64)) == 0);
  }
}

TEST_CASE("small floats are computed in float32 and rounded once") {
  const Tensor q = to(input({2, 5, 4}), kBFloat16), k = to(input({2, 6, 4}, -1, 1, 2), kBFloat16),
               v = to(input({2, 6, 3}, -1, 1, 3), kBFloat16);
  const Tensor want = to(attend(to(q, kFloat32), to(k, kFloat32), to(v, kFloat32)), kBFloat16);
  CHECK(attend(q, k, v).dtype() == kBFloat16);
  CHECK(worst_difference(attend(q, k, v), want) == 0);
}

// The derivative takes the result as it was rounded; the rest is float32.
TEST_CASE("derivatives with small floats are those of float32, but for what is rounded") {
  const Tensors x{input({2, 5, 4}), input({2, 6, 4}, -1, 1, 2), input({2, 6, 3}, -1, 1, 3)};
  const auto derivatives = [&](ScalarType dtype) {
    Tensors in, all;
    for (const Tensor& t : x) in.push_back(to(to(t, kFloat16), dtype).detach().requires_grad_());
    const Tensor y = attend(in[0], in[1], in[2], true);
    const Tensors first = autograd::grad({sum(y * y)}, in, {}, std::nullopt, true);
    Tensor norm = sum(first[0] * first[0]);
    for (size_t i : {1, 2}) norm = norm + sum(first[i] * first[i]);
    const Tensors second = autograd::grad({norm}, in);
    // Along the operands themselves: of the result, and of the gradient of query.
    const auto result = [](const Tensors& t) { return Tensors{attend(t[0], t[1], t[2], true)}; };
    const auto gradient = [&](const Tensors& t) {
      const Tensor y = result(t)[0];
      return Tensors{autograd::grad({sum(y * y)}, {t[0]}, {}, std::nullopt, true)[0]};
    };
    const Tensors forward{autograd::jvp(result, in, in).tangents[0],
                          autograd::jvp(gradient, in, in).tangents[0]};
    for (const Tensors* part : {&first, &second, &forward})
      for (const Tensor& t : *part) {
        CHECK(t.dtype() == dtype);
        all.push_back(to(t, kFloat64));
      }
    return all;
  };
  const Tensors want = derivatives(kFloat32), got = derivatives(kFloat16);
  for (size_t i = 0; i < want.size(); ++i) {
    double largest = 0;
    for (double v : want[i].to_vector()) largest = std::max(largest, std::abs(v));
    CHECK(worst_difference(got[i], want[i]) < 0x1p-8 * largest);
  }
}

TEST_CASE("log sum exp of small floats is float32") {
  const Tensor q = to(input({2, 5, 4}), kFloat16).detach();
  TensorImpl* const operands[] = {q.get(), q.get(), q.get()};
  ops::AttentionAttrs attrs{false, 0.5};
  Tensor results[2];
  Emitter::current().emit({&ops::info<ops::Attention>, operands, &attrs, {}, 2}, results);
  CHECK(results[0].dtype() == kFloat16);
  CHECK(results[1].dtype() == kFloat32);
}

TEST_CASE("masks") {
  const Tensor q = input({2, 3, 4}), k = input({2, 5, 4}, -1, 1, 2), v = input({2, 5, 2}, -1, 1, 3);
  const Tensor keep = ge(input({3, 5}, -1, 2, 4), 0.0);
  const Tensor added = where(keep, zeros({3, 5}, kFloat64), full({3, 5}, -kInfinity, kFloat64));
  CHECK(worst_difference(scaled_dot_product_attention(q, k, v, keep),
                         scaled_dot_product_attention(q, k, v, added)) < 1e-14);
  CHECK(worst_difference(scaled_dot_product_attention(q, k, v, ones({3, 5}, kBool)), formula(q, k, v)) <
        1e-14);
  const Tensor lower = tril(ones({3, 5}, kBool));
  CHECK(worst_difference(scaled_dot_product_attention(q, k, v, lower), attend(q, k, v, true)) < 1e-14);
}

TEST_CASE("a query without keys gives zeros and no gradient") {
  const Tensor q = input({2, 4}), k = input({3, 4}, -1, 1, 2), v = input({3, 2}, -1, 1, 3);
  const Tensor keep = ge(tensor({1.0, 0, 1, 0, 0, 0}, {2, 3}), 0.5);
  const Tensor out = scaled_dot_product_attention(q, k, v, keep);
  CHECK(select(out, 0, 1).to_vector() == std::vector<double>{0, 0});
  sum(out).backward();
  CHECK(select(q.grad(), 0, 1).to_vector() == std::vector<double>(4, 0.0));
  CHECK(worst_difference(select(k.grad(), 0, 1), zeros({4}, kFloat64)) == 0);
}

TEST_CASE("derivatives of attention") {
  const Tensors x{input({2, 3, 2}), input({2, 4, 2}, -1, 1, 2), input({2, 4, 3}, -1, 1, 3)},
      heads{input({1, 2, 3, 2}), input({1, 2, 4, 2}, -1, 1, 2), input({1, 2, 4, 3}, -1, 1, 3)};
  for (bool causal : {false, true})
    for (const Tensors& of : {x, heads})
      gradcheck([causal](const Tensors& in) { return attend(in[0], in[1], in[2], causal, 0.8); }, of);
  const Tensor keep = ge(input({3, 4}, -1, 2, 4), 0.0).detach();
  gradcheck([keep](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], keep); }, x,
            false);
  Tensors with_mask = x;
  with_mask.push_back(input({3, 4}, -1, 1, 5));
  gradcheck([](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], in[3]); },
            with_mask, false);
}

TEST_CASE("the log sum exp of the fused op has derivatives as well") {
  for (bool interleaved : {false, true}) {
    const auto operand = [&](int64_t rows, int64_t columns, int seed) {
      return input(batch_of(2, interleaved, rows, columns), -1, 1, seed);
    };
    gradcheck(
        [interleaved](const Tensors& in) {
          TensorImpl* const operands[] = {in[0].get(), in[1].get(), in[2].get()};
          ops::AttentionAttrs attrs{true, 0.7, interleaved};
          Tensor results[2];
          Emitter::current().emit({&ops::info<ops::Attention>, operands, &attrs, {}, 2}, results);
          const Tensor rows = sum(results[0], -1);
          return (interleaved ? transpose(rows, -2, -1) : rows) + results[1];
        },
        {operand(3, 2, 1), operand(4, 2, 2), operand(4, 3, 3)}, false);
  }
}

TEST_CASE("tangents have the shapes of results") {
  const Tensor q = input({1, 2, 3, 2}).detach(), t = ones_like(q);
  autograd::DualLevel level;
  const Tensor dual = level.make_dual(q, t);
  TensorImpl* const operands[] = {dual.get(), q.get(), q.get()};
  ops::AttentionAttrs attrs{false, 0.5, true};
  Tensor results[2];
  Emitter::current().emit({&ops::info<ops::Attention>, operands, &attrs, {}, 2}, results);
  for (const Tensor& r : results) CHECK(level.tangent(r).sizes() == r.sizes());
}

TEST_CASE("a result made without gradients is no view") {
  const Tensor q = input({1, 2, 3, 2}), w = input({1, 2, 3, 2}, -1, 1, 2);
  const Tensor y = [&] {
    NoGradGuard guard;
    return attend(q, q, q);
  }();
  const Tensor before = y.clone();
  y.mul_(w);
  sum(y).backward();
  CHECK(worst_difference(w.grad(), before) == 0);
  CHECK_FALSE(attend(q, q, q).impl().base);
}

TEST_CASE("results do not depend on the number of threads") {
  const Tensor q = to(input({4, 130, 8}), kFloat32).detach().requires_grad_();
  const auto run = [&](int threads) {
    const int before = cpu::get_num_threads();
    cpu::set_num_threads(threads);
    const Tensor y = attend(q, q, q, true);
    std::vector<double> all = autograd::grad({sum(y)}, {q})[0].to_vector();
    for (double v : y.to_vector()) all.push_back(v);
    cpu::set_num_threads(before);
    return all;
  };
  CHECK(run(1) == run(3));
}

TEST_CASE("errors of attention") {
  const Tensor q = ones({2, 3, 4}), k = ones({2, 5, 4}), v = ones({2, 5, 4});
  CHECK(category_of([&] { attend(q, ones({2, 5, 3}), v); }) == Category::shape_mismatch);
  CHECK(category_of([&] { attend(q, k, ones({2, 4, 4})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { attend(q, ones({3, 5, 4}), ones({3, 5, 4})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { attend(ones({4}), k, v); }) == Category::bad_dim);
  CHECK(category_of([&] { attend(q, to(k, kFloat64), v); }) == Category::dtype_mismatch);
  CHECK(category_of([&] {
          scaled_dot_product_attention(q, k, v, ones({3, 5}, kBool), 0.0, true);
        }) == Category::bad_argument);
  CHECK(category_of([&] {
          scaled_dot_product_attention(q, k, v, ones({3, 5}, kFloat64));
        }) == Category::dtype_mismatch);
  CHECK(category_of([&] {
          scaled_dot_product_attention(q, k, v, ones({4, 5}, kBool));
        }) == Category::shape_mismatch);
}

}  // namespace
}  // namespace retrograd
