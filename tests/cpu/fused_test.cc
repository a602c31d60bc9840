// Fused groups of elementwise ops against the same ops one by one, bit for bit: every op and dtype in random
// chains, every pattern, sizes around tiles and beyond caches, operands of all layouts, conversions,
// conditions, outputs on the memory of inputs, 1 to 3 threads.
//
// Not tested here: reductions (fused_reduce_test.cc), which nodes become a group (tests/ir/fuse_test.cc),
// speed.
#include <utility>

#include "cpu/fused/levels/patterns.h"
#include "engine/bookkeeping.h"
#include "engine/each_field.h"
#include "ops/full.h"
#include "ops/matmul.h"
#include "tests/cpu/fused_group.h"
#include "tests/fuzz/random.h"

namespace retrograd {
namespace {

using fuzz::Random;
using testing::GroupTest;

struct OpRow {
  const OpInfo* op;
  std::vector<std::byte> attrs;  // by default
  bool boolean;
};

const std::vector<OpRow>& all_ops() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> made;
    ops::ElementwiseOps::for_each([&]<class Op>() {
      OpRow row{&ops::info<Op>, {}, Op::promotion == ops::Promotion::boolean};
      const typename Op::Attrs attrs{};
      if (row.op->attrs_size) {
        row.attrs.resize(row.op->attrs_size);
        std::memcpy(row.attrs.data(), &attrs, row.op->attrs_size);
      }
      made.push_back(row);
    });
    return made;
  }();
  return rows;
}

const ScalarType kDtypes[] = {kFloat32, kFloat64, kBFloat16, kFloat16};

// Numbers of many magnitudes, zeros, infinities and NaN among them.
Tensor numbers(Random& random, const IntArray& sizes, ScalarType dtype) {
  Tensor x = empty(sizes, {kFloat64});
  double* p = x.data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t kind = random.below(40);
    p[i] = kind == 0   ? 0.0
           : kind == 1 ? -0.0
           : kind == 2 ? std::numeric_limits<double>::infinity()
           : kind == 3 ? std::numeric_limits<double>::quiet_NaN()
           : kind == 4 ? -1e30
           : kind == 5 ? 1e-30
                       : (static_cast<double>(random.next() >> 11) * 0x1p-53 - 0.5) * 6;
  }
  return dtype == kBool ? gt(x, 0.5) : x.to(dtype);
}

// A tensor that broadcasts to `sizes`, of some layout.
Tensor operand(Random& random, const IntArray& sizes, ScalarType dtype, bool full) {
  const auto rank = static_cast<int64_t>(sizes.size());
  IntArray own = sizes;
  if (!full)
    for (int64_t& n : own)
      if (random.chance(0.5)) n = 1;
  if (!full && rank > 0 && random.chance(0.3)) own.erase(own.begin(), own.begin() + random.below(rank) + 1);
  const int64_t layout = random.below(4);
  if (rank < 1 || own.empty() || layout == 0) return numbers(random, own, dtype);
  IntArray more = own;
  if (layout == 1) {  // every second element of the last dim
    more.back() *= 2;
    return slice(numbers(random, more, dtype), static_cast<int64_t>(own.size()) - 1, 0, more.back(), 2);
  }
  if (layout == 2) {  // some rows of more
    more.front() += 3;
    return slice(numbers(random, more, dtype), 0, 2, own.front() + 2, 1);
  }
  std::reverse(more.begin(), more.end());
  IntArray order;
  for (size_t i = own.size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  return permute(numbers(random, more, dtype), order);
}

struct Chain {
  Random& random;
  IntArray sizes;
  GroupTest test = {};
  std::vector<int32_t> values = {};
  std::vector<bool> used = {};

  int32_t pick(ScalarType dtype, bool full) {
    std::vector<size_t> fit;
    for (size_t i = 0; i < values.size(); ++i)
      if (test.value(values[i]).dtype() == dtype && (!full || test.value(values[i]).sizes() == sizes))
        fit.push_back(i);
    if (fit.empty() || (test.nodes() < 6 && random.chance(0.3))) return add_input(dtype, full);
    const size_t at = random.pick(fit);
    used[at] = true;
    return values[at];
  }
  int32_t add_input(ScalarType dtype, bool full) {
    return add(test.input(operand(random, sizes, dtype, full || random.chance(0.4))), true);
  }
  int32_t add(int32_t value, bool is_used) {
    values.push_back(value);
    used.push_back(is_used);
    return value;
  }

  void grow() {
    if (random.chance(0.15)) return convert();
    const OpRow& row = random.pick(all_ops());
    const ScalarType dtype = random.pick(kDtypes);
    const bool where = row.op == &ops::info<ops::Where>;
    std::vector<std::byte> attrs = row.attrs;
    // The bounds of these are positive.
    const bool has_bound = row.op == &ops::info<ops::Huber> || row.op == &ops::info<ops::SmoothL1>;
    const double least = has_bound ? 0.5 : -1;
    ir::for_each_field(*row.op, attrs.data(),
                       [&](auto, Scalar& number) { number = random.number(least, 3); });
    std::vector<int32_t> operands;
    for (int k = 0; k < row.op->arity; ++k)
      operands.push_back(pick(where && k == 0 ? kBool : dtype, k == where));
    if (row.op->has_scalar_operand && random.chance(0.3)) {
      int64_t number = random.below(row.op->arity);
      while (!(row.op->optional >> number & 1)) ++number;
      operands[static_cast<size_t>(number)] = GroupTest::kNone;
      if (number == where) operands[static_cast<size_t>(where + 1)] = pick(dtype, true);
    }
    add(test.node(*row.op, operands, attrs.data()), false);
  }
  void convert() {
    const ScalarType from = random.chance(0.2) ? kBool : random.pick(kDtypes);
    const ops::To::Attrs attrs{random.pick(kDtypes)};
    add(test.node(ops::info<ops::To>, {pick(from, true)}, &attrs), false);
  }

  void run(int length) {
    while (static_cast<int>(test.nodes()) < length) grow();
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] < 0 && (!used[i] || random.chance(0.15))) test.output(values[i]);
    test.check();
  }
};

TEST_CASE("every op in every dtype, with each kind of operand") {
  Random random(1);
  for (const OpRow& row : all_ops())
    for (ScalarType dtype : kDtypes) {
      INFO(row.op->name << " " << short_name(dtype));
      GroupTest t;
      std::vector<std::byte> attrs = row.attrs;
      ir::for_each_field(*row.op, attrs.data(),
                         [&](auto, Scalar& number) { number = random.number(0.5, 2); });
      const bool where = row.op == &ops::info<ops::Where>;
      std::vector<int32_t> operands;
      for (int k = 0; k < row.op->arity; ++k)
        operands.push_back(t.input(numbers(random, {3, 333}, where && k == 0 ? kBool : dtype)));
      const int32_t first = t.node(*row.op, operands, attrs.data());
      t.output(first);
      if (row.op->has_scalar_operand)
        for (size_t k = 0; k < operands.size(); ++k) {
          if (!(row.op->optional >> k & 1)) continue;
          std::vector<int32_t> others = operands;
          others[k] = GroupTest::kNone;
          t.output(t.node(*row.op, others, attrs.data()));
        }
      // The result as an operand of another op.
      if (row.boolean)
        t.output(t.node<ops::Where>({first, operands[0], GroupTest::kNone}, {.scalar = 2.0}));
      else
        t.output(t.node<ops::Mul>({first, first}));
      t.check();
    }
}

// The nodes of a pattern: see cpu/fused/levels/patterns.h.
template <class E>
struct PatternNodes;
template <int K>
struct PatternNodes<cpu::patterns::In<K>> {
  static int32_t add(GroupTest& t, Random& random, bool condition, ScalarType dtype) {
    return t.input(numbers(random, {300}, condition ? kBool : dtype));
  }
};
template <>
struct PatternNodes<cpu::patterns::Num> {
  static int32_t add(GroupTest&, Random&, bool, ScalarType) { return GroupTest::kNone; }
};
template <class Op, class... Args>
struct PatternNodes<cpu::patterns::Apply<Op, Args...>> {
  static int32_t add(GroupTest& t, Random& random, bool, ScalarType dtype) {
    bool condition = std::is_same_v<Op, ops::Where>;  // only the first operand
    std::vector<int32_t> operands;
    (operands.push_back(PatternNodes<Args>::add(t, random, std::exchange(condition, false), dtype)), ...);
    typename Op::Attrs attrs;
    if constexpr (requires { attrs.scalar; }) attrs.scalar = 0.7;
    return t.node(ops::info<Op>, operands, &attrs);
  }
};

template <class... Lists>
void check_patterns(cpu::patterns::ListOfLists<Lists...>) {
  Random random(5);
  const auto check_list = [&]<class List>(std::type_identity<List>) {
    List::for_each([&]<class E>() {
      for (ScalarType dtype : {kFloat32, kFloat64}) {
        GroupTest t;
        t.output(PatternNodes<E>::add(t, random, false, dtype));
        t.check();
      }
    });
  };
  (check_list(std::type_identity<Lists>()), ...);
}

TEST_CASE("every pattern") { check_patterns(cpu::patterns::AllPatterns()); }

TEST_CASE("random chains") {
  const IntArray shapes[] = {{},           {0},    {1},         {7},         {63},     {64},
                             {65},         {1000}, {3, 5},      {16, 64},    {5, 513}, {300, 7},
                             {2, 3, 4, 5}, {1, 1}, {40, 30, 3}, {6, 1, 200}, {0, 3},   {4, 2000}};
  Random random(7);
  for (int round = 0; round < 12; ++round)
    for (const IntArray& sizes : shapes) {
      INFO("round " << round);
      Chain{random, sizes}.run(static_cast<int>(random.between(1, 18)));
    }
}

TEST_CASE("chains over several chunks of a parallel loop") {
  Random random(11);
  for (const IntArray& sizes : {IntArray{100003}, IntArray{70, 1501}, IntArray{1501, 70}})
    for (int round = 0; round < 3; ++round) Chain{random, sizes}.run(12);
}

// So large that caches are bypassed; with sizes and layouts at which lines are split.
TEST_CASE("large outputs") {
  Random random(13);
  for (const auto& [sizes, dtype] :
       {std::pair{IntArray{(1 << 22) + 5}, kFloat32}, std::pair{IntArray{1111, 2003}, kFloat64}}) {
    GroupTest t;
    const Tensor x = randn(sizes, {dtype});
    const int32_t a = t.input(x),
                  b = t.input(slice(randn({sizes.back() + 3}, {dtype}), 0, 3, sizes.back() + 3, 1));
    const int32_t sum = t.node<ops::Add>({a, b}), product = t.node<ops::Mul>({sum, a});
    t.output(sum);
    t.output(product);
    t.output(t.node<ops::Square>({product}));
    const ops::To::Attrs same{dtype};
    t.output(t.node(ops::info<ops::To>, {a}, &same));
    t.check();
  }
}

TEST_CASE("numbers of a run are those that it is given") {
  GroupTest t;
  const Tensor x = ones({5});
  const int32_t y = t.with_number<ops::Mul>(t.input(x), 3);
  t.output(t.with_number<ops::Sub>(y, 1, 0));
  const auto kernel = t.fuse();
  REQUIRE(kernel);
  ops::ScalarOperand factor, from;
  factor.scalar = 5.0;
  from.scalar = 7.0;
  const void* attrs[] = {&factor, &from};
  TensorImpl* in[] = {x.get()};
  const Tensor out = empty({5});
  TensorImpl* outputs[] = {out.get()};
  kernel->run(in, outputs, attrs);
  CHECK(out.to_vector() == std::vector<double>(5, 2.0));
}

TEST_CASE("a copy, a constant, a gradient sum") {
  Random random(3);
  for (ScalarType dtype : kDtypes) {
    GroupTest t;
    const int32_t x = t.input(numbers(random, {9, 70}, dtype)), y = t.input(numbers(random, {9, 70}, dtype));
    const ops::To::Attrs same{dtype};
    const int32_t copy = t.node(ops::info<ops::To>, {x}, &same);
    t.output(copy);
    t.output(t.node(ops::info<ops::To>, {copy}, &same));
    ops::Full::Attrs third;
    third.size = {9, 70};
    third.value = 1.0 / 3;
    third.dtype = dtype;
    const int32_t constant = t.node(ops::info<ops::Full>, {}, &third);
    t.output(t.node<ops::Mul>({constant, x}));
    t.output(t.node(ops::accumulate, {x, y}));
    t.check();
  }
}

TEST_CASE("what cannot be one step") {
  const auto role = [](const OpInfo& op, std::vector<TensorType> operands, const TensorType& result,
                       const void* attrs = nullptr) {
    return cpu_executor().fused_role(op, attrs, operands, result);
  };
  const TensorType f{kFloat32, kCPU, {4, 6}}, i{kInt64, kCPU, {4, 6}}, b{kBool, kCPU, {4, 6}};
  CHECK(role(ops::info<ops::Mul>, {f, f}, f) == FusedRole::elementwise);
  CHECK(role(ops::info<ops::Mul>, {i, i}, i) == FusedRole::none);
  CHECK(role(ops::info<ops::Lt>, {f, f}, b) == FusedRole::elementwise);
  CHECK(role(ops::info<ops::Lt>, {i, i}, b) == FusedRole::none);
  CHECK(role(ops::info<ops::LogicalAnd>, {b, b}, b) == FusedRole::elementwise);
  CHECK(role(ops::info<ops::Where>, {b, f, f}, f) == FusedRole::elementwise);
  CHECK(role(ops::info<ops::To>, {i}, f) == FusedRole::elementwise);
  CHECK(role(ops::info<ops::To>, {f}, i) == FusedRole::none);
  CHECK(role(ops::info<ops::Mm>, {f, f}, f) == FusedRole::none);
  CHECK(role(ops::info<ops::Permute>, {f}, f) == FusedRole::none);
  CHECK(role(ops::info<ops::Clone>, {f}, f) == FusedRole::none);
  // Nodes of two shapes.
  GroupTest t;
  const int32_t row = t.with_number<ops::Mul>(t.input(ones({6})), 2);
  t.output(row);
  t.output(t.node<ops::Mul>({row, t.input(ones({4, 6}))}));
  CHECK(t.fuse() == nullptr);
  // More values alive than there are tiles.
  GroupTest many;
  const int32_t x = many.input(ones({70}));
  std::vector<int32_t> alive{x};
  for (int k = 0; k < 70; ++k) alive.push_back(many.node<ops::Exp>({alive.back()}));
  int32_t sum = x;
  for (int32_t v : alive) sum = many.node<ops::Add>({v, sum});
  many.output(sum);
  CHECK(many.fuse() == nullptr);
}

}  // namespace
}  // namespace retrograd
