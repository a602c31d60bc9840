// Operands, numbers and parameters of several dtypes, in addition to the promotion tests of
// tests/ops/elementwise_test.cc and the conformance suites: a product before a sum, a number that does not fit the
// dtype, and parameters that are wider than their input. All numbers are PyTorch's.
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/contraction.h"
#include "ops/index_ops.h"
#include "ops/losses.h"
#include "ops/norms.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/ops/gradcheck.h"
#include "tests/errors.h"

namespace retrograd {
namespace {

using Values = std::vector<double>;

Tensor of(const Values& values, ScalarType dtype) {
  return to(tensor(values, {static_cast<int64_t>(values.size())}, {kFloat64}), dtype);
}

void check(const Tensor& got, ScalarType dtype, const Values& want) {
  CHECK(got.dtype() == dtype);
  CHECK(got.to_vector() == want);
}

TEST_CASE("alpha multiplies in the dtype of the sum") {
  const Tensor bytes = of({1, 200}, kUInt8), yes_no = of({1, 0}, kBool), ints = of({5, -5}, kInt32);
  check(add(of({1.5, 1.5}, kBFloat16), bytes, -1), kBFloat16, {0.5, -198});
  check(sub(of({1.5, 1.5}, kFloat16), ints, 0.5), kFloat16, {-1, 4});
  check(add(ints, yes_no, 2), kInt32, {7, -5});
  check(add(yes_no, of({0, 0}, kBool), 3), kBool, {1, 0});
  check(add(yes_no, yes_no, 0), kBool, {1, 0});
  check(add(ints, 2.0, 0.5), kFloat32, {6, -4});
  for (const Operand& b : {Operand(ints), Operand(Scalar(2))})
    CHECK(category_of([&] { add(ints, b, 0.5); }) == Category::bad_argument);
  check(index_add(ints, 0, of({0}, kInt64), of({4}, kInt32), 1.7), kInt32, {9, -5});
}

TEST_CASE("a number beyond the dtype of an integer tensor wraps around") {
  const Tensor bytes = of({1, 200, 255}, kUInt8), ints = of({5, -5, 0}, kInt32);
  check(remainder(bytes, -2), kUInt8, {1, 200, 1});
  check(remainder(-2, bytes), kUInt8, {0, 54, 254});
  check(fmod(bytes, -1), kUInt8, {1, 200, 0});
  check(div(bytes, -2, "floor"), kUInt8, {0, 0, 1});
  check(eq(bytes, -1), kBool, {0, 0, 1});
  check(lt(ints, int64_t{1} << 40), kBool, {0, 1, 0});
  check(add(bytes, 300), kUInt8, {45, 244, 43});
  CHECK(category_of([&] { fmod(bytes, 256); }) == Category::bad_argument);
}

TEST_CASE("what PyTorch does not define for bools or integers is refused") {
  const Tensor yes_no = of({1, 0}, kBool), ints = of({5, -5}, kInt32), x = of({1.5, 2}, kFloat32);
  const auto refused = [](auto f) { CHECK(category_of(f) == Category::dtype_mismatch); };
  refused([&] { sub(x, yes_no); });
  refused([&] { sub(yes_no, x, 2); });
  refused([&] { sub(x, true); });
  refused([&] { abs(yes_no); });
  refused([&] { floor(yes_no); });
  refused([&] { round(yes_no); });
  refused([&] { addcdiv(x, ints, ints); });
  refused([&] { nll_loss(reshape(x, {1, 2}), of({0}, kInt64), of({1, 1}, kFloat64)); });
  check(addcdiv(x, ints, x), kFloat32, {1.5f + 5 / 1.5f, -0.5});
}

// Both are broadcast before they promote: a 0-dim target counts like any other.
TEST_CASE("losses promote whatever the numbers of dims") {
  const Tensor x = of({1, 3}, kFloat32), target = reshape(of({2}, kFloat64), {});
  check(mse_loss(x, target), kFloat64, {1});
  check(l1_loss(x, target, "none"), kFloat64, {1, 1});
  check(smooth_l1_loss(reshape(of({2}, kFloat16), {}), of({1, 4}, kBFloat16)), kFloat32, {1});
}

TEST_CASE("bools and bytes as numbers and as conditions") {
  check(square(of({1, 0}, kBool)), kInt64, {1, 0});
  check(where(of({2, 0}, kUInt8), 1.5, of({4, 8}, kFloat32)), kFloat32, {1.5, 8});
  CHECK(category_of([] { where(of({1}, kInt64), 1.5, of({4}, kFloat32)); }) == Category::dtype_mismatch);
}

TEST_CASE("a contraction over one element keeps the dtype of integers") {
  for (ScalarType dtype : {kInt32, kUInt8}) {
    const Tensor row = reshape(of({1, 2, 3}, dtype), {1, 3}), one = of({2}, dtype);
    const Tensor both = tensordot(row, row, 2);
    check(both, dtype, {14});
    check(tensordot(reshape(row, {3, 1}), row, 1), dtype, {1, 2, 3, 2, 4, 6, 3, 6, 9});
    check(tensordot(reshape(row, {3, 1}), one, 1), dtype, {2, 4, 6});
    check(tensordot(row, one, {1}, {0}), dtype, {12});
  }
}

// Statistics and products are in float32; the result is rounded once.
TEST_CASE("normalisations of 16 bits with parameters of float32") {
  for (ScalarType dtype : {kFloat16, kBFloat16}) {
    const Tensor x = to(testing::input({2, 4, 3}, -2, 2, 3).detach(), dtype).requires_grad_();
    const Tensor wide = to(x.detach(), kFloat32).requires_grad_();
    const Tensor w = to(testing::input({4}, 0.5, 2, 4).detach(), kFloat32).requires_grad_(),
                 b = to(testing::input({4}, -1, 1, 5).detach(), kFloat32).requires_grad_();
    const Tensor w3 = narrow(w, 0, 0, 3), b3 = narrow(b, 0, 0, 3);
    const auto agree = [&](auto norm) {
      const Tensor y = norm(x), reference = norm(wide);
      check(y, dtype, to(reference, dtype).to_vector());
      const Tensor g = to(testing::input({2, 4, 3}, -1, 1, 6).detach(), dtype);
      const Tensors got = autograd::grad({y}, {x, w}, {g}),
                    want = autograd::grad({reference}, {wide, w}, {to(g, kFloat32)});
      check(got[0], dtype, to(want[0], dtype).to_vector());
      check(got[1], kFloat32, want[1].to_vector());
    };
    agree([&](const Tensor& in) { return layer_norm(in, {3}, w3, b3); });
    agree([&](const Tensor& in) { return rms_norm(in, {3}, w3, 1e-3); });
    agree([&](const Tensor& in) { return group_norm(in, 2, w, b); });
    agree([&](const Tensor& in) { return batch_norm(in, w, b, {}, {}, true); });
    agree([&](const Tensor& in) { return instance_norm(in, w, b); });
    const Tensor mean = zeros({4}), var = ones({4});
    agree([&](const Tensor& in) { return batch_norm(in, w, b, mean, var, false); });
  }
}

TEST_CASE("parameters of normalisations in other dtypes are refused, except for the weight of rms_norm") {
  const Tensor x = zeros({2, 4, 3}), halves = to(x, kFloat16), doubles = to(x, kFloat64);
  const auto refused = [](auto f) { CHECK(category_of(f) == Category::dtype_mismatch); };
  refused([&] { layer_norm(x, {3}, ones({3}, {kFloat64})); });
  refused([&] { layer_norm(halves, {3}, ones({3}, {kBFloat16})); });
  refused([&] { layer_norm(halves, {3}, ones({3}), ones({3}, {kFloat16})); });
  refused([&] { group_norm(doubles, 2, ones({4})); });
  refused([&] { batch_norm(doubles, {}, {}, zeros({4}), ones({4})); });
  refused([&] { batch_norm(x, ones({4}, {kFloat16}), {}, {}, {}, true); });
  refused([&] { instance_norm(halves, ones({4}, {kFloat64})); });
  CHECK(rms_norm(doubles, {3}, ones({3})).dtype() == kFloat64);
  CHECK(rms_norm(x, {3}, ones({3}, {kFloat64})).dtype() == kFloat32);
  CHECK(rms_norm(halves, {3}, ones({3}, {kBFloat16})).dtype() == kFloat16);
}

// Floats of 16 bits are accumulated in float32, whose epsilon does not hide small values.
TEST_CASE("rms_norm's own eps is that of the numbers it computes in") {
  check(rms_norm(reshape(of({0.01, 0.02}, kFloat16), {1, 2}), {2}), kFloat16, {0.63232421875, 1.2646484375});
  check(rms_norm(reshape(of({0.01}, kBFloat16), {1, 1}), {1}), kBFloat16, {1});
}

}  // namespace
}  // namespace retrograd
