// Random ops: values come from the Philox stream element by element; moments; dropout and its gradients; refusals.
//
// Not tested here: the generator's own numbers against published vectors (tests/engine/philox_test.cc), statistical
// quality beyond moments.
#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include "engine/philox.h"
#include "ops/all_ops.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
using rg::Category;
using rg::category_of;
using rg::Tensor;

namespace {

struct Moments {
  double mean = 0, deviation = 0, min = INFINITY, max = -INFINITY;
};

Moments moments(const Tensor& x) {
  Moments m;
  const std::vector<double> v = x.to_vector();
  for (double a : v) {
    m.mean += a / static_cast<double>(v.size());
    m.min = std::min(m.min, a);
    m.max = std::max(m.max, a);
  }
  for (double a : v) m.deviation += (a - m.mean) * (a - m.mean) / static_cast<double>(v.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

}  // namespace

TEST_CASE("element i of a draw is place i of the stream, and each draw takes the next offset") {
  rg::manual_seed(11);
  const std::vector<double> a = rg::rand({50'001}).to_vector(), b = rg::randn({7}).to_vector(),
                            c = rg::rand({5}, {rg::kFloat64}).to_vector();
  for (uint64_t i : {0, 1, 2, 3, 4, 1023, 1024, 16384, 50'000}) CHECK(a[i] == rg::uniform_float(11, 0, i));
  for (uint64_t i = 0; i < 7; ++i) CHECK(b[i] == Approx(rg::normal_float(11, 1, i)).epsilon(1e-5));
  for (uint64_t i = 0; i < 5; ++i) CHECK(c[i] == rg::uniform_double(11, 2, i));
}

TEST_CASE("the same seed gives the same numbers on any number of threads") {
  const int before = rg::cpu::get_num_threads();
  std::vector<std::vector<double>> draws;
  for (int threads : {1, 4}) {
    rg::cpu::set_num_threads(threads);
    rg::manual_seed(5);
    draws.push_back(rg::dropout(rg::randn({300, 333}), 0.3).to_vector());
  }
  rg::cpu::set_num_threads(before);
  CHECK(draws[0] == draws[1]);
}

TEST_CASE("draws have the moments of their distribution") {
  rg::manual_seed(1);
  for (rg::ScalarType dtype : {rg::kFloat64, rg::kFloat32, rg::kFloat16, rg::kBFloat16}) {
    INFO(rg::name(dtype));
    const Moments u = moments(rg::rand({100'000}, {dtype})), n = moments(rg::randn({100'000}, {dtype}));
    CHECK(u.mean == Approx(0.5).margin(0.005));
    CHECK(u.deviation == Approx(1 / std::sqrt(12.0)).margin(0.005));
    CHECK((u.min >= 0 && u.max < 1));
    CHECK(n.mean == Approx(0).margin(0.02));
    CHECK(n.deviation == Approx(1).margin(0.02));
  }
  const std::vector<double> dice = rg::randint(1, 7, {6000}).to_vector();
  const std::set<double> faces(dice.begin(), dice.end());
  CHECK(faces == std::set<double>{1, 2, 3, 4, 5, 6});
  CHECK(moments(rg::randint(1, 7, {60'000})).mean == Approx(3.5).margin(0.05));
  CHECK(moments(rg::bernoulli(rg::full({100'000}, 0.3))).mean == Approx(0.3).margin(0.01));
  CHECK(rg::randint(-3, -2, {2, 2}, {rg::kInt32}).to_vector() == std::vector<double>(4, -3));
}

TEST_CASE("fills write strided memory and raise the version") {
  const Tensor whole = rg::zeros({4, 6}), part = whole.narrow(1, 1, 2);
  rg::manual_seed(2);
  rg::fill_uniform(part, 1, 2);
  CHECK(whole.version() == 1);
  CHECK(rg::count_nonzero(whole).item<int64_t>() == 8);
  rg::manual_seed(2);
  const Tensor dense = rg::empty({4, 2});
  rg::fill_uniform(dense, 1, 2);
  CHECK(dense.to_vector() == part.to_vector());
  CHECK(category_of([] { rg::fill_normal(rg::zeros({2}, {rg::kInt64}), 0, 1); }) == Category::dtype_mismatch);
}

TEST_CASE("dropout keeps the scale, and the gradient has the same mask") {
  rg::manual_seed(9);
  const Tensor x = rg::ones({200, 500}).requires_grad_();
  const Tensor y = rg::dropout(x, 0.25);
  const Moments m = moments(y);
  CHECK(m.mean == Approx(1).margin(0.01));
  CHECK((m.min == 0 && m.max == Approx(1 / 0.75)));
  rg::sum(y * 3.0).backward();
  const std::vector<double> values = y.to_vector(), grads = x.grad().to_vector();
  for (size_t i = 0; i < values.size(); i += 97) CHECK(grads[i] == Approx(3 * values[i]));
  CHECK(y.grad_fn().saved_count() == 0);
}

TEST_CASE("what is dropped follows from the place in the stream, also where 16 bits do not settle it") {
  // With this chance an element in 2^16 needs the further bits, and half of those are dropped.
  const double p = 0.25 + 0x1p-17;
  for (rg::ScalarType dtype : {rg::kFloat32, rg::kFloat64, rg::kBFloat16}) {
    rg::manual_seed(5);
    const std::vector<double> y = rg::dropout(rg::ones({200'003}, {dtype}), p).to_vector();
    const rg::Chance chance = rg::chance_of(p);
    CHECK((chance.high == 0x4000 && chance.low == 0x80000000));
    size_t wrong = 0;
    for (size_t i = 0; i < y.size(); ++i) wrong += (y[i] == 0) != rg::is_chosen(5, 0, i, chance);
    CHECK(wrong == 0);
  }
  CHECK(rg::chance_of(1).high == 0x10000);
  CHECK((rg::chance_of(0x1p-60).high == 0 && rg::chance_of(0x1p-60).low == 1));
}

TEST_CASE("dropout of a strided tensor has the mask of its contiguous copy") {
  const Tensor x = rg::randn({30, 40}).t();
  rg::manual_seed(4);
  const std::vector<double> a = rg::dropout(x, 0.5).to_vector();
  rg::manual_seed(4);
  CHECK(rg::dropout(x.contiguous(), 0.5).to_vector() == a);
}

TEST_CASE("dropout under a traced backward: eager's gradients, one capture for all draws") {
  const auto gradients = [](bool traced) {
    rg::manual_seed(8);
    rg::CompiledBackward backward = rg::compile_backward();
    std::vector<std::vector<double>> all;
    for (double p : {0.5, 0.5, 0.2}) {
      const Tensor x = rg::ones({100}).requires_grad_();
      const Tensor loss = rg::sum(rg::dropout(x * 2.0, p));
      if (traced)
        backward(loss);
      else
        loss.backward();
      all.push_back(x.grad().to_vector());
    }
    CHECK(backward.stats().captures == (traced ? 1 : 0));
    return all;
  };
  const auto eager = gradients(false);
  CHECK(eager == gradients(true));
  CHECK(eager[0] != eager[1]);
}

TEST_CASE("dropout in forward mode and to second order") {
  const Tensor x = rg::randn({50}, {rg::kFloat64}), t = rg::randn({50}, {rg::kFloat64});
  const auto f = [](const rg::Tensors& in) {
    rg::manual_seed(21);
    return rg::Tensors{rg::dropout(in[0] * in[0], 0.4)};
  };
  const rg::autograd::JvpResult r = rg::autograd::jvp(f, {x}, {t});
  const std::vector<double> y = r.outputs[0].to_vector(), dy = r.tangents[0].to_vector(), xs = x.to_vector(),
                            ts = t.to_vector();
  for (size_t i = 0; i < 50; ++i) CHECK(dy[i] == Approx(y[i] == 0 ? 0 : 2 * xs[i] * ts[i] / 0.6));

  const Tensor leaf = x.clone().requires_grad_();
  const Tensor out = f({leaf})[0];
  const Tensor g = rg::autograd::grad({rg::sum(out)}, {leaf}, {}, {}, true)[0];
  const Tensor h = rg::autograd::grad({rg::sum(g)}, {leaf})[0];
  const std::vector<double> hs = h.to_vector();
  for (size_t i = 0; i < 50; ++i) CHECK(hs[i] == Approx(y[i] == 0 ? 0 : 2 / 0.6));
}

TEST_CASE("dropout's ends: nothing dropped, everything dropped, not in training") {
  const Tensor x = rg::randn({20});
  CHECK(rg::dropout(x, 0).is_same(x));
  CHECK(rg::dropout(x, 0.5, false).is_same(x));
  CHECK(rg::dropout(x, 1).to_vector() == std::vector<double>(20, 0));
  CHECK(rg::dropout(rg::zeros({0, 3}), 0.5).sizes() == rg::IntArray{0, 3});
}

TEST_CASE("bernoulli has no smooth derivative: zeros, as in PyTorch") {
  const Tensor p = rg::full({10}, 0.5).requires_grad_();
  rg::sum(rg::bernoulli(p)).backward();
  CHECK(p.grad().to_vector() == std::vector<double>(10, 0));
}

TEST_CASE("bad arguments are refused") {
  const Tensor x = rg::ones({3});
  CHECK(category_of([&] { rg::dropout(x, 1.5); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::dropout(x, NAN); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::dropout(rg::ones({3}, {rg::kInt64}), 0.5); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { rg::bernoulli(x * 2.0); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::rand({-1}); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::rand({2}, {rg::kInt64}); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { rg::randint(3, 3, {2}); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::randint(0, 300, {2}, {rg::kByte}); }) == Category::bad_argument);
}

TEST_CASE("a traceable hook may not draw while it is recorded") {
  const Tensor x = rg::ones({4}).requires_grad_();
  const Tensor y = x * 2.0;
  y.register_hook([](const Tensor& g) { return rg::dropout(g, 0.5); }).set_traceable();
  CHECK(category_of([&] { rg::compile_backward()(rg::sum(y)); }) == Category::unsupported);
}

TEST_CASE("the random ops are found by their names") {
  for (const char* name : {"uniform", "normal", "randint", "bernoulli", "dropout"})
    CHECK(rg::ops::find_op(name) != nullptr);
}
