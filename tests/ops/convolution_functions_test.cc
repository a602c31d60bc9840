// The public functions of convolutions: how they interpret their arguments, derivatives to second order and in forward
// mode, saved sets, errors. Values of the ops: convolution_test.cc.
#include "ops/convolution.h"
#include "ops/rearrange.h"
#include "ops/views.h"
#include "tests/ops/gradcheck.h"
#include "tests/errors.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;
using testing::worst_difference;

Tensor fixed(const Shape& shape, int seed, ScalarType dtype = kFloat64) {
  return to(input(shape, -1, 1, seed).detach(), dtype);
}

TEST_CASE("the public functions: padding by name, bias, one sample, transposed forms") {
  const Tensor x = fixed({2, 3, 8, 9}, 1), w = fixed({4, 3, 3, 4}, 2), b = fixed({4}, 3);
  const Tensor column = reshape(b, {1, 4, 1, 1});
  CHECK(worst_difference(conv2d(x, w, b), conv2d(x, w) + column) < 1e-14);
  CHECK(worst_difference(conv2d(x, w, b, 1, "valid"), conv2d(x, w, b, {1}, {0, 0}, {1, 1})) == 0);
  // Of an odd number of zeros, "same" puts one more at the end.
  CHECK(worst_difference(conv2d(x, w, b, 1, "same"), conv2d(pad(x, {1, 2, 1, 1}), w, b)) < 1e-14);
  CHECK(worst_difference(conv2d(x, w, b, 1, "same", {2, 3}),
                         conv2d(pad(x, {4, 5, 2, 2}), w, b, 1, 0, {2, 3})) < 1e-14);
  CHECK(worst_difference(conv2d(x, w, b, {2, 3}, {1, 2}), conv2d(pad(x, {2, 2, 1, 1}), w, b, {2, 3})) <
        1e-14);
  const Tensor one = select(x, 0, 1);
  CHECK(worst_difference(conv2d(one, w, b), select(conv2d(x, w, b), 0, 1)) == 0);
  const Tensor line = fixed({3, 8}, 4), short_weight = fixed({6, 1, 3}, 5);
  CHECK(conv1d(line, short_weight, {}, 2, 1, 1, 3).sizes() == IntArray{6, 4});
  CHECK(worst_difference(conv1d(line, short_weight, {}, 1, "same", 2, 3),
                         conv1d(line, short_weight, {}, 1, 2, 2, 3)) == 0);
  CHECK(conv3d(fixed({2, 4, 5, 6}, 1), fixed({3, 2, 2, 2, 2}, 2)).sizes() == IntArray{3, 3, 4, 5});

  const Tensor turned = fixed({3, 4, 3, 2}, 2);
  const Tensor y = conv_transpose2d(x, turned, b, {2, 3}, {1, 0}, {1, 2}, 1, {1, 2});
  CHECK(y.sizes() == IntArray{2, 4, 16, 29});
  CHECK(worst_difference(y, conv_transpose2d(x, turned, {}, {2, 3}, {1, 0}, {1, 2}, 1, {1, 2}) + column) <
        1e-14);
  // With stride 1 it is a convolution with the kernel turned around.
  CHECK(worst_difference(conv_transpose2d(x, turned),
                         conv2d(x, flip(transpose(turned, 0, 1), {2, 3}), {}, 1, {2, 1})) < 1e-14);
  CHECK(conv_transpose2d(one, fixed({3, 2, 2, 2}, 6), {}, 2, 0, 0, 3).sizes() == IntArray{6, 16, 18});
  CHECK(conv_transpose1d(line, fixed({3, 2, 4}, 6), {}, 3, 1, 2).sizes() == IntArray{2, 25});
  CHECK(conv_transpose3d(fixed({2, 2, 2, 2}, 1), fixed({2, 3, 2, 2, 2}, 2), {}, 2).sizes() ==
        IntArray{3, 4, 4, 4});
}

TEST_CASE("nothing to sum, and nothing to compute") {
  CHECK(conv2d(ones({0, 2, 5, 5}), ones({3, 2, 3, 3})).sizes() == IntArray{0, 3, 3, 3});
  CHECK(conv1d(ones({2, 0, 5}), ones({3, 0, 3}), ones({3})).to_vector() == std::vector<double>(18, 1.0));
  CHECK(conv_transpose2d(ones({0, 2, 5, 5}), ones({2, 3, 3, 3})).sizes() == IntArray{0, 3, 7, 7});
  const Tensor far = conv_transpose2d(ones({0, 2, 5, 5}), ones({2, 3, 3, 3}), {}, {1, INT32_MAX});
  CHECK(far.sizes() == IntArray{0, 3, 7, 4 * int64_t{INT32_MAX} + 3});
  const Tensor x = ones({0, 2, 5}, kFloat64).requires_grad_(), w = input({3, 2, 3}), b = input({3});
  sum(conv1d(x, w, b)).backward();
  CHECK(x.grad().sizes() == IntArray{0, 2, 5});
  CHECK(w.grad().to_vector() == std::vector<double>(18, 0.0));
  CHECK(b.grad().to_vector() == std::vector<double>(3, 0.0));
}

TEST_CASE("derivatives, forward mode and second order") {
  const auto by = [](int64_t groups, IntList stride, ConvPadding padding, IntList dilation) {
    return [=](const Tensors& x) {
      return conv2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), stride, padding, dilation, groups);
    };
  };
  gradcheck(by(1, 1, 0, 1), {input({2, 2, 3, 4}), input({3, 2, 2, 2}, -1, 1, 2), input({3}, -1, 1, 3)});
  gradcheck(by(2, {2, 1}, {1, 2}, {1, 2}),
            {input({1, 4, 4, 3}), input({4, 2, 2, 3}, -1, 1, 2), input({4}, -1, 1, 3)});
  gradcheck(by(2, 1, "same", 1), {input({1, 2, 3, 4}), input({12, 1, 2, 2}, -1, 1, 2)});
  gradcheck([](const Tensors& x) { return conv1d(x[0], x[1], x[2], 2, 1, 1, 3); },
            {input({3, 6}), input({3, 1, 3}, -1, 1, 2), input({3}, -1, 1, 3)});
  gradcheck([](const Tensors& x) { return conv3d(x[0], x[1], {}, 1, 1); },
            {input({1, 1, 2, 2, 3}), input({2, 1, 2, 2, 2}, -1, 1, 2)});
  gradcheck([](const Tensors& x) { return conv_transpose1d(x[0], x[1], x[2], 3, 1, 1); },
            {input({2, 2, 3}), input({2, 3, 3}, -1, 1, 2), input({3}, -1, 1, 3)});
  gradcheck(
      [](const Tensors& x) {
        return conv_transpose2d(x[0], x[1], x[2], {2, 1}, 1, {1, 0}, 2, {1, 2});
      },
      {input({1, 4, 3, 2}), input({4, 1, 3, 2}, -1, 1, 2), input({2}, -1, 1, 3)});
}

TEST_CASE("an operand that wants no gradient") {
  const Tensor x = fixed({1, 2, 5}, 1), w = fixed({3, 2, 2}, 2), b = fixed({3}, 3);
  gradcheck([&](const Tensors& v) { return conv1d(v[0], w, b); }, {input({1, 2, 5})});
  gradcheck([&](const Tensors& v) { return conv1d(x, v[0], b); }, {input({3, 2, 2})});
  gradcheck([&](const Tensors& v) { return conv1d(x, w, v[0]); }, {input({3})}, false);
  // An operand is saved only where the other one wants a gradient.
  const Tensor in = input({1, 2, 5});
  const Tensor y = conv1d(in, w);
  in.detach().mul_(2.0);
  CHECK_NOTHROW(sum(y).backward());
  const Tensor z = conv1d(in, w);
  w.mul_(2.0);
  CHECK(category_of([&] { sum(z).backward(); }) == Category::version_mismatch);
}

TEST_CASE("errors of convolutions") {
  const Tensor x = ones({1, 4, 5, 5}), w = ones({6, 4, 3, 3});
  const auto of = [&](const Tensor& a, const Tensor& b, const Tensor& bias = {}, const IntList& stride = 1,
                      const ConvPadding& padding = 0, const IntList& dilation = 1, int64_t groups = 1) {
    return category_of([&] { conv2d(a, b, bias, stride, padding, dilation, groups); });
  };
  CHECK(of(ones({4, 5}), w) == Category::bad_dim);
  CHECK(of(ones({1, 1, 4, 5, 5}), w) == Category::bad_dim);
  CHECK(of(x, ones({6, 4, 3})) == Category::bad_dim);
  CHECK(of(ones({1, 3, 5, 5}), w) == Category::shape_mismatch);
  CHECK(of(x, w, ones({5})) == Category::shape_mismatch);
  CHECK(of(x, w, ones({6, 1})) == Category::shape_mismatch);
  CHECK(of(x, ones({0, 4, 3, 3})) == Category::shape_mismatch);
  CHECK(of(x, ones({5, 2, 3, 3}), {}, 1, 0, 1, 2) == Category::shape_mismatch);
  CHECK(of(x, w, {}, 1, 0, 1, 2) == Category::shape_mismatch);
  CHECK(of(x, ones({6, 4, 3, 3}, kFloat64)) == Category::dtype_mismatch);
  CHECK(of(x, w, ones({6}, kFloat64)) == Category::dtype_mismatch);
  CHECK(of(to(x, kBool), to(w, kBool)) == Category::dtype_mismatch);
  CHECK(of(x, w, {}, 0) == Category::bad_argument);
  CHECK(of(x, w, {}, {1, 1, 1}) == Category::bad_argument);
  CHECK(of(x, w, {}, IntList{}) == Category::bad_argument);
  CHECK(of(x, w, {}, 1, -1) == Category::bad_argument);
  CHECK(of(x, w, {}, 1, 0, 0) == Category::bad_argument);
  CHECK(of(x, w, {}, 1, 0, 1, 0) == Category::bad_argument);
  CHECK(of(x, w, {}, 1, 0, 3) == Category::bad_argument);  // larger than the input
  CHECK(of(x, ones({6, 4, 0, 3})) == Category::bad_argument);
  CHECK(of(ones({1, 4, 0, 5}), w, {}, 1, 2) == Category::bad_argument);
  CHECK(of(x, w, {}, 2, "same") == Category::bad_argument);
  CHECK(category_of([&] { conv2d(x, w, {}, 1, "full"); }) == Category::bad_argument);
}

TEST_CASE("errors of transposed convolutions") {
  const Tensor x = ones({1, 4, 5, 5}), w = ones({4, 6, 3, 3});
  const auto of = [&](const Tensor& a, const Tensor& b, const Tensor& bias = {}, const IntList& stride = 1,
                      const IntList& padding = 0, const IntList& output_padding = 0, int64_t groups = 1) {
    return category_of([&] { conv_transpose2d(a, b, bias, stride, padding, output_padding, groups); });
  };
  CHECK(of(ones({4, 5}), w) == Category::bad_dim);
  CHECK(of(x, ones({5, 6, 3, 3})) == Category::shape_mismatch);
  CHECK(of(x, w, ones({4})) == Category::shape_mismatch);
  CHECK(of(x, w, {}, 1, 0, 0, 3) == Category::shape_mismatch);
  CHECK(of(x, ones({4, 6, 3, 3}, kFloat64)) == Category::dtype_mismatch);
  CHECK(of(x, w, {}, 2, 0, 2) == Category::bad_argument);
  CHECK(of(x, w, {}, 1, 0, -1) == Category::bad_argument);
  CHECK(of(x, w, {}, 1, 4) == Category::bad_argument);  // nothing left
}

}  // namespace
}  // namespace retrograd
