// Dropout of channels and with selu's limit: what is kept, moments, derivatives, in place. Plain dropout:
// tests/ops/random_test.cc.
#include "ops/all_ops.h"
#include "ops/views.h"
#include "retrograd/retrograd.h"
#include "tests/ops/distributions.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using namespace testing;

TEST_CASE("dropout of channels keeps or drops whole channels") {
  manual_seed(13);
  const Tensor x = ones({50, 40, 3, 2}).requires_grad_();
  const Tensor y = dropout2d(x, 0.25), channels = sum(y, {2, 3});
  std::vector<double> counts(2);
  for (double c : channels.to_vector()) {
    REQUIRE((c == 0 || c == Approx(6 / 0.75)));
    ++counts[c > 0];
  }
  CHECK(fits(counts, {0.25, 0.75}));
  sum(y).backward();
  CHECK(x.grad().to_vector() == y.to_vector());
  CHECK(dropout1d(ones({4, 5}), 0.5).sizes() == IntArray{4, 5});
  CHECK(sum(dropout1d(ones({4, 50}), 0.5), {1}).to_vector().size() == 4);
  for (double c : sum(dropout1d(ones({4, 50}), 0.5), {1}).to_vector()) CHECK((c == 0 || c == 100));
  CHECK(dropout3d(ones({2, 2, 2, 2}), 0.5).dim() == 4);
  CHECK(category_of([] { dropout1d(ones({3}), 0.5); }) == Category::bad_dim);
  CHECK(category_of([] { dropout3d(ones({3, 3}), 0.5); }) == Category::bad_dim);
  CHECK(category_of([] { feature_dropout(ones({3}), 0.5); }) == Category::bad_dim);
}

TEST_CASE("alpha_dropout keeps mean and variance") {
  manual_seed(14);
  for (double p : {0.1, 0.5}) {
    const Moments m = moments(alpha_dropout(randn({200'000}), p));
    CHECK(m.mean == Approx(0).margin(0.02));
    CHECK(m.variance == Approx(1).margin(0.03));
  }
  const Tensor y = feature_alpha_dropout(ones({30, 20, 4}), 0.5);
  const Tensor spread = amax(y, {2}) - amin(y, {2});
  CHECK(amax(spread).item<double>() == 0);
  CHECK(alpha_dropout(ones({5}), 1).to_vector() == std::vector<double>(5, 0));
  const std::vector<double> values = alpha_dropout(ones({500}), 0.5).to_vector();
  for (double v : values) CHECK((v == Approx(1.6655973) || v == Approx(-0.7791939)));
}

TEST_CASE("derivatives of dropouts") {
  using testing::gradcheck;
  using testing::input;
  const auto seeded = [](Tensor (*form)(Operand, double, bool)) {
    return [form](const Tensors& in) {
      manual_seed(21);
      return form(in[0] * in[0], 0.4, true);
    };
  };
  for (auto* form : {dropout, feature_dropout, dropout1d, alpha_dropout, feature_alpha_dropout})
    gradcheck(seeded(form), {input({3, 4, 2})});
}

TEST_CASE("dropouts in place") {
  const Tensor x = ones({40, 3}).requires_grad_();
  for (auto* form : {dropout_, feature_dropout_, alpha_dropout_, feature_alpha_dropout_}) {
    const Tensor y = x * 2.0;
    const uint32_t version = y.version();
    manual_seed(15);
    CHECK(&form(y, 0.5, true, SourceLocation::current()) == &y);
    CHECK(y.version() > version);
    const std::vector<double> g = autograd::grad({sum(y)}, {x})[0].to_vector(), v = y.to_vector();
    for (size_t i = 0; i < g.size(); ++i) CHECK((g[i] == 0) == (v[i] <= 0));
    const Tensor z = x * 2.0;
    form(z, 0.5, false, SourceLocation::current());
    CHECK(z.version() == version);
    CHECK(category_of([&] { form(x, 0.5, true, SourceLocation::current()); }) == Category::leaf_inplace);
    CHECK(category_of([&] { form(z, 1.5, false, SourceLocation::current()); }) == Category::bad_argument);
  }
}

}  // namespace
}  // namespace retrograd
