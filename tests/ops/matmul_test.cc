// Matrix products, einsum and tensordot: values against loops in double, layouts, dtypes, derivatives to
// second order, saved sets, errors. Not tested here: cuts and threads (tests/cpu/gemm_test.cc), recorded
// graphs, results against PyTorch (tests/conformance).
#include "ops/matmul.h"

#include "ops/contraction.h"
#include "ops/rearrange.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"
#include "tests/same_bits.h"

namespace retrograd {
namespace {

using testing::gradcheck;
using testing::input;
using testing::same_bits;
using testing::worst_difference;

// The product of matrices by definition: a sum over an expanded elementwise product.
Tensor product_by_sum(const Tensor& a, const Tensor& b) {
  return sum(mul(unsqueeze(a, -1), unsqueeze(b, -3)), -2);
}

TEST_CASE("mm and bmm of any layout") {
  const Tensor a = input({5, 7}, -1, 1, 1), b = input({7, 4}, -1, 1, 2);
  const Tensor want = product_by_sum(a, b);
  CHECK(worst_difference(mm(a, b), want) < 1e-14);
  CHECK(worst_difference(mm(t(t(a).contiguous()), t(contiguous(t(b)))), want) < 1e-14);
  CHECK(worst_difference(mm(slice(a, 1, 0, 7, 2), slice(b, 0, 0, 7, 2)),
                         product_by_sum(slice(a, 1, 0, 7, 2), slice(b, 0, 0, 7, 2))) < 1e-14);
  const Tensor x = input({3, 5, 7}), y = input({3, 7, 4}, -1, 1, 3);
  CHECK(worst_difference(bmm(x, y), product_by_sum(x, y)) < 1e-14);
  const Tensor turned = transpose(contiguous(transpose(y, 1, 2)), 1, 2);
  CHECK(worst_difference(bmm(x, turned), product_by_sum(x, y)) < 1e-14);
  CHECK(worst_difference(bmm(expand(narrow(x, 0, 1, 1), {3, 5, 7}), y),
                         product_by_sum(expand(narrow(x, 0, 1, 1), {3, 5, 7}), y)) < 1e-14);
}

// Half of them is computed, and copied to the other half.
TEST_CASE("products of matrices and their own transposes have the bits of other products") {
  const auto check = [](const Tensor& x) {
    const Tensor copy = x.clone();
    CHECK(same_bits(bmm(x, transpose(x, 1, 2)), bmm(x, transpose(copy, 1, 2))));
    CHECK(same_bits(bmm(transpose(x, 1, 2), x), bmm(transpose(x, 1, 2), copy)));
    const Tensor one = select(x, 0, 1), other = select(copy, 0, 1);
    CHECK(same_bits(mm(one, t(one)), mm(one, t(other))));
    // The strides of a transpose, but of other matrices.
    const Tensor turned = flip(x, {0}).contiguous();
    CHECK(same_bits(bmm(x, transpose(turned, 1, 2)), bmm(x, transpose(turned, 1, 2).contiguous())));
    const Tensor first = narrow(x, 0, 0, 2), last = narrow(x, 0, 1, 2);
    CHECK(same_bits(bmm(first, transpose(last, 1, 2)), bmm(first, transpose(last, 1, 2).contiguous())));
    CHECK(same_bits(baddbmm(bmm(x, transpose(copy, 1, 2)), x, transpose(x, 1, 2), 0.5, 2),
                    baddbmm(bmm(x, transpose(copy, 1, 2)), x, transpose(copy, 1, 2), 0.5, 2)));
  };
  for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16, kFloat16})
    for (const auto& [n, k] : {std::pair{128, 7}, {131, 64}, {64, 129}, {200, 300}, {257, 1100}})
      check(input({3, n, k}, -1, 1, 1).to(dtype));
  const Tensor x = input({150, 40}, -1, 1, 1);
  CHECK(worst_difference(mm(x, t(x)), product_by_sum(x, t(x))) < 1e-13);
  // One matrix for the whole batch.
  const Tensor same = expand(unsqueeze(x, 0), {3, 150, 40});
  CHECK(same_bits(bmm(same, transpose(same, 1, 2)), expand(unsqueeze(mm(x, t(x)), 0), {3, 150, 150})));
}

TEST_CASE("sizes of zero and one") {
  CHECK(mm(ones({0, 3}), ones({3, 2})).sizes() == IntArray{0, 2});
  CHECK(mm(ones({2, 0}), ones({0, 3})).to_vector() == std::vector<double>(6, 0.0));
  CHECK(bmm(ones({0, 2, 3}), ones({0, 3, 4})).sizes() == IntArray{0, 2, 4});
  CHECK(mv(ones({3, 0}), ones({0})).to_vector() == std::vector<double>(3, 0.0));
  CHECK(dot(ones({0}), ones({0})).item<double>() == 0);
  CHECK(linear(ones({4, 0}), ones({2, 0}), ones({2})).to_vector() == std::vector<double>(8, 1.0));
  CHECK(matmul(ones({2, 0, 3}), ones({3, 5})).sizes() == IntArray{2, 0, 5});
  CHECK(mm(full({1, 1}, 3.0), full({1, 1}, 2.0)).item<double>() == 6);
}

TEST_CASE("matmul follows NumPy's rule for every pair of ranks") {
  const IntArray left[] = {{3}, {2, 3}, {4, 2, 3}, {5, 1, 2, 3}},
                 right[] = {{3}, {3, 6}, {4, 3, 6}, {5, 4, 3, 6}};
  for (const IntArray& l : left)
    for (const IntArray& r : right) {
      const Tensor a = input(l, -1, 1, 1), b = input(r, -1, 1, 2);
      const Tensor a2 = l.size() == 1 ? unsqueeze(a, 0) : a, b2 = r.size() == 1 ? unsqueeze(b, 1) : b;
      Tensor want = product_by_sum(a2, b2);
      if (r.size() == 1) want = squeeze(want, {-1});
      if (l.size() == 1) want = squeeze(want, {r.size() == 1 ? -1 : -2});
      INFO("ranks " << l.size() << " and " << r.size());
      CHECK(worst_difference(matmul(a, b), want) < 1e-14);
    }
}

TEST_CASE("addmm, baddbmm and linear") {
  const Tensor a = input({4, 3}), b = input({3, 5}, -1, 1, 2), row = input({5}, -1, 1, 3),
               nan = full({4, 5}, std::nan(""), kFloat64);
  const Tensor want = mm(a, b);
  CHECK(worst_difference(addmm(row, a, b, 0.5, 2.0), row * 0.5 + want * 2.0) < 1e-14);
  CHECK(worst_difference(addmm(nan, a, b, 0, -1), neg(want)) < 1e-14);
  const Tensor x = input({2, 4, 3}), y = input({2, 3, 5}, -1, 1, 4);
  CHECK(worst_difference(baddbmm(row, x, y, 2, 3), row * 2.0 + bmm(x, y) * 3.0) < 1e-14);
  const Tensor weight = input({5, 3}, -1, 1, 5);
  for (const Tensor& z :
       {a, x, select(a, 0, 0), transpose(x, 0, 1), transpose(contiguous(transpose(x, 1, 2)), 1, 2)})
    CHECK(worst_difference(linear(z, weight, row), matmul(z, t(weight)) + row) < 1e-14);
  CHECK(linear(x, select(weight, 0, 0)).sizes() == IntArray{2, 4});
}

TEST_CASE("dtypes: integers multiply, small floats round once") {
  const Tensor i = to(arange(0, 6), kInt32).view({2, 3});
  CHECK(mm(i, t(i)).to_vector() == std::vector<double>{5, 14, 14, 50});
  CHECK(mm(i, t(i)).dtype() == kInt32);
  CHECK(dot(arange(1, 4), arange(1, 4)).item<int64_t>() == 14);
  for (ScalarType small : {kBFloat16, kHalf}) {
    // Eighths have exact sums, whatever their order.
    const auto eighths = [&](const IntArray& sizes, int seed) {
      return to(mul(floor(Operand(input(sizes, 0, 8, seed).detach())), 0.125), small);
    };
    const Tensor a = eighths({6, 300}, 1), b = eighths({300, 5}, 2);
    const Tensor once = to(mm(to(a, kFloat32), to(b, kFloat32)), small);
    CHECK(mm(a, b).dtype() == small);
    CHECK(worst_difference(mm(a, b), once) == 0);
    const Tensor row = eighths({40}, 3), turned = transpose(eighths({40, 1100}, 5), 0, 1);
    for (const int64_t k : {9, 64, 300, 1100}) {  // one part of the sums, or several
      const Tensor x = eighths({33, k}, 4), y = slice(turned, 0, 0, k);
      const Tensor product = mm(to(x, kFloat32), to(y, kFloat32));
      CHECK(worst_difference(mm(x, y), to(product, small)) == 0);
      CHECK(worst_difference(mm(x, contiguous(y)), to(product, small)) == 0);
      CHECK(worst_difference(mm(t(contiguous(t(x))), contiguous(y)), to(product, small)) == 0);
      CHECK(worst_difference(linear(x, t(y), row), to(product + to(row, kFloat32), small)) == 0);
      CHECK(worst_difference(bmm(expand(x, {3, 33, k}), expand(y, {3, k, 40})),
                             to(expand(product, {3, 33, 40}), small)) == 0);
    }
    CHECK(worst_difference(addmm(full({5}, 1.0, small), a, b),
                           to(mm(to(a, kFloat32), to(b, kFloat32)) + 1.0, small)) == 0);
  }
}

TEST_CASE("derivatives of products") {
  gradcheck([](const Tensors& x) { return mm(x[0], x[1]); }, {input({2, 3}), input({3, 4}, -1, 1, 2)});
  gradcheck([](const Tensors& x) { return mm(t(x[0]), x[1]); }, {input({3, 2}), input({3, 4}, -1, 1, 2)});
  gradcheck([](const Tensors& x) { return bmm(x[0], x[1]); }, {input({2, 2, 3}), input({2, 3, 2}, -1, 1, 2)});
  gradcheck([](const Tensors& x) { return mv(x[0], x[1]); }, {input({2, 3}), input({3}, -1, 1, 2)});
  gradcheck([](const Tensors& x) { return dot(x[0], x[1]); }, {input({4}), input({4}, -1, 1, 2)});
  gradcheck([](const Tensors& x) { return outer(x[0], x[1]); }, {input({2}), input({3}, -1, 1, 2)});
  gradcheck([](const Tensors& x) { return addmm(x[0], x[1], x[2], 0.5, 2.0); },
            {input({3}), input({2, 2}, -1, 1, 2), input({2, 3}, -1, 1, 3)});
  gradcheck([](const Tensors& x) { return baddbmm(x[0], x[1], x[2], 2, 3); },
            {input({2, 3}), input({2, 2, 2}, -1, 1, 2), input({2, 2, 3}, -1, 1, 3)});
  gradcheck([](const Tensors& x) { return linear(x[0], x[1], x[2]); },
            {input({2, 2, 3}), input({4, 3}, -1, 1, 2), input({4}, -1, 1, 3)});
  gradcheck([](const Tensors& x) { return linear(x[0], x[1]); }, {input({3}), input({2, 3}, -1, 1, 2)});
}

TEST_CASE("derivatives of matmul for every pair of ranks") {
  const IntArray left[] = {{3}, {2, 3}, {2, 1, 3}}, right[] = {{3}, {3, 2}, {2, 3, 2}};
  for (const IntArray& l : left)
    for (const IntArray& r : right) {
      INFO("ranks " << l.size() << " and " << r.size());
      gradcheck([](const Tensors& x) { return matmul(x[0], x[1]); }, {input(l), input(r, -1, 1, 2)}, false);
    }
  gradcheck([](const Tensors& x) { return matmul(x[0], x[1]); },
            {input({2, 1, 2, 3}), input({2, 3, 2}, -1, 1, 2)});
}

TEST_CASE("the gradient of a linear weight has its layout") {
  Tensor x = input({6, 3}), weight = input({5, 3}, -1, 1, 2);
  sum(linear(x, weight)).backward();
  CHECK(weight.grad().strides() == IntArray{3, 1});
}

TEST_CASE("a product saves a factor only where the other one wants a gradient") {
  const Tensor x = input({2, 3}), fixed = input({3, 4}, -1, 1, 2).detach();
  const Tensor y = mm(x, fixed);
  x.detach().mul_(2.0);  // x is not saved: writing to it is harmless
  CHECK_NOTHROW(sum(y).backward());
  const Tensor z = mm(x, fixed);
  fixed.mul_(2.0);
  CHECK(category_of([&] { sum(z).backward(); }) == Category::version_mismatch);
}

TEST_CASE("einsum") {
  const Tensor a = input({3, 4}), b = input({4, 5}, -1, 1, 2), c = input({2, 3, 4}, -1, 1, 3),
               d = input({2, 4, 5}, -1, 1, 4), s = input({3, 3}, -1, 1, 5);
  CHECK(worst_difference(einsum("ij,jk->ik", {a, b}), mm(a, b)) < 1e-14);
  CHECK(worst_difference(einsum(" i j , j k ", {a, b}), mm(a, b)) < 1e-14);
  CHECK(worst_difference(einsum("jk,ij->ki", {b, a}), t(mm(a, b))) < 1e-14);
  CHECK(worst_difference(einsum("bij,bjk->bik", {c, d}), bmm(c, d)) < 1e-14);
  CHECK(worst_difference(einsum("...ij,...jk->...ik", {c, b}), matmul(c, b)) < 1e-14);
  CHECK(worst_difference(einsum("ij->", {a}), sum(a)) < 1e-14);
  CHECK(worst_difference(einsum("ij->ji", {a}), t(a)) == 0);
  CHECK(worst_difference(einsum("ba", {a}), t(a)) == 0);
  CHECK(worst_difference(einsum("ii->i", {s}), diagonal(s)) == 0);
  CHECK(worst_difference(einsum("ii", {s}), sum(diagonal(s))) < 1e-14);
  CHECK(worst_difference(einsum("ij,ij->j", {a, a}), sum(a * a, 0)) < 1e-14);
  CHECK(worst_difference(einsum("ij,ij->", {a, a}), sum(a * a)) < 1e-13);
  CHECK(worst_difference(einsum("i,j->ij", {select(a, 1, 0), select(b, 0, 0)}),
                         outer(select(a, 1, 0), select(b, 0, 0))) < 1e-14);
  CHECK(worst_difference(einsum("i,ij,j->", {select(a, 1, 0), a, select(b, 1, 0)}),
                         dot(select(a, 1, 0), mv(a, select(b, 1, 0)))) < 1e-14);
  CHECK(worst_difference(einsum("ij,kj->ik", {a, narrow(a, 1, 0, 1)}),
                         mm(a, t(expand(narrow(a, 1, 0, 1), {3, 4})))) < 1e-14);
  gradcheck([](const Tensors& x) { return einsum("bij,bkj,k->bi", x); },
            {input({2, 2, 3}), input({2, 2, 3}, -1, 1, 2), input({2}, -1, 1, 3)});
  gradcheck([](const Tensors& x) { return einsum("iij,j->i", x); }, {input({2, 2, 3}), input({3}, -1, 1, 2)});
}

TEST_CASE("tensordot") {
  const Tensor a = input({3, 4, 2}), b = input({2, 4, 5}, -1, 1, 2);
  CHECK(worst_difference(tensordot(a, b, {1, 2}, {1, 0}), einsum("ijk,kjl->il", {a, b})) < 1e-14);
  CHECK(worst_difference(tensordot(a, b, 1), einsum("ijk,klm->ijlm", {a, b})) < 1e-14);
  CHECK(worst_difference(tensordot(a, select(b, 0, 0), 0), einsum("ijk,lm->ijklm", {a, select(b, 0, 0)})) <
        1e-14);
  gradcheck(
      [](const Tensors& x) {
        return tensordot(x[0], x[1], IntList{0, -1}, IntList{1, 0});
      },
      {input({2, 3, 2}), input({2, 2, 2}, -1, 1, 2)});
}

TEST_CASE("errors of products") {
  const Tensor m = ones({2, 3}), v = ones({3}), b = ones({2, 2, 3}), d = ones({3, 2}, kFloat64),
               i = ones({3, 2}, kInt64);
  CHECK(category_of([&] { mm(m, m); }) == Category::shape_mismatch);
  CHECK(category_of([&] { mm(m, v); }) == Category::bad_dim);
  CHECK(category_of([&] { mm(m, d); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { mm(m, i); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { mm(to(m, kBool), to(i, kBool)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { bmm(m, b); }) == Category::bad_dim);
  CHECK(category_of([&] { bmm(b, ones({3, 3, 2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { bmm(b, ones({2, 2, 2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { mv(v, v); }) == Category::bad_dim);
  CHECK(category_of([&] { mv(m, ones({2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { dot(m, v); }) == Category::bad_dim);
  CHECK(category_of([&] { dot(v, ones({2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { outer(m, v); }) == Category::bad_dim);
  CHECK(category_of([&] { matmul(scalar_tensor(1.0), v); }) == Category::bad_dim);
  CHECK(category_of([&] { matmul(b, ones({3, 3, 2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { addmm(ones({4}), m, ones({3, 2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { linear(m, ones({4, 2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { linear(m, ones({4, 3}), ones({3})); }) == Category::shape_mismatch);
}

TEST_CASE("the stride of a dim of size 1 makes no difference") {
  for (int64_t k = 1; k < 40; ++k)
    for (const ScalarType dtype : {kFloat64, kFloat32}) {
      const Tensor row = to(input({1, k}, -1, 1, 3).detach(), dtype), same = as_strided(row, {1, k}, {1, 1});
      const Tensor m = to(input({k, 5}, -1, 1, 4).detach(), dtype);
      REQUIRE(same.is_contiguous());
      const std::vector<double> product = mm(row, m).to_vector();
      CHECK(mm(same, m).to_vector() == product);
      CHECK(mm(t(m), t(same)).to_vector() == mm(t(m), t(row)).to_vector());
      CHECK(mm(same, t(same)).to_vector() == mm(row, t(row)).to_vector());
      CHECK(mm(t(same), same).to_vector() == mm(t(row), row).to_vector());
      CHECK(linear(same, t(m)).to_vector() == linear(row, t(m)).to_vector());
    }
}

TEST_CASE("errors of einsum and tensordot") {
  const Tensor m = ones({2, 3});
  CHECK(category_of([&] { einsum("i->i", {m}); }) == Category::bad_argument);
  CHECK(category_of([&] { einsum("ij->k", {m}); }) == Category::bad_argument);
  CHECK(category_of([&] { einsum("ij->ii", {m}); }) == Category::bad_argument);
  CHECK(category_of([&] { einsum("i?->i", {m}); }) == Category::bad_argument);
  CHECK(category_of([&] { einsum("ij,jk->ik", {m}); }) == Category::bad_argument);
  CHECK(category_of([&] { einsum("ij", {m, m}); }) == Category::bad_argument);
  CHECK(category_of([&] { einsum("ij,jk->ik", {m, m}); }) == Category::shape_mismatch);
  CHECK(category_of([&] { einsum("ii->i", {m}); }) == Category::shape_mismatch);
  CHECK(category_of([&] { tensordot(m, m, 1); }) == Category::shape_mismatch);
  CHECK(category_of([&] { tensordot(m, m, 3); }) == Category::bad_dim);
  CHECK(category_of([&] { tensordot(m, m, -1); }) == Category::bad_argument);
  CHECK(category_of([&] { tensordot(m, m, IntList{0, 0}, IntList{0, 1}); }) == Category::bad_dim);
  CHECK(category_of([&] { tensordot(m, m, IntList{0}, IntList{0, 1}); }) == Category::bad_argument);
}

}  // namespace
}  // namespace retrograd
