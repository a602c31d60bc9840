// Views, joins and rearrangements: values against index arithmetic, memory shared or not, derivatives, errors.
// Not tested here: writing through views (tests/engine/inplace_test.cc), recorded graphs, results against PyTorch
// (tests/conformance).
#include "ops/views.h"

#include "ops/join.h"
#include "ops/binary.h"
#include "ops/rearrange.h"
#include "tests/ops/gradcheck.h"
#include "tests/errors.h"

namespace retrograd {
namespace {

using testing::Function;
using testing::gradcheck;
using testing::input;

// 0, 1, 2, ... in a shape.
Tensor count(const Shape& shape, ScalarType dtype = kFloat64) {
  return to(reshape_to(arange(0, shape.numel().value()), shape), dtype);
}

std::vector<double> values(const Tensor& t) { return t.to_vector(); }

TEST_CASE("a tensor without dims has no size or stride to ask for") {
  for (const int64_t dim : {0, -1}) {
    CHECK_THROWS_AS(scalar_tensor(1).size(dim), Error);
    CHECK_THROWS_AS(scalar_tensor(1).stride(dim), Error);
  }
  CHECK(zeros({3, 4}).size(-1) == 4);
  CHECK(zeros({3, 4}).stride(0) == 4);
}

TEST_CASE("views show the right elements of the same memory") {
  const Tensor x = count({3, 4});
  CHECK(values(narrow(x, 1, 1, 2)) == std::vector<double>{1, 2, 5, 6, 9, 10});
  CHECK(values(narrow(x, 0, -1, 1)) == std::vector<double>{8, 9, 10, 11});
  CHECK(values(select(x, 1, -1)) == std::vector<double>{3, 7, 11});
  CHECK(values(slice(x, 1, -3, 100, 2)) == std::vector<double>{1, 3, 5, 7, 9, 11});
  CHECK(slice(x, 0, 2, 1).sizes() == IntArray{0, 4});
  CHECK(values(diagonal(x, 1)) == std::vector<double>{1, 6, 11});
  CHECK(values(diagonal(x, -1)) == std::vector<double>{4, 9});
  CHECK(diagonal(x, 7).sizes() == IntArray{0});
  CHECK(values(unfold(x, 1, 2, 2)) == values(x));
  CHECK(unfold(x, 0, 2, 1).sizes() == IntArray{2, 4, 2});
  CHECK(values(unfold(x, 0, 2, 1)) == std::vector<double>{0, 4, 1, 5, 2, 6, 3, 7, 4, 8, 5, 9, 6, 10, 7, 11});
  CHECK(values(as_strided(x, {2, 2}, {5, 1}, 1)) == std::vector<double>{1, 2, 6, 7});
  CHECK(movedim(count({2, 3, 4}), {0}, {-1}).sizes() == IntArray{3, 4, 2});
  for (const Tensor& view : {narrow(x, 1, 1, 2), select(x, 0, 1), diagonal(x), unfold(x, 1, 2, 1), t(x),
                             unsqueeze(x, 0), squeeze(x)})
    CHECK(view.impl().storage() == x.impl().storage());
}

TEST_CASE("shapes of squeeze, unsqueeze, flatten") {
  const Tensor x = count({1, 3, 1, 2});
  CHECK(squeeze(x).sizes() == IntArray{3, 2});
  CHECK(squeeze(x, {1}).sizes() == IntArray{1, 3, 1, 2});
  CHECK(squeeze(x, {0, -2}).sizes() == IntArray{3, 2});
  CHECK(unsqueeze(x, -1).sizes() == IntArray{1, 3, 1, 2, 1});
  CHECK(flatten(x, 1, 2).sizes() == IntArray{1, 3, 2});
  CHECK(flatten(scalar_tensor(1.0)).sizes() == IntArray{1});
  CHECK(values(flatten(t(count({2, 3})))) == std::vector<double>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("split, chunk and unbind") {
  const Tensor x = count({5, 2});
  const Tensors parts = split(x, 2);
  REQUIRE(parts.size() == 3);
  CHECK(values(parts[2]) == std::vector<double>{8, 9});
  CHECK(parts[0].impl().is_multi_output_view);
  CHECK(split(x, IntArray{1, 4})[1].sizes() == IntArray{4, 2});
  CHECK(chunk(x, 4).size() == 3);
  CHECK(chunk(count({0, 2}), 3).size() == 3);
  CHECK(values(unbind(x, 1)[1]) == std::vector<double>{1, 3, 5, 7, 9});
  CHECK(split(count({0}), 0).size() == 1);
}

TEST_CASE("cat and stack") {
  const Tensor x = count({2, 3}), y = count({2, 1}, kFloat32);
  const Tensor z = cat({x, y}, -1);
  CHECK(z.dtype() == kFloat64);
  CHECK(values(z) == std::vector<double>{0, 1, 2, 0, 3, 4, 5, 1});
  CHECK(values(cat({t(x), t(x)}, 1)) == std::vector<double>{0, 3, 0, 3, 1, 4, 1, 4, 2, 5, 2, 5});
  CHECK(cat({count({0}), x}).sizes() == IntArray{2, 3});
  CHECK(stack({x, x}, 1).sizes() == IntArray{2, 2, 3});
  CHECK(values(stack({x, neg(x)}, 2)) == std::vector<double>{0, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5});
}

TEST_CASE("rearrangements") {
  const Tensor x = count({2, 3});
  CHECK(values(flip(x, {0, 1})) == std::vector<double>{5, 4, 3, 2, 1, 0});
  CHECK(values(flip(t(x), {0})) == std::vector<double>{2, 5, 1, 4, 0, 3});
  CHECK(values(roll(x, {1}, {1})) == std::vector<double>{2, 0, 1, 5, 3, 4});
  CHECK(values(roll(x, {-2})) == std::vector<double>{2, 3, 4, 5, 0, 1});
  CHECK(repeat(x, {2, 1, 2}).sizes() == IntArray{2, 2, 6});
  CHECK(values(repeat(count({2}), {2, 2})) == std::vector<double>{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(repeat(x, {0, 1}).sizes() == IntArray{0, 3});
  CHECK(values(tile(x, {2})) == std::vector<double>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(values(repeat_interleave(x, 2, 0)) == std::vector<double>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(values(repeat_interleave(x, tensor({2.0, 0.0, 1.0}, {kInt64}), 1)) ==
        std::vector<double>{0, 0, 2, 3, 3, 5});
  CHECK(values(tril(count({2, 2, 2}))) == std::vector<double>{0, 0, 2, 3, 4, 0, 6, 7});
  CHECK(values(triu(x, 1)) == std::vector<double>{0, 1, 2, 0, 0, 5});
  CHECK(values(tril(x, -1)) == std::vector<double>{0, 0, 0, 3, 0, 0});
  CHECK(values(diag(count({2}), -1)) == std::vector<double>{0, 0, 0, 0, 0, 0, 0, 1, 0});
  CHECK(values(diag(x)) == std::vector<double>{0, 4});
}

TEST_CASE("padding") {
  const Tensor x = count({2, 3});
  CHECK(values(pad(x, {1, 0, 0, 1}, "constant", 9)) ==
        std::vector<double>{9, 0, 1, 2, 9, 3, 4, 5, 9, 9, 9, 9});
  CHECK(values(pad(x, {-1, 1})) == std::vector<double>{1, 2, 0, 4, 5, 0});
  CHECK(values(pad(x, {2, 1}, "reflect")) == std::vector<double>{2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4});
  CHECK(values(pad(x, {1, 2}, "replicate")) == std::vector<double>{0, 0, 1, 2, 2, 2, 3, 3, 4, 5, 5, 5});
  CHECK(values(pad(x, {1, 1}, "circular")) == std::vector<double>{2, 0, 1, 2, 0, 5, 3, 4, 5, 3});
  CHECK(values(pad(x, {-1, 1}, "circular")) == std::vector<double>{1, 2, 1, 4, 5, 4});
  CHECK(values(pad(count({1, 4}), {2, -1}, "circular")) == std::vector<double>{1, 2, 0, 1, 2});
  CHECK(pad(x, {-2, -1}, "circular").sizes() == IntArray{2, 0});
}

// The entry of a dim of n that entry i of a padded one shows.
int64_t shown(const std::string& mode, int64_t i, int64_t n) {
  if (mode == "replicate") return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == "circular") return (i % n + n) % n;
  return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
}

TEST_CASE("padding of several dims, and its gradient") {
  const Shape shapes[] = {{3, 4, 5}, {70, 6, 100}, {5, 300, 7}};
  const IntArray amounts[] = {
      {1, 2}, {1, 0, 2, 3}, {0, 0, 3, 1}, {2, -1, -2, 2, 1, 1}, {-1, -2, 0, 0, 2, 2}, {0, 0, 0, 0, 1, 2}};
  for (const char* mode : {"reflect", "replicate", "circular"})
    for (const Shape& shape : shapes)
      for (const IntArray& amount : amounts)
        for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16}) {
          if (std::string(mode) == "circular" && std::ranges::any_of(amount, [](int64_t n) { return n < 0; }))
            continue;
          if (std::string(mode) == "reflect" && amount.size() > 5 && shape[0] == 3 && amount[5] > 2) continue;
          const Tensor x = to(retrograd::remainder(count(shape), 128), dtype).requires_grad_();
          const Tensor y = pad(x, amount, mode);
          const Tensor g = to(retrograd::remainder(count(y.impl().shape()), 8), dtype);
          const std::vector<double> from = x.to_vector(), to = y.to_vector(), cotangent = g.to_vector();
          std::vector<double> sums(from.size(), 0);
          for (size_t place = 0; place < to.size(); ++place) {
            int64_t rest = static_cast<int64_t>(place), at = 0, pitch = 1;
            for (int d = 2; d >= 0; --d) {
              const size_t pair = static_cast<size_t>(2 - d) * 2;
              const int64_t before = pair < amount.size() ? amount[pair] : 0, n = y.impl().shape()[d].raw();
              at += shown(mode, rest % n - before, shape[d].raw()) * pitch;
              rest /= n;
              pitch *= shape[d].raw();
            }
            REQUIRE(to[place] == from[static_cast<size_t>(at)]);
            sums[static_cast<size_t>(at)] += cotangent[place];
          }
          REQUIRE(autograd::grad({y}, {x}, {g})[0].to_vector() == sums);
        }
  CHECK(category_of([] { pad(zeros({2, 3}), {3, 0}, "reflect"); }) == Category::bad_argument);
  CHECK(category_of([] { pad(zeros({2, 3}), {0, 4}, "circular"); }) == Category::bad_argument);
  CHECK(category_of([] { pad(zeros({2, 0}), {0, 1}, "replicate"); }) == Category::bad_argument);
  CHECK(category_of([] { pad(zeros({2, 3}), {-4, 0}, "replicate"); }) == Category::bad_argument);
}

TEST_CASE("derivatives of views") {
  const Tensors x{input({3, 4})};
  gradcheck([](const Tensors& in) { return mul(narrow(in[0], 1, 1, 2), narrow(in[0], 1, 0, 2)); }, x);
  gradcheck([](const Tensors& in) { return mul(select(in[0], 0, 1), select(in[0], 0, 2)); }, x);
  gradcheck([](const Tensors& in) { return mul(slice(in[0], 1, 0, 4, 2), 3.0); }, x);
  gradcheck([](const Tensors& in) { return mul(diagonal(in[0], 1), diagonal(in[0], 0)); }, x);
  gradcheck([](const Tensors& in) { return mul(unfold(in[0], 1, 3, 1), unfold(in[0], 1, 3, 1)); }, x);
  gradcheck([](const Tensors& in) { return mul(squeeze(unsqueeze(in[0], 1)), in[0]); }, x);
  gradcheck([](const Tensors& in) { return mul(movedim(flatten(in[0]), {0}, {0}), 2.0); }, x);
  gradcheck(
      [](const Tensors& in) {
        const Tensors parts = split(in[0], 2, 1);
        return mul(parts[0], parts[1]);
      },
      x);
}

TEST_CASE("derivatives of as_strided: overlapping windows, other layouts, repeated input") {
  const Tensors x{input({3, 4})};
  gradcheck(
      [](const Tensors& in) {
        const Tensor y = as_strided(in[0], {3, 3}, {2, 1}, 1);
        return mul(y, y);
      },
      x);
  gradcheck(
      [](const Tensors& in) {
        const Tensor y = as_strided(t(in[0]), {2, 2}, {3, 2});
        return mul(y, y);
      },
      x);
  gradcheck(
      [](const Tensors& in) {
        const Tensor y = as_strided(narrow(in[0], 0, 1, 2), {2, 3}, {4, 1}, 5);
        return mul(y, y);
      },
      x);
  // PyTorch averages over the repetitions: the gradient of a repeated input is one share each, which expand sums again.
  gradcheck([](const Tensors& in) { return as_strided(expand(in[0], {3, 4}), {4}, {1}); }, {input({4})});
}

TEST_CASE("derivatives of as_strided: what it shows of the memory around its operand is constant") {
  const Tensor above = input({2, 4}, -1, 1, 2).detach(), below = input({1, 4}, -1, 1, 3).detach(),
               between = input({3, 2}, -1, 1, 4).detach();
  const auto check = [](const Function& operand, const Tensor& x, const IntArray& size,
                        const IntArray& stride, int64_t offset) {
    gradcheck(
        [&](const Tensors& in) {
          const Tensor y = as_strided(operand(in), size, stride, offset);
          return mul(y, y);
        },
        {x});
  };
  // Memory 8 to 15 of 20.
  const auto rows = [&](const Tensors& in) { return narrow(cat({above, in[0], below}, 0), 0, 2, 2); };
  for (const int64_t offset : {6, 11}) check(rows, input({2, 4}), {2, 3}, {5, 1}, offset);
  check(rows, input({2, 4}), {3, 3}, {6, 1}, 5);
  check(rows, input({2, 4}), {2, 4}, {4, 1}, 8);
  check(rows, input({2, 4}), {2, 0}, {4, 1}, 19);
  // Of memory 4 to 15 each second.
  const auto places = [&](const Tensors& in) {
    const Tensor pairs = reshape(stack({in[0], between}, 2), {3, 4});
    return slice(narrow(cat({below, pairs, below}, 0), 0, 1, 3), 1, 0, 4, 2);
  };
  for (const int64_t offset : {2, 6}) check(places, input({3, 2}), {3, 2}, {6, 1}, offset);
}

TEST_CASE("views of nothing, however strided, have tangents after a write") {
  const Tensor base = detach(as_strided(zeros({12}), {0, 0, 3, 2}, {12, 12, 4, 2}));
  const Tensor turned = base.transpose(0, 1), row = base.select(2, 2);
  autograd::DualLevel level;
  turned.copy_(level.make_dual(ones({0, 0, 3, 2}), ones({0, 0, 3, 2})));
  CHECK(level.tangent(row).sizes() == IntArray{0, 0, 2});
}

TEST_CASE("derivatives of joins and rearrangements") {
  const Tensors two{input({2, 3}), input({2, 2}, -1, 1, 2)};
  gradcheck(
      [](const Tensors& in) {
        const Tensor y = cat({in[0], in[1], in[0]}, 1);
        return mul(y, y);
      },
      two);
  const Tensors x{input({2, 3})};
  gradcheck([](const Tensors& in) { return mul(stack({in[0], in[0]}, 1), 2.0); }, x);
  gradcheck([](const Tensors& in) { return mul(flip(in[0], {1}), in[0]); }, x);
  gradcheck([](const Tensors& in) { return mul(roll(in[0], {1}, {1}), in[0]); }, x);
  gradcheck([](const Tensors& in) { return mul(repeat(in[0], {2, 2}), repeat(in[0], {2, 2})); }, x);
  gradcheck([](const Tensors& in) { return mul(repeat_interleave(in[0], 2, 1), 2.0); }, x);
  gradcheck([](const Tensors& in) { return mul(tril(in[0]), triu(in[0])); }, x);
  gradcheck([](const Tensors& in) { return mul(diag(in[0], 1), diag(in[0], 1)); }, {input({3})});
  for (const char* mode : {"constant", "reflect", "replicate", "circular"})
    gradcheck(
        [&](const Tensors& in) {
          const Tensor y = pad(in[0], {2, 1}, mode);
          return mul(y, y);
        },
        x);
}

TEST_CASE("16-bit overlapping windows are summed in float32 and rounded once") {
  const Tensor x = zeros({4}, {kBFloat16, kCPU, true});
  const Tensor y = unfold(x, 0, 3, 1);
  const Tensor g = tensor({256, 1, 1, 1, 1, 1}, {2, 3}, {kBFloat16});
  CHECK(values(autograd::grad({y}, {x}, {g})[0]) == std::vector<double>{256, 2, 2, 1});
}

TEST_CASE("views refuse") {
  const Tensor x = count({2, 6});
  CHECK(category_of([&] { select(x, 2, 0); }) == Category::bad_dim);
  CHECK(category_of([&] { select(x, 1, 7); }) == Category::index_out_of_range);
  CHECK(category_of([&] { select(x, 1, -7); }) == Category::index_out_of_range);
  CHECK(category_of([&] { select(scalar_tensor(1.0), 0, 0); }) == Category::bad_dim);
  CHECK(category_of([&] { narrow(x, 1, 1, 6); }) == Category::index_out_of_range);
  CHECK(category_of([&] { narrow(x, 0, 0, -1); }) == Category::bad_argument);
  CHECK(category_of([&] { slice(x, 0, 0, 6, 0); }) == Category::bad_argument);
  CHECK(category_of([&] { diagonal(x, 0, 0, 0); }) == Category::bad_dim);
  CHECK(category_of([&] { unfold(x, 0, 7, 1); }) == Category::bad_argument);
  CHECK(category_of([&] { as_strided(x, {6, 3}, {2, 1}); }) == Category::index_out_of_range);
  CHECK(category_of([&] { as_strided(x, {2}, {-1}); }) == Category::bad_argument);
  CHECK(category_of([&] { movedim(x, {0, 0}, {0, 1}); }) == Category::bad_dim);
  CHECK(category_of([&] { split(x, IntArray{1, 6}); }) == Category::shape_mismatch);
  CHECK(category_of([&] { chunk(x, 0); }) == Category::bad_argument);
  CHECK(category_of([&] { cat({}); }) == Category::bad_argument);
  CHECK(category_of([&] { cat({x, count({2})}); }) == Category::bad_dim);
  CHECK(category_of([&] { cat({x, count({3, 3})}); }) == Category::shape_mismatch);
  CHECK(category_of([&] { stack({x, t(x)}); }) == Category::shape_mismatch);
  CHECK(category_of([&] { flip(x, {0, 0}); }) == Category::bad_dim);
  CHECK(category_of([&] { roll(x, {1, 2}, {0}); }) == Category::bad_argument);
  CHECK(category_of([&] { roll(scalar_tensor(1.0), {1}, {0}); }) == Category::bad_dim);
  CHECK(category_of([&] { repeat(x, {2}); }) == Category::bad_dim);
  CHECK(category_of([&] { tril(count({3})); }) == Category::bad_dim);
  CHECK(category_of([&] { pad(x, {6, 0}, "reflect"); }) == Category::bad_argument);
  CHECK(category_of([&] { pad(x, {1}, "constant"); }) == Category::bad_argument);
  CHECK(category_of([&] { pad(x, {-6, 1}, "circular"); }) == Category::bad_argument);
  CHECK(category_of([&] { expand_to(count({1}), Shape{-1, 2, -3, 1}); }) == Category::bad_argument);
}

}  // namespace
}  // namespace retrograd
