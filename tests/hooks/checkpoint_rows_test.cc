// checkpoint_rows: values and gradients of the whole, memory of a piece, in eager and captured backwards, compiled
// functions and steps.
#include "hooks/checkpoint_rows.h"

#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/hooks/pairs.h"
#include "tests/hooks/regions.h"

namespace rg = retrograd;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;
using rg::testing::added_by;
using rg::testing::Calls;
using rg::testing::in_modes;
using rg::testing::same_bits;
using rg::testing::shifted_wave;

namespace {

constexpr int64_t kRows = 200, kWidth = 8, kInner = 2048;
constexpr int64_t kInnerBytes = kRows * kInner * 4;  // of one value in between

struct Mlp {
  Tensor up = shifted_wave(kWidth * kInner, 0.4).view({kWidth, kInner}).requires_grad_();
  Tensor down = shifted_wave(kWidth * kInner, 0.2).view({kInner, kWidth}).requires_grad_();
  Tensor operator()(const Tensor& x) const { return rg::mm(rg::gelu(rg::mm(x, up)), down); }
};

Tensor rows() { return shifted_wave(kRows * kWidth, 0.7).view({kRows, kWidth}).requires_grad_(); }

double distance(const Tensor& a, const Tensor& b) {
  return rg::max(rg::abs(rg::sub(a, b))).item<double>() / rg::max(rg::abs(b)).item<double>();
}

}  // namespace

TEST_CASE("checkpoint_rows: gradients of the whole, in the memory of a piece") {
  in_modes([](const auto& backward) {
    const Mlp whole, pieces;
    const Tensor x = rows(), z = rows();
    const int64_t all = added_by([&] { backward(rg::sum(whole(x))); });
    CHECK(all > 2 * kInnerBytes);
    Calls calls;
    Tensor y;
    const int64_t part = added_by([&] {
      y = rg::checkpoint_rows(pieces, z, 32);
      backward(rg::sum(y));
    });
    CHECK(calls.recomputations == 7);  // six pieces of 32 rows, one of 8
    CHECK(part < kInnerBytes);
    CHECK(distance(y, whole(x)) < 1e-6);
    CHECK(distance(z.grad(), x.grad()) < 1e-6);
    CHECK(distance(pieces.up.grad(), whole.up.grad()) < 1e-5);
    CHECK(distance(pieces.down.grad(), whole.down.grad()) < 1e-5);
  });
}

TEST_CASE("checkpoint_rows: recorded functions give the bits of eager") {
  const Mlp mlp;
  const Tensor x = rows();
  const auto loss = [&](const Tensor& in) { return rg::sum(rg::checkpoint_rows(mlp, in, 64)); };
  loss(x).backward();
  const Tensor want = x.grad(), want_up = mlp.up.grad();
  const auto function = rg::compile(loss);
  const auto step = rg::compile_step([&](const Tensor& in) { loss(in).backward(); });
  const auto check = [&](const std::function<void()>& run) {
    x.set_grad({});
    mlp.up.set_grad({});
    run();
    CHECK(same_bits(x.grad(), want));
    CHECK(same_bits(mlp.up.grad(), want_up));
  };
  for (int i = 0; i < 2; ++i) check([&] { function(x).backward(); });
  for (int i = 0; i < 2; ++i) check([&] { step(x); });
}

TEST_CASE("checkpoint_rows: several inputs, integers among them, and no rows") {
  const Tensor x = shifted_wave(30).view({5, 6}).requires_grad_(), scale = shifted_wave(5).requires_grad_();
  const Tensor index = rg::tensor({0, 5, 2, 2, 1}).view({5, 1});
  const auto f = [](const Tensors& in) { return rg::mul(rg::gather(in[0], 1, in[1]).squeeze(1), in[2]); };
  const Tensor want = f({x, index, scale}), got = rg::checkpoint_rows(f, Tensors{x, index, scale}, 2);
  CHECK(same_bits(got, want));
  const Tensors a = rg::autograd::grad({rg::sum(want)}, {x, scale}),
                b = rg::autograd::grad({rg::sum(got)}, {x, scale});
  CHECK(same_bits(a[0], b[0]));
  CHECK(same_bits(a[1], b[1]));
  const Tensor none = rg::zeros({0, 6}).requires_grad_();
  const Tensor y = rg::checkpoint_rows([](const Tensor& in) { return rg::sum(in, 1); }, none, 4);
  CHECK(y.sizes() == rg::IntArray{0});
  rg::sum(y).backward();
  CHECK(none.grad().sizes() == rg::IntArray{0, 6});
}

TEST_CASE("checkpoint_rows: derivatives of any order and forward mode") {
  const Tensor w = shifted_wave(12, 1, rg::kFloat64).view({4, 3}).requires_grad_();
  const Tensor x = shifted_wave(20, 0.5, rg::kFloat64).view({5, 4}).requires_grad_();
  const rg::autograd::VectorFunction f = [](const Tensors& in) {
    return Tensors{
        rg::checkpoint_rows([&](const Tensor& r) { return rg::tanh(rg::mm(r, in[1])); }, in[0], 2)};
  };
  CHECK(rg::autograd::gradcheck(f, {x, w}));
  CHECK(rg::autograd::gradgradcheck(f, {x, w}));
}

TEST_CASE("checkpoint_rows: what is refused") {
  const Tensor x = rg::ones({4, 2});
  const auto same = [](const Tensor& in) { return in; };
  CHECK(category_of([&] { rg::checkpoint_rows(same, x, 0); }) == rg::Category::bad_argument);
  CHECK(category_of([&] { rg::checkpoint_rows(same, rg::ones({}), 1); }) == rg::Category::bad_dim);
  CHECK(category_of([&] { rg::checkpoint_rows(std::function<Tensor(const Tensor&)>(), x, 1); }) ==
        rg::Category::bad_argument);
  const auto first = [](const Tensors& in) { return in[0]; };
  CHECK(category_of([&] { rg::checkpoint_rows(first, Tensors{}, 1); }) == rg::Category::bad_argument);
  CHECK(category_of([&] {
          rg::checkpoint_rows(first, Tensors{x, rg::ones({3})}, 1);
        }) == rg::Category::shape_mismatch);
  const auto total = [](const Tensor& in) { return rg::sum(in, 0); };
  CHECK(category_of([&] { rg::checkpoint_rows(total, x, 3); }) == rg::Category::bad_argument);
}
