// The inputs of the table: see table.h.
#include "ops/views.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

// SplitMix64. Rows are made in a fixed order, so each run of the test has the same numbers.
double next_number() {
  static uint64_t state = 0;
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

Tensor numbers(const Shape& shape, Range range) {
  std::vector<double> values(static_cast<size_t>(shape.numel().value()));
  for (double& v : values) v = range.low + (range.high - range.low) * next_number();
  return rg::tensor(values, shape, {rg::kFloat64});
}

Tensor leaf(const Tensor& t) { return t.detach().requires_grad_(); }

}  // namespace

Tensor real(const Shape& shape, Range range) { return leaf(numbers(shape, range)); }

Tensor transposed(const Shape& shape, Range range) {
  Shape reversed;
  rg::IntArray order;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    reversed.push_back(shape[d]);
    order.push_back(d);
  }
  return leaf(rg::permute(numbers(reversed, range), order));
}

Tensor expanded(const Shape& shape, Range range) {
  Shape once = shape;
  once[0] = 1;
  return leaf(rg::expand_to(numbers(once, range), shape));
}

Tensor strided(const Shape& shape, Range range) {
  Shape wide = shape;
  const int last = shape.rank() - 1;
  wide[last] = shape[last] * 2 + 1;
  return leaf(rg::slice(numbers(wide, range), last, 1, {}, 2));
}

Tensor ints(const std::vector<double>& values, const Shape& shape) {
  return rg::tensor(values, shape, {rg::kInt64});
}
Tensor mask(const std::vector<double>& values, const Shape& shape) {
  return rg::tensor(values, shape, {rg::kBool});
}

std::vector<Tensors> unary_cases(Range r) {
  return {{real({}, r)},
          {real({0, 3}, r)},
          {real({19}, r)},
          {transposed({3, 2}, r)},
          {transposed({2, 1, 5}, r)},
          {expanded({2, 3}, r)},
          {strided({2, 9}, r)},
          {real({1, 2, 1, 2, 1, 3}, r)}};
}

std::vector<Tensors> binary_cases(Range a, Range b) {
  return {{real({}, a), real({}, b)},
          {real({19}, a), real({19}, b)},
          {real({3}, a), real({2, 3}, b)},
          {real({2, 9}, a), real({9}, b)},
          {real({2, 1}, a), real({1, 3}, b)},
          {real({}, a), transposed({2, 3}, b)},
          {transposed({2, 2, 3}, a), real({1}, b)},
          {real({0, 3}, a), real({1, 3}, b)},
          {expanded({2, 3}, a), strided({2, 3}, b)},
          {real({2, 1, 3, 1}, a), transposed({2, 1, 2}, b)},
          {real({2, 2}, a), fixed(real({2, 2}, b))},
          {fixed(real({2, 2}, a)), real({2, 1}, b)}};
}

std::vector<Tensors> ternary_cases(Range a, Range b, Range c) {
  return {{real({}, a), real({}, b), real({}, c)},
          {real({3}, a), real({2, 3}, b), real({2, 1}, c)},
          {real({2, 3}, a), transposed({2, 3}, b), expanded({2, 3}, c)},
          {transposed({2, 1, 3}, a), real({2, 1}, b), strided({3}, c)},
          {real({17}, a), strided({17}, b), real({17}, c)},
          {real({0, 2}, a), real({1, 2}, b), real({}, c)},
          {fixed(real({2, 2}, a)), real({2}, b), fixed(real({2, 2}, c))},
          {real({2}, a), fixed(real({2}, b)), real({2, 2}, c)}};
}

}  // namespace derivatives
