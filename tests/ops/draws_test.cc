// Draws beyond those of tests/ops/random_test.cc: into tensors (uniform_, normal_, exponential_,
// bernoulli_, random_) and with parameters that are tensors. Distributions are compared with what they
// should be by moments and by chi-square at fixed seeds (tests/ops/distributions.h); further: threads,
// layouts, gradients, the version, errors of all functions that draw. Choices and dropouts:
// choices_test.cc, dropouts_test.cc.
#include "ops/all_ops.h"
#include "ops/views.h"
#include "retrograd/retrograd.h"
#include "tests/ops/distributions.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using namespace testing;

TEST_CASE("uniform_, normal_ and exponential_ have their moments and cells") {
  manual_seed(3);
  for (ScalarType dtype : kFloats) {
    INFO(name(dtype));
    const Tensor x = empty({100'000}, {dtype});
    const Moments u = moments(x.uniform_(-2, 4));
    CHECK(u.mean == Approx(1).margin(0.05));
    CHECK(u.variance == Approx(3).margin(0.05));
    if (dtype == kFloat64 || dtype == kFloat32)
      CHECK(fits(histogram(x, 12, -2, 0.5), std::vector<double>(12, 1 / 12.0)));
    const Moments n = moments(x.normal_(5, 2));
    CHECK(n.mean == Approx(5).margin(0.05));
    CHECK(n.variance == Approx(4).margin(0.1));
    const Moments e = moments(x.exponential_(0.5));
    CHECK(e.mean == Approx(2).margin(0.05));
    CHECK(e.variance == Approx(4).margin(0.2));
  }
  const Tensor e = empty({200'000}).exponential_(2);
  std::vector<double> shares;
  for (int i = 0; i < 6; ++i) shares.push_back(std::exp(-i) - std::exp(-i - 1));
  std::vector<double> counts(6);
  double seen = 0;
  for (double v : e.to_vector())
    if (v < 3) {
      ++counts[static_cast<size_t>(v * 2)];
      ++seen;
    }
  for (double& s : shares) s *= 200'000 / seen;
  CHECK(fits(counts, shares));
}

TEST_CASE("a uniform draw never gives its end") {
  manual_seed(1);
  for (ScalarType dtype : kFloats) {
    const Tensor x = empty({50'000}, {dtype}).uniform_(1, 1.0 + 1.0 / 128);
    for (double v : x.to_vector()) REQUIRE((v >= 1 && v < 1.0 + 1.0 / 128));
  }
  CHECK(empty({3}).uniform_(2, 2).to_vector() == std::vector<double>(3, 2));
}

TEST_CASE("bernoulli_ and random_ in every dtype") {
  manual_seed(5);
  for (ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kByte, kBool}) {
    INFO(name(dtype));
    const Tensor x = empty({20'000}, {dtype});
    CHECK(fits(histogram(x.bernoulli_(0.3), 2), {0.7, 0.3}));
    CHECK(fits(histogram(x.random_(0, dtype == kBool ? 2 : 12), dtype == kBool ? 2 : 12),
               std::vector<double>(dtype == kBool ? 2 : 12, dtype == kBool ? 0.5 : 1 / 12.0)));
    x.random_();
    const Moments m = moments(to(x, kFloat64));
    const double end = dtype == kFloat64   ? 0x1p53
                       : dtype == kFloat32 ? 0x1p24
                       : dtype == kFloat16 ? 0x1p11
                       : dtype == kInt64   ? 0x1p63
                       : dtype == kInt32   ? 0x1p31
                       : dtype == kBool    ? 2
                                           : 0x1p8;
    CHECK(m.mean == Approx(end / 2 - 0.5).epsilon(0.02));
  }
  CHECK(fits(histogram(empty({1000}, {kByte}).random_(4), 4), std::vector<double>(4, 0.25)));
  const Tensor p = tensor({0, 0.25, 1}), x = empty({4000, 3}, {kInt64});
  const std::vector<double> means = sum(x.bernoulli_(p), {0}).to_vector();
  CHECK((means[0] == 0 && means[2] == 4000));
  CHECK(means[1] == Approx(1000).margin(150));
}

TEST_CASE("draws in place: same numbers whatever the strides, the threads and the gradient mode") {
  const auto draw = [](const Tensor& x, bool recorded) {
    const AutoGradMode mode(recorded);
    manual_seed(4);
    std::vector<double> all;
    x.uniform_(-1, 1);
    for (double v : x.to_vector()) all.push_back(v);
    for (double v : x.normal_().to_vector()) all.push_back(v);
    for (double v : x.exponential_().to_vector()) all.push_back(v);
    for (double v : x.bernoulli_().to_vector()) all.push_back(v);
    for (double v : x.random_(7).to_vector()) all.push_back(v);
    return all;
  };
  const int before = cpu::get_num_threads();
  const std::vector<double> want = draw(empty({300, 200}), false);
  for (int threads : {1, 4})
    for (bool recorded : {false, true}) {
      cpu::set_num_threads(threads);
      CHECK(draw(empty({300, 200}), recorded) == want);
      CHECK(draw(empty({200, 300}).t(), recorded) == want);
      CHECK(draw(slice(empty({300, 400}), 1, 0, std::nullopt, 2), recorded) == want);
    }
  cpu::set_num_threads(before);
}

TEST_CASE("draws in place raise the version and give the old value a gradient of zeros") {
  const Tensor x = ones({4}).requires_grad_(), p = full({4}, 0.5).requires_grad_();
  const std::function<void(const Tensor&)> draws[] = {
      [](const Tensor& y) { y.uniform_(); },     [](const Tensor& y) { y.normal_(); },
      [](const Tensor& y) { y.exponential_(); }, [](const Tensor& y) { y.bernoulli_(0.5); },
      [](const Tensor& y) { y.random_(3); },     [&](const Tensor& y) { y.bernoulli_(p); }};
  for (const auto& draw : draws) {
    const Tensor y = x * 2.0;
    const uint32_t version = y.version();
    draw(y);
    CHECK(y.version() == version + 1);
    CHECK(autograd::grad({sum(y * 3.0)}, {x})[0].to_vector() == std::vector<double>(4, 0));
    CHECK(category_of([&] { draw(x); }) == Category::leaf_inplace);
    CHECK(category_of([&] { draw(expand(ones({1}), {4})); }) == Category::overlapping_write);
    const NoGradGuard no_grad;
    draw(x.detach());
  }
  const Tensor y = x * 2.0;
  y.bernoulli_(p);
  CHECK(autograd::grad({sum(y)}, {p})[0].to_vector() == std::vector<double>(4, 0));
  const Tensor z = x * 2.0, saved = z * z;
  z.normal_();
  CHECK(category_of([&] { sum(saved).backward(); }) == Category::version_mismatch);
}

TEST_CASE("normal of tensors and numbers") {
  manual_seed(6);
  const Tensor mean = tensor({-5, 5}, {kFloat64}).view({2, 1}), std = full({1, 100'000}, 3.0);
  const Tensor x = normal(mean, std);
  CHECK(x.sizes() == IntArray{2, 100'000});
  CHECK(x.dtype() == kFloat64);
  for (int64_t i : {0, 1}) {
    const Moments m = moments(select(x, 0, i));
    CHECK(m.mean == Approx(i ? 5 : -5).margin(0.05));
    CHECK(m.variance == Approx(9).margin(0.15));
  }
  CHECK(moments(normal(1.0, full({50'000}, 2.0))).variance == Approx(4).margin(0.1));
  CHECK(moments(normal(zeros({50'000}, {kHalf}), 2.0)).variance == Approx(4).margin(0.1));
  CHECK(moments(normal(1.0, 2.0, {50'000})).mean == Approx(1).margin(0.05));
  CHECK(normal(full({3}, 7.0), 0.0).to_vector() == std::vector<double>(3, 7));
  const Tensor m = zeros({3, 1}).requires_grad_(), s = ones({2}).requires_grad_();
  for (const Tensor& g : autograd::grad({sum(normal(m, s))}, {m, s}))
    for (double v : g.to_vector()) CHECK(v == 0);
  const autograd::JvpResult r =
      autograd::jvp([](const Tensors& in) { return Tensors{normal(in[0], 1.0)}; }, {zeros({3})}, {ones({3})});
  CHECK(r.tangents[0].to_vector() == std::vector<double>(3, 0));
}

TEST_CASE("stochastic rounding") {
  manual_seed(9);
  // Between the neighbours 1 and 1 + 2^-7, at a quarter of the way.
  const Tensor quarter = full({40'000}, 1 + 0x1p-9, {kFloat32});
  const Tensor rounded = stochastic_round(quarter);
  CHECK(rounded.dtype() == kBFloat16);
  for (const double v : rounded.to_vector()) CHECK((v == 1 || v == 1 + 0x1p-7));
  CHECK(mean(rounded.to(kFloat64)).item<double>() == Approx(1 + 0x1p-9).margin(0x1p-7 * 0.01));
  CHECK(mean(stochastic_round(-quarter).to(kFloat64)).item<double>() ==
        Approx(-1 - 0x1p-9).margin(0x1p-7 * 0.01));
  // What bfloat16 represents stays, and so does what is not finite.
  const std::vector<double> exact = {0, -0.0, 1, -3.5, 0x1p-133, INFINITY, -INFINITY, 0x1.fep127};
  CHECK(stochastic_round(tensor(exact, {8}, {kFloat32})).to_vector() == exact);
  CHECK(std::isnan(stochastic_round(full({}, NAN, {kFloat32})).item<double>()));
  // Element i depends on (seed, offset, i): not on the layout.
  const Tensor x = rand({50, 70});
  manual_seed(3);
  const std::vector<double> want = stochastic_round(x).to_vector();
  manual_seed(3);
  CHECK(stochastic_round(x.t().contiguous().t()).to_vector() == want);
  CHECK(stochastic_round(x).to_vector() != want);
  manual_seed(3);
  const Tensor into = zeros({70, 50}, {kBFloat16}).t();
  fill_stochastic_round(into, x);
  CHECK(into.to_vector() == want);
  CHECK(category_of([&] { stochastic_round(x.to(kFloat64)); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { fill_stochastic_round(x, x); }) == Category::bad_argument);
}

TEST_CASE("draws like a tensor") {
  const Tensor x = zeros({2, 3}, {kFloat64}).t();
  CHECK(rand_like(x).dtype() == kFloat64);
  CHECK(randn_like(x, kHalf).sizes() == IntArray{3, 2});
  CHECK(randn_like(x, kHalf).dtype() == kHalf);
  CHECK(randint_like(x, 5, 6).to_vector() == std::vector<double>(6, 5));
  CHECK(randint_like(x, 1, kBool).to_vector() == std::vector<double>(6, 0));
  CHECK(randint(1, {4}, {kFloat32}).to_vector() == std::vector<double>(4, 0));
  manual_seed(8);
  const Tensor b = bernoulli(zeros({9000}, {kInt32}), 0.25);
  CHECK(b.dtype() == kInt32);
  CHECK(fits(histogram(b, 2), {0.75, 0.25}));
  CHECK(category_of([] { rand_like(zeros({2}, {kInt64})); }) == Category::dtype_mismatch);
}

TEST_CASE("parameters outside their domain are refused") {
  const Tensor x = ones({4}), ints = ones({4}, {kInt64});
  const auto refused = [](const auto& f, Category want = Category::bad_argument) {
    CHECK(category_of(f) == want);
  };
  refused([&] { x.uniform_(2, 1); });
  refused([&] { x.uniform_(0, INFINITY); });
  refused([&] { x.uniform_(NAN, 1); });
  refused([&] { to(x, kHalf).uniform_(0, 70000); });
  refused([&] { x.normal_(0, -1); });
  refused([&] { x.exponential_(0); });
  refused([&] { x.exponential_(NAN); });
  refused([&] { x.bernoulli_(1.5); });
  refused([&] { x.bernoulli_(x * 2.0); });
  refused([&] { x.random_(0); });
  refused([&] { x.random_(3, 3); });
  refused([&] { ones({2}, {kByte}).random_(0, 300); });
  refused([&] { ones({2}, {kBool}).random_(3); });
  refused([&] { normal(0.0, -1.0, {2}); });
  refused([&] { normal(x, x - 2.0); });
  refused([&] { normal(0.0, 1.0); });
  refused([&] { bernoulli(x, -0.1); });
  refused([&] { multinomial(x - 2.0, 1); });
  refused([&] { multinomial(zeros({3}), 1); });
  refused([&] { multinomial(tensor({1.0, 1, 0, 0}).view({2, 2}), 1); });
  refused([&] { multinomial(tensor({1, INFINITY}), 1); });
  refused([&] { multinomial(tensor({1, NAN}), 1); });
  refused([&] { multinomial(x, 0); });
  refused([&] { multinomial(x, 5); });
  refused([&] { multinomial(tensor({0.0, 1, 0}), 2); });
  refused([&] { multinomial(ones({2, 0}), 1, true); });
  refused([&] { multinomial(ones({2, 2, 2}), 1); }, Category::bad_dim);
  refused([&] { multinomial(ones({}), 1); }, Category::bad_dim);
  refused([&] { multinomial(ints, 1); }, Category::dtype_mismatch);
  refused([&] { ints.uniform_(); }, Category::dtype_mismatch);
  refused([&] { ints.normal_(); }, Category::dtype_mismatch);
  refused([&] { ints.exponential_(); }, Category::dtype_mismatch);
  refused([&] { normal(ints, 1.0); }, Category::dtype_mismatch);
  refused([&] { alpha_dropout(ints); }, Category::dtype_mismatch);
  refused([&] { x.bernoulli_(ones({2, 4})); }, Category::shape_mismatch);
  refused([&] { normal(ones({2}), ones({3})); }, Category::shape_mismatch);
}

TEST_CASE("the draws are found by their names") {
  for (const char* name : {"exponential", "bernoulli_number", "normal_around", "randperm", "multinomial"})
    CHECK(ops::find_op(name) != nullptr);
}

}  // namespace
}  // namespace retrograd
