// What a tape record keeps of a call: types with shared and distinct shapes, slots, hashes, and its size.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace rg = retrograd;

namespace {

rg::Tensor leaf(const rg::Shape& size) { return rg::ones(size).requires_grad_(); }

const rg::Record& record_of(const rg::Tensor& t) { return *t.grad_fn().record(); }

bool is(const rg::TensorType& type, const rg::Shape& shape) {
  return type.dtype == rg::kFloat32 && type.device == rg::kCPU && type.shape == shape;
}

}  // namespace

TEST_CASE("equal shapes are kept once, others each") {
  const rg::Tensor same = leaf({2, 3}) * leaf({2, 3});
  CHECK(record_of(same).dim_count() == 2);
  for (int i : {0, 1}) CHECK(is(record_of(same).operand_type(i), {2, 3}));
  CHECK(is(record_of(same).output_type(0), {2, 3}));

  const rg::Tensor broadcast = leaf({3}) * leaf({2, 1});
  CHECK(record_of(broadcast).dim_count() == 5);
  CHECK(is(record_of(broadcast).operand_type(0), {3}));
  CHECK(is(record_of(broadcast).operand_type(1), {2, 1}));
  CHECK(is(record_of(broadcast).output_type(0), {2, 3}));

  const rg::Tensor scalars = leaf({}) * leaf({});
  CHECK(record_of(scalars).dim_count() == 0);
  CHECK(is(record_of(scalars).output_type(0), {}));
}

TEST_CASE("a record has the types of any number of values") {
  rg::Tensors parts;
  for (int i = 0; i < 70; ++i) parts.push_back(leaf({1 + i % 3, 2}));
  const rg::Tensor joined = rg::cat(parts, 0);
  const rg::Record& record = record_of(joined);
  REQUIRE(record.type_count() == 71);
  for (int i = 0; i < 70; ++i) CHECK(is(record.operand_type(i), {1 + i % 3, 2}));
  CHECK(is(record.output_type(0), {139, 2}));
  joined.sum().backward();
  for (int i = 0; i < 70; ++i)
    CHECK(parts[static_cast<size_t>(i)].grad().sizes() == parts[static_cast<size_t>(i)].sizes());
}

TEST_CASE("a missing operand has no type, and its neighbours have theirs") {
  const rg::Tensor y = leaf({4, 5}) * 2.0;
  CHECK(is(record_of(y).operand_type(0), {4, 5}));
  CHECK(record_of(y).operand_type(1).dtype == rg::ScalarType::Undefined);
  CHECK(is(record_of(y).output_type(0), {4, 5}));
  CHECK(record_of(y).dim_count() == 2);
}

TEST_CASE("a slot is found by the value that it keeps") {
  const rg::Tensor a = leaf({2, 3}), b = rg::ones({2, 3});
  const rg::Tensor product = a * b;  // only b is needed, for the gradient of a
  CHECK(record_of(product).slot_of_operand(0) == -1);
  CHECK(record_of(product).slot_of_operand(1) == 0);
  CHECK(record_of(product).slot_of_result(0) == -1);
  CHECK(record_of(product).slot(0).value() == b.get());
  const rg::Tensor result = rg::exp(a);
  CHECK(record_of(result).slot_of_operand(0) == -1);
  CHECK(record_of(result).slot_of_result(0) == 0);
}

TEST_CASE("the hash of the structure does not see sizes, that of the sizes does") {
  const auto product = [](const rg::Shape& x, const rg::Shape& y) { return leaf(x) * leaf(y); };
  const rg::Tensor a = product({2, 3}, {3}), b = product({4, 5}, {5}), c = product({2, 3}, {1}),
                   d = product({2, 3}, {3});
  CHECK(record_of(a).structure_hash == record_of(b).structure_hash);
  CHECK(record_of(a).size_hash != record_of(b).size_hash);
  CHECK(record_of(a).structure_hash != record_of(c).structure_hash);  // a size of 1 is structure
  CHECK(record_of(a).structure_hash == record_of(d).structure_hash);
  CHECK(record_of(a).size_hash == record_of(d).size_hash);
  const rg::Tensor x = leaf({2, 3}), w = rg::ones({3});
  const rg::Tensor e = x * w, f = w * x;
  CHECK(record_of(e).structure_hash !=
        record_of(a).structure_hash);  // another set of operands wants a gradient
  CHECK(record_of(e).structure_hash != record_of(f).structure_hash);
}

TEST_CASE("numbers are in neither hash") {
  const rg::Tensor x = leaf({2});
  const rg::Tensor a = x * 2.0, b = x * 3.0, c = x * int64_t{3};
  CHECK(record_of(a).structure_hash == record_of(b).structure_hash);
  CHECK(record_of(a).size_hash == record_of(b).size_hash);
  CHECK(record_of(a).structure_hash != record_of(c).structure_hash);  // but their kind is
}

TEST_CASE("one type stands for all only where all have it") {
  const rg::Tensor x = leaf({3}), condition = rg::lt(x, 2.0);
  const rg::Tensor chosen = rg::where(condition, x, x * x);
  CHECK(record_of(chosen).operand_type(0).dtype == rg::kBool);
  CHECK(is(record_of(chosen).operand_type(1), {3}));
  CHECK(is(record_of(chosen).output_type(0), {3}));
  const rg::Tensor converted = x.to(rg::kFloat64);
  CHECK(is(record_of(converted).operand_type(0), {3}));
  CHECK(record_of(converted).output_type(0).dtype == rg::kFloat64);
  const rg::Tensor left = 2.0 / x;
  CHECK(record_of(left).operand_type(0).dtype == rg::ScalarType::Undefined);
  CHECK(is(record_of(left).operand_type(1), {3}));
  CHECK(record_of(left).dim_count() == 1);
  (chosen.sum() + converted.to(rg::kFloat32).sum() + left.sum()).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{0, 0, 0});  // 1 + 1 - 2
}

TEST_CASE("square matrices have the structure of others") {
  const auto product = [](int64_t n, int64_t k, int64_t m) { return rg::mm(leaf({n, k}), leaf({k, m})); };
  const rg::Tensor square = product(3, 3, 3), other = product(3, 4, 5);
  CHECK(record_of(square).structure_hash == record_of(other).structure_hash);
  CHECK(record_of(square).size_hash != record_of(other).size_hash);
}

TEST_CASE("an edge leads to any result of a record") {
  constexpr size_t kResults = 300;
  struct Fan : rg::Function<Fan> {
    static rg::Tensors forward(rg::AutogradContext*, const rg::Tensor& x) {
      rg::Tensors results;
      for (size_t i = 0; i < kResults; ++i) results.push_back(x * static_cast<double>(i));
      return results;
    }
    static rg::Tensors backward(rg::AutogradContext*, const rg::Tensors& grads) {
      rg::Tensor sum = rg::zeros({1});
      for (size_t i = 0; i < kResults; ++i) sum = sum + grads[i] * static_cast<double>(i);
      return {sum};
    }
  };
  const rg::Tensor x = leaf({1});
  const rg::Tensors fan = Fan::apply(x);
  const rg::Tensor y = fan[299] * fan[258];
  CHECK(record_of(y).edge(0).record() == &record_of(fan[0]));
  CHECK(record_of(y).edge(0).output_nr() == 299);
  CHECK(record_of(y).edge(1).output_nr() == 258);
  CHECK(record_of(fan[0]).edge(0).output_nr() == rg::Edge::kLeaf);
  CHECK(record_of(fan[0]).edge(0).leaf() == x.get());
  CHECK(record_of(fan[0]).edge(0).record() == nullptr);
  y.backward();
  CHECK(x.grad().item<double>() == 2 * 299 * 258);
  const rg::Edge copy = record_of(y).edge(0);
  CHECK(copy == record_of(y).edge(0));
  CHECK(!(copy == record_of(y).edge(1)));
}

TEST_CASE("a record of tensors alone keeps no number, and its rule is that of a product") {
  const rg::Tensor x = leaf({2}), w = rg::full({2}, 3.0).requires_grad_();
  for (int round = 0; round < 2; ++round) {
    const rg::Tensor y = x * w, z = y * 2.0;
    CHECK(!record_of(y).has_attrs);
    CHECK(record_of(z).has_attrs);
    rg::CompiledBackward backward = rg::compile_backward();
    backward.backward({z}, {rg::ones({2})});
  }
  CHECK(x.grad().to_vector() == std::vector<double>{12, 12});
  CHECK(w.grad().to_vector() == std::vector<double>{4, 4});
}

TEST_CASE("a record of an elementwise op takes two cache lines, three where it saves two operands") {
  const rg::Tensor x = leaf({2, 3}), y = leaf({2, 3}), w = rg::ones({2, 3});
  for (const rg::Tensor& result : {x * w, x + y, x * 2.0, x / w, rg::exp(x), rg::tanh(x)}) {
    INFO(result.grad_fn().name());
    CHECK(record_of(result).block_size() == 128);
  }
  CHECK(record_of(x * y).block_size() == 192);
}
