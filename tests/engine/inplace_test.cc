// In-place operations: memory, versions, and how gradients and tangents follow writes through views.
// Not tested here: random programs of views and writes against PyTorch (tests/conformance, suite views_inplace).
#include "engine/inplace.h"

#include "engine/autograd.h"
#include "engine/node.h"
#include "engine/saved_tensor_hooks.h"
#include "ops/copy.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;

Tensor count(const Shape& shape, ScalarType dtype = kFloat64) {
  return to(reshape_to(arange(0, shape.numel().value()), shape), dtype);
}

std::vector<double> values(const Tensor& t) { return t.to_vector(); }

const Tensor& squared_(const Tensor& x) {
  return apply_inplace(
      x, [](const Tensor& old) { return mul(old, old); }, "squared_");
}

TEST_CASE("a write is seen through every view and raises one version") {
  const Tensor x = count({2, 3}), row = select(x, 0, 1), column = select(x, 1, 0),
               copy_of_handle = x.detach();
  row.add_(ones({3}, {kFloat64}));
  CHECK(values(x) == std::vector<double>{0, 1, 2, 4, 5, 6});
  CHECK(values(column) == std::vector<double>{0, 4});
  CHECK(x.version() == 1);
  CHECK(copy_of_handle.version() == 1);
  {
    NoGradGuard no_grad;
    t(x).mul_(2);
    x.zero_();
  }
  CHECK(column.version() == 3);
  CHECK(values(row) == std::vector<double>{0, 0, 0});
}

TEST_CASE("results are cast and broadcast into the tensor") {
  const Tensor x = zeros({2, 3});
  x.copy_(count({3}, kInt64));
  CHECK(values(x) == std::vector<double>{0, 1, 2, 0, 1, 2});
  x.add_(ones({2, 3}, {kFloat64}));
  CHECK(x.dtype() == kFloat32);
  const Tensor i = zeros({2}, {kInt64});
  i.copy_(tensor({1.9, -1.9}));
  CHECK(values(i) == std::vector<double>{1, -1});
  i.fill_(7);
  CHECK(values(i) == std::vector<double>{7, 7});
}

TEST_CASE("gradients of in-place ops") {
  const Tensors x{input({2, 3})}, two{input({2, 3}), input({3}, -1, 1, 2)};
  gradcheck([](const Tensors& in) { return squared_(squared_(clone(in[0]))); }, x);
  gradcheck(
      [](const Tensors& in) {
        const Tensor y = clone(in[0]);
        y.mul_(in[1]);
        squared_(y);
        y.add_(in[0], 2);
        return y;
      },
      two);
  gradcheck(
      [](const Tensors& in) {  // adding a tensor to itself
        const Tensor y = mul(in[0], 3.0);
        y.add_(y);
        return mul(y, y);
      },
      x);
  gradcheck([](const Tensors& in) { return zeros({2, 3}, {kFloat64}).copy_(mul(in[1], in[1])); }, two);
}

TEST_CASE("gradients of writes through views") {
  const Tensors two{input({3, 4}), input({4}, -1, 1, 2)};
  gradcheck(
      [](const Tensors& in) {  // a view of a view, the base and a sibling that was made before
        const Tensor y = clone(in[0]), sibling = select(y, 0, 1);
        const Tensor part = t(narrow(y, 1, 0, 3));
        part.mul_(2);
        select(part, 0, 1).add_(sum(in[1]));
        return mul(sibling, sibling);
      },
      two);
  gradcheck(
      [](const Tensors& in) {  // the base written to after the view was made
        const Tensor y = clone(in[0]), row = select(y, 0, 0);
        squared_(y);
        return mul(row, in[1]);
      },
      two);
  gradcheck(
      [](const Tensors& in) {
        const Tensor y = clone(in[0]);
        diagonal(y).copy_(narrow(in[1], 0, 0, 3));
        squared_(diagonal(y, 1));
        return mul(y, y);
      },
      two);
  gradcheck(
      [](const Tensors& in) {
        const Tensor y = clone(in[0]);
        as_strided(y, {2, 2}, {5, 2}, 1).mul_(reshape(in[1], {2, 2}));
        return mul(y, y);
      },
      two);
  gradcheck(
      [](const Tensors& in) {
        const Tensor y = mul(in[0], 2.0);
        setitem_(y, {int64_t{1}}, in[1]);
        setitem_(y, {indexing::Ellipsis, int64_t{0}}, 0.0);
        setitem_(y, {tensor({2.0}, {kInt64})}, in[1]);
        return mul(y, y);
      },
      two);
  gradcheck(
      [](const Tensors& in) {  // a buffer in another layout than row-major
        const Tensor buffer = t(zeros({4, 3}, {kFloat64})).detach();
        select(buffer, 0, 1).copy_(in[1]);
        buffer.add_(in[0]);
        squared_(narrow(buffer, 1, 1, 2));
        return mul(buffer, buffer);
      },
      two);
  gradcheck(
      [](const Tensors& in) {  // an expanded view reads new values
        const Tensor y = clone(in[1]), wide = expand(y, {3, 4});
        squared_(y);
        return mul(wide, in[0]);
      },
      two);
}

TEST_CASE("a buffer that is written to becomes differentiable, and so do its views") {
  const Tensor x = input({3}), buffer = zeros({2, 3}, {kFloat64}), row = select(buffer, 0, 1),
               other = select(buffer, 0, 0);
  CHECK(!row.requires_grad());
  CHECK(row.is_leaf());
  row.copy_(mul(x, 2.0));
  CHECK(buffer.requires_grad());
  CHECK(!buffer.is_leaf());
  CHECK(other.requires_grad());
  sum(row).backward();
  CHECK(values(x.grad()) == std::vector<double>{2, 2, 2});
}

TEST_CASE("under no_grad only memory changes") {
  const Tensor x = input({2, 3});
  {
    NoGradGuard no_grad;
    x.add_(ones({2, 3}, {kFloat64}));
    select(x, 0, 0).fill_(0.5);
  }
  CHECK(x.is_leaf());
  CHECK(x.requires_grad());
  CHECK(values(select(x, 0, 0)) == std::vector<double>{0.5, 0.5, 0.5});
}

TEST_CASE("a view made under no_grad says that its base requires a gradient") {
  const Tensor y = mul(input({2, 2}), 2.0);
  Tensor view;
  {
    NoGradGuard no_grad;
    view = select(y, 0, 0);
  }
  CHECK(view.requires_grad());
  CHECK(!view.grad_fn().defined());
}

TEST_CASE("versions: what a record saved must not change") {
  const Tensor x = input({2, 2});
  const auto backward_of = [](const Tensor& y) {
    return category_of([&] { y.backward(ones(y.impl().shape(), {kFloat64})); });
  };
  SECTION("an operand") {
    const Tensor y = mul(x, 2.0), z = mul(y, y);
    y.add_(x);
    CHECK(backward_of(z) == Category::version_mismatch);
  }
  SECTION("a tensor multiplied by itself in place") {
    const Tensor y = clone(x);
    y.mul_(y);
    CHECK(backward_of(y) == Category::version_mismatch);
  }
  SECTION("a disjoint part") {
    const Tensor y = clone(x), z = mul(select(y, 0, 0), select(y, 0, 0));
    select(y, 0, 1).fill_(0);
    CHECK(backward_of(z) == Category::version_mismatch);
  }
  SECTION("through a detached tensor") {
    const Tensor y = mul(x, 2.0), z = mul(y, y);
    y.detach().mul_(2);
    CHECK(backward_of(z) == Category::version_mismatch);
  }
  SECTION("the overwritten value itself is kept privately") {
    const Tensor y = clone(x), factor = input({2, 2}, 1, 2, 3);
    y.mul_(factor);
    y.mul_(2);
    y.backward(ones({2, 2}, {kFloat64}));
    CHECK(values(factor.grad()) == values(mul(x.detach(), 2.0)));
  }
}

TEST_CASE("pack hooks see the old value, not what is written over it") {
  const Tensor x = input({3}), factor = input({3}, 1, 2, 2);
  Tensor y = clone(x);
  {
    SavedTensorHooksGuard hooks([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; });
    y.mul_(factor);
  }
  y.backward(ones({3}, {kFloat64}));
  CHECK(values(factor.grad()) == values(x));
}

TEST_CASE("hooks stay with the old value, retain_grad moves to the new one") {
  const Tensor x = input({2});
  const Tensor y = mul(x, 2.0);
  y.retain_grad();
  std::vector<double> seen;
  const HookHandle hook = y.register_hook([&](const Tensor& g) {
    seen = values(g);
    return Tensor();
  });
  y.mul_(3);
  y.backward(ones({2}, {kFloat64}));
  CHECK(seen == std::vector<double>{3, 3});
  CHECK(values(y.grad()) == std::vector<double>{1, 1});
  CHECK(values(x.grad()) == std::vector<double>{6, 6});
}

TEST_CASE("in-place refuses, and leaves everything as it was") {
  const Tensor leaf = input({2, 3}), plain = count({2, 3});
  const auto add_one = [](const Tensor& x) { x.add_(scalar_tensor(1.0, {kFloat64})); };
  CHECK(category_of([&] { add_one(leaf); }) == Category::leaf_inplace);
  CHECK(category_of([&] { leaf.zero_(); }) == Category::leaf_inplace);
  CHECK(category_of([&] { add_one(narrow(t(leaf), 0, 0, 2)); }) == Category::leaf_inplace);
  CHECK(category_of([&] { setitem_(leaf, {int64_t{0}}, 1.0); }) == Category::leaf_inplace);
  const Tensor inner = clone(leaf);
  CHECK(category_of([&] { add_one(split(inner, 1)[0]); }) == Category::view_inplace_forbidden);
  CHECK(category_of([&] { add_one(unbind(inner)[1]); }) == Category::view_inplace_forbidden);
  CHECK(category_of([&] { chunk(plain, 2)[0].add_(select(leaf, 0, 0)); }) ==
        Category::view_inplace_forbidden);
  Tensor quiet;
  {
    NoGradGuard no_grad;
    quiet = select(inner, 0, 0);
  }
  CHECK(category_of([&] { add_one(quiet); }) == Category::view_inplace_forbidden);
  CHECK(category_of([&] { add_one(expand(count({3}), {2, 3})); }) == Category::overlapping_write);
  CHECK(category_of([&] { narrow(flatten(plain), 0, 1, 3).copy_(narrow(flatten(plain), 0, 0, 3)); }) ==
        Category::overlapping_write);
  CHECK(category_of([&] { plain.add_(count({4, 2, 3})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { plain.copy_(count({2, 2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { zeros({2}, {kInt64}).add_(ones({2})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { zeros({2}, {kBool}).mul_(ones({2}, {kInt64})); }) == Category::dtype_mismatch);
  CHECK(values(plain) == values(count({2, 3})));
  CHECK(plain.version() == 0);
  CHECK(inner.version() == 0);
}

TEST_CASE("writes that repeat one value may go into repeated elements") {
  const Tensor x = zeros({3}, {kFloat64});
  expand(x, {2, 3}).fill_(4);
  CHECK(values(x) == std::vector<double>{4, 4, 4});
}

TEST_CASE("x[...] = number may go into repeated elements, an empty tensor repeats none") {
  const Tensor x = zeros({3}, {kFloat64});
  setitem_(expand(x, {2, 3}), {indexing::Ellipsis}, 4.0);
  CHECK(values(x) == std::vector<double>{4, 4, 4});
  setitem_(expand(x, {2, 3}), {}, select(x, 0, 1) + 1.0);
  CHECK(values(x) == std::vector<double>{5, 5, 5});
  CHECK(category_of([&] { setitem_(expand(x, {2, 3}), {}, count({2, 3})); }) == Category::overlapping_write);
  CHECK(expand(zeros({1, 0}), {2, 0}).mul_(2).numel() == 0);
}

const Tensor& put_(const Tensor& x, const Tensor& index, const Tensor& source, std::string_view name) {
  return apply_inplace(
      x, [&](const Tensor& old) { return index_copy(old, 0, index, source); }, name);
}

// PyTorch compares ends and strides of tensors that fill a block of memory; the same tensor is no overlap, where every
// element is read before it is written.
TEST_CASE("operands that overlap with what is written to") {
  const Tensor x = count({4}), matrix = count({2, 2}), index = to(arange(0, 4), kInt64);
  CHECK(category_of([&] { view(x, {1, 4}).add_(x); }) == Category::overlapping_write);
  CHECK(category_of([&] { matrix.add_(t(matrix)); }) == Category::overlapping_write);
  CHECK(category_of([&] { matrix.copy_(select(matrix, 0, 0)); }) == Category::overlapping_write);
  CHECK(category_of([&] { put_(x, index, x, "index_copy_"); }) == Category::overlapping_write);
  CHECK(category_of([&] { put_(x, index, alias(x), "index_copy_"); }) == Category::overlapping_write);
  {
    NoGradGuard no_grad;
    CHECK(category_of([&] { put_(x, index, x, "index_copy_"); }) == Category::overlapping_write);
    matrix.add_(matrix);
  }
  CHECK(values(x) == std::vector<double>{0, 1, 2, 3});
  x.add_(x);
  x.mul_(alias(x));
  setitem_(matrix, {}, matrix);
  setitem_(view(x, {1, 4}), {}, view(x, {1, 4}));
  setitem_(zeros({0}), {indexing::Slice{{}, {}, 2}}, zeros({0}));
  CHECK(values(x) == std::vector<double>{0, 4, 16, 36});
  CHECK(values(matrix) == std::vector<double>{0, 2, 4, 6});
}

TEST_CASE("views of what the old value becomes inside of the function are no overlap") {
  const Tensor x = count({2, 2});
  NoGradGuard no_grad;
  apply_inplace(
      x, [](const Tensor& old) { return add(t(old), select(old, 0, 0)); }, "add_");
  CHECK(values(x) == std::vector<double>{0, 3, 1, 4});
}

// Their place in the graph cannot be updated, for any kind of write.
TEST_CASE("parts of a split, and views made under no_grad, are not used after a write") {
  const Tensor x = input({4}), y = exp(x);
  Tensor part = split(y, 2)[0], quiet;
  {
    NoGradGuard no_grad;
    quiet = select(y, 0, 0);
    y.mul_(2);
  }
  const auto refused = [](const std::function<void()>& use) {
    return category_of(use) == Category::view_inplace_forbidden;
  };
  for (const Tensor& view : {part, quiet}) {
    CHECK(refused([&] { sin(view); }));
    CHECK(refused([&] { retrograd::view(view, {-1}); }));
    CHECK(refused([&] { (void)view.is_leaf(); }));
    CHECK(refused([&] { view.backward(ones_like(view)); }));
    CHECK(refused([&] { count({1, 1, 1, 2}).add_(view); }));
    NoGradGuard no_grad;
    CHECK(values(mul(view, 1.0)) == values(view.detach()));  // read without gradients
    view.mul_(2);
  }
  y.detach().zero_();  // writes only to the memory
  part = split(y, 2)[1];
  y.detach().zero_();
  CHECK(refused([&] { sin(part); }));
  const Tensor buffer = zeros({4}), plain = split(buffer, 2)[0];
  buffer.fill_(1);
  CHECK(values(sin(plain)).size() == 2);  // no gradient is at stake
}

TEST_CASE("whether a gradient would follow is seen before shapes are") {
  const Tensor part = split(count({4}), 2)[0], leaf = input({3});
  CHECK(category_of([&] { part.add_(leaf); }) == Category::view_inplace_forbidden);
  CHECK(category_of([&] { part.add_(count({3})); }) == Category::shape_mismatch);
}

TEST_CASE("an undefined operand is an error under no_grad, too") {
  const Tensor x = count({3});
  NoGradGuard no_grad;
  CHECK(category_of([&] { x.add_(Tensor()); }) == Category::bad_argument);
  CHECK(category_of([&] { x.mul_(Tensor()); }) == Category::bad_argument);
  CHECK(category_of([&] { x.copy_(Tensor()); }) == Category::bad_argument);
  CHECK(values(x) == std::vector<double>{0, 1, 2});
}

TEST_CASE("what reshape copies is no view of anything") {
  const Tensor matrix = count({2, 3}), leaf = input({6});
  Tensor copied;
  {
    NoGradGuard no_grad;
    copied = t(matrix).reshape({6});
  }
  copied.mul_(leaf);
  sum(copied).backward();
  CHECK(values(leaf.grad()) == std::vector<double>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("a retained gradient has memory of its own") {
  const Tensor x = input({3}), y = mul(x, 2.0);
  y.retain_grad();
  const Tensor given = count({3}), got = autograd::grad({y}, {y}, {given}, true)[0];
  got.fill_(9);
  CHECK(values(y.grad()) == std::vector<double>{0, 1, 2});
}

TEST_CASE("a view made under no_grad is an input that no backward reaches") {
  const Tensor x = input({3}), y = mul(x, 2.0);
  Tensor quiet;
  {
    NoGradGuard no_grad;
    quiet = narrow(y, 0, 0, 2);
  }
  const Tensors grads = autograd::grad({y}, {x, quiet}, {ones_like(y)}, {}, false, true);
  CHECK(values(grads[0]) == std::vector<double>{2, 2, 2});
  CHECK(!grads[1].defined());
}

TEST_CASE("a value that was saved between two writes through its views is released") {
  const int64_t before = memory::stats().live_tensors;
  {
    const Tensor x = count({2, 3}).requires_grad_();
    const Tensor base = sin(x), first = alias(base), second = view(base, {6});
    const Tensor y = exp2(erf(base));  // erf has saved it
    first.mul_(2.0);
    second.mul_(view(y, {6}));
  }
  CHECK(memory::stats().live_tensors == before);
}

TEST_CASE("parts of a split can be written to where no gradient is at stake") {
  const Tensor x = count({4});
  split(x, 2)[1].mul_(10);
  CHECK(values(x) == std::vector<double>{0, 1, 20, 30});
}

}  // namespace
}  // namespace retrograd
