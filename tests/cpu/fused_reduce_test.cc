// Fused groups that end in reductions, against the same ops one by one, bit for bit: sums, means and extremes of rows,
// of columns and of all elements, in every dtype, at the sizes where their kernels split (4096 elements of a row, 128
// rows and blocks of columns), 1 to 3 threads.
//
// Not tested here: elementwise groups (fused_test.cc); which nodes become a group (tests/ir/fuse_test.cc).
#include "tests/cpu/fused_group.h"
#include "tests/fuzz/random.h"

namespace retrograd {
namespace {

using testing::GroupTest;

const ScalarType kDtypes[] = {kFloat32, kFloat64, kBFloat16, kFloat16};

// Numbers whose sums depend on the order of additions.
Tensor numbers(fuzz::Random& random, const IntArray& sizes, ScalarType dtype) {
  Tensor x = empty(sizes, {kFloat64});
  double* p = x.data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i)
    p[i] = (static_cast<double>(random.next() >> 11) * 0x1p-53 - 0.4) * (random.below(8) == 0 ? 100 : 1);
  return x.to(dtype);
}

// For all row ops: those of amax begin as those of sum.
ops::ExtremeAttrs over(std::initializer_list<int64_t> dims, bool keepdim = false) {
  ops::ExtremeAttrs attrs;
  attrs.dim = dims;
  attrs.keepdim = keepdim;
  return attrs;
}

const OpInfo* const kRowOps[] = {&ops::info<ops::Sum>, &ops::info<ops::Mean>, &ops::info<ops::Amax>,
                                 &ops::info<ops::Amin>};

struct Reduced {
  IntArray sizes;
  std::initializer_list<int64_t> dims;
};

void check(const Reduced& c, ScalarType dtype, std::span<const OpInfo* const> reductions, bool output_too) {
  fuzz::Random random(5);
  INFO(short_name(dtype));
  GroupTest t;
  const int32_t x = t.input(numbers(random, c.sizes, dtype)), y = t.input(numbers(random, c.sizes, dtype));
  const int32_t product = t.node<ops::Mul>({x, y}), sum = t.node<ops::Add>({product, x});
  if (output_too) t.output(sum);
  const ops::ExtremeAttrs attrs = over(c.dims, output_too);
  for (const OpInfo* op : reductions) t.output(t.node(*op, {sum}, &attrs));
  t.output(t.node(ops::info<ops::Sum>, {product}, &attrs));
  t.output(t.node(ops::info<ops::Sum>, {x}, &attrs));  // of an input
  t.check();
}

TEST_CASE("rows") {
  const Reduced cases[] = {{{1}, {0}},        {{2}, {0}},           {{100}, {0}},       {{4096}, {0}},
                           {{4097}, {0}},     {{12289}, {0}},       {{100003}, {0}},    {{5, 7}, {0, 1}},
                           {{5, 7}, {1}},     {{300, 3}, {1}},      {{33, 513}, {1}},   {{9, 4096}, {1}},
                           {{7, 4099}, {1}},  {{3, 9000}, {1}},     {{70, 4100}, {1}},  {{4, 5, 6}, {1, 2}},
                           {{4, 5, 6}, {2}},  {{1, 50}, {1}},       {{50, 1, 20}, {2}}, {{20, 30, 1}, {1}},
                           {{2000, 20}, {1}}, {{1, 1, 77}, {0, 2}}, {{3, 1, 8}, {1, 2}}};
  for (const Reduced& c : cases)
    for (ScalarType dtype : kDtypes)
      for (bool output_too : {false, true}) {
        if (c.sizes == IntArray{1}) continue;
        check(c, dtype, kRowOps, output_too);
      }
}

TEST_CASE("columns") {
  const Reduced cases[] = {{{5, 4}, {0}},      {{128, 7}, {0}},   {{129, 64}, {0}},     {{1000, 5}, {0}},
                           {{9000, 4}, {0}},   {{300, 100}, {0}}, {{200, 513}, {0}},    {{140, 1500}, {0}},
                           {{130, 4100}, {0}}, {{3, 5000}, {0}},  {{6, 50, 9}, {0, 1}}, {{40, 3, 30}, {0}},
                           {{40, 1, 30}, {0}}, {{700, 96}, {0}},  {{130, 4160}, {0}},   {{260, 6144}, {0}}};
  for (const Reduced& c : cases)
    for (ScalarType dtype : kDtypes)
      for (bool output_too : {false, true}) check(c, dtype, {kRowOps, 2}, output_too);
}

TEST_CASE("a reduction alone") {
  fuzz::Random random(6);
  for (const Reduced& c : {Reduced{{33, 513}, {1}}, Reduced{{12289}, {0}}, Reduced{{300, 100}, {0}}})
    for (ScalarType dtype : kDtypes) {
      INFO(short_name(dtype));
      GroupTest t;
      const int32_t x = t.input(numbers(random, c.sizes, dtype));
      const ops::ExtremeAttrs attrs = over(c.dims);
      t.output(t.node(ops::info<ops::Sum>, {x}, &attrs));
      t.check();
    }
}

TEST_CASE("operands that broadcast, over rows and columns") {
  fuzz::Random random(9);
  for (ScalarType dtype : kDtypes)
    for (const IntArray& sizes : {IntArray{300, 70}, IntArray{40, 700}, IntArray{9, 5000}})
      for (int64_t dim : {0, 1}) {
        GroupTest t;
        const int32_t x = t.input(permute(numbers(random, {sizes[1], sizes[0]}, dtype), {1, 0})),
                      row = t.input(numbers(random, {sizes[1]}, dtype)),
                      column = t.input(numbers(random, {sizes[0], 1}, dtype)),
                      one = t.input(numbers(random, {}, dtype));
        const int32_t scaled = t.node<ops::Mul>({x, row}), shifted = t.node<ops::Add>({scaled, column});
        t.output(t.node<ops::Sum>({t.node<ops::Sub>({shifted, one})}, over({dim})));
        t.output(t.node<ops::Mean>({scaled}, over({dim})));
        t.check();
      }
}

TEST_CASE("sums of outputs that go past the caches") {
  for (int64_t dim : {0, 1}) {
    GroupTest t;
    const int32_t x = t.input(randn({4100, 2100})), product = t.node<ops::Mul>({x, x});
    t.output(product);
    t.output(t.node<ops::Sum>({product}, over({dim})));
    t.check();
  }
}

TEST_CASE("reductions that are left to their kernels") {
  const auto fused = [](const IntArray& sizes, std::initializer_list<int64_t> dims, const OpInfo& op) {
    GroupTest t;
    const int32_t x = t.with_number<ops::Mul>(t.input(ones(sizes)), 2);
    const ops::ExtremeAttrs attrs = over(dims);
    t.output(t.node(op, {x}, &attrs));
    return t.fuse() != nullptr;
  };
  CHECK(fused({10, 20}, {0}, ops::info<ops::Sum>));
  CHECK_FALSE(fused({10, 3}, {0}, ops::info<ops::Sum>));    // few columns
  CHECK_FALSE(fused({0, 20}, {0}, ops::info<ops::Sum>));    // no elements
  CHECK_FALSE(fused({5, 6, 7}, {1}, ops::info<ops::Sum>));  // neither the first nor the last dims
  CHECK_FALSE(fused({5, 6, 7}, {0, 2}, ops::info<ops::Sum>));
  CHECK_FALSE(fused({10, 20}, {0}, ops::info<ops::Amax>));  // columns of other reductions than sums
  CHECK_FALSE(fused({10, 20}, {1}, ops::info<ops::Prod>));
  CHECK_FALSE(fused({10, 1}, {1}, ops::info<ops::Sum>));  // nothing to add
  GroupTest t;                                            // of two dtypes
  const int32_t x = t.with_number<ops::Mul>(t.input(ones({10, 20})), 2);
  const ops::To::Attrs narrow{kBFloat16};
  t.output(t.node<ops::Sum>({x}, over({0})));
  t.output(t.node<ops::Sum>({t.node(ops::info<ops::To>, {x}, &narrow)}, over({0})));
  CHECK(t.fuse() == nullptr);
}

}  // namespace
}  // namespace retrograd
