// A function that writes to its argument in place and declares it, as in libtorch, by ctx->mark_dirty({x}) in forward:
// then the result is the argument itself, with the function as its record. Not tested here: other special results
// (function_results_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

struct Doubles : Function<Doubles> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.mul_(2.0);
    ctx->mark_dirty({x});
    return x;
  }
  static Tensors backward(AutogradContext*, const Tensors& g) { return {g[0] * 2.0}; }
};

struct DoublesThroughData : Function<DoublesThroughData> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] *= 2;
    ctx->mark_dirty({x});
    return x;
  }
  static Tensors backward(AutogradContext*, const Tensors& g) { return {g[0] * 2.0}; }
};

}  // namespace

TEST_CASE("S125 a write through data_ptr is noticed, too, and raises the version once") {
  const Tensor a = leaf({1, 2}), b = a * 3.0, y = b * b;
  const uint32_t version = b.version();
  const Tensor c = DoublesThroughData::apply(b);
  CHECK(c.is_same(b));
  CHECK(b.version() == version + 1);
  CHECK(category_of([&] { sum(y).backward(); }) == Category::version_mismatch);
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2}), h = x * 3.0;
    mode.backward(sum(DoublesThroughData::apply(h) * h));
    CHECK(values(x.grad()) == Values{72, 144});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S125 a result that is its argument, written to in place, takes over the function as its record") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 2}), b = a * 3.0;
    const uint32_t version = b.version();
    const Tensor c = Doubles::apply(b);
    CHECK(c.is_same(b));
    CHECK(b.version() == version + 1);
    CHECK(values(b) == Values{6, 12});
    mode.backward(sum(b * b));
    CHECK(values(a.grad()) == Values{72, 144});  // 6 * 2 * 6a
    return Tensors{a.grad()};
  });
}

TEST_CASE("S125 an earlier consumer of what a function wrote to is refused, and so is a leaf") {
  const Tensor a = leaf({1, 2}), b = a * 3.0, y = b * b;
  Doubles::apply(b);
  CHECK(category_of([&] { sum(y).backward(); }) == Category::version_mismatch);
  CHECK(category_of([] { Doubles::apply(leaf({1, 2})); }) == Category::leaf_inplace);
}

}  // namespace retrograd::scenario
