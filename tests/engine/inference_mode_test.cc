// Inference mode: which tensors belong to it, what may be done with them outside, and in recorded functions.
#include "engine/grad_mode.h"

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
using rg::InferenceMode;
using rg::Tensor;
using Values = std::vector<double>;

namespace {

Tensor inference(std::vector<double> values) {
  const InferenceMode mode;
  return rg::tensor(values, {static_cast<int64_t>(values.size())}).clone();
}

Tensor leaf() { return rg::ones({2}).requires_grad_(); }

}  // namespace

TEST_CASE("the mode switches gradients off, and ends with its guard") {
  CHECK_FALSE(InferenceMode::is_enabled());
  const Tensor w = leaf();
  {
    const InferenceMode mode;
    CHECK(InferenceMode::is_enabled());
    CHECK_FALSE(rg::GradMode::is_enabled());
    CHECK_FALSE((w * 2.0).requires_grad());
    {
      const rg::EnableGradGuard on;  // has no effect inside
      CHECK_FALSE(rg::GradMode::is_enabled());
      CHECK(InferenceMode::is_enabled());
      CHECK_FALSE((w * 2.0).requires_grad());
    }
    {
      const InferenceMode outside(false);
      CHECK_FALSE(InferenceMode::is_enabled());
      CHECK((w * 2.0).requires_grad());
    }
    rg::GradMode::set_enabled(true);
    CHECK_FALSE(rg::GradMode::is_enabled());
  }
  CHECK_FALSE(InferenceMode::is_enabled());
  CHECK(rg::GradMode::is_enabled());
}

TEST_CASE("what is computed in the mode belongs to it; views share what their memory is") {
  const Tensor w = leaf();
  Tensor made, copy, view, outer_view, detached, same;
  {
    const InferenceMode mode;
    made = w * 2.0;
    copy = rg::zeros({2});
    view = made[0];
    outer_view = w.view({2, 1});
    detached = w.detach();
    same = w.contiguous();
    CHECK(w.clone().is_inference());
    CHECK(rg::randn({2}).is_inference());
  }
  CHECK(made.is_inference());
  CHECK(copy.is_inference());
  CHECK(view.is_inference());
  CHECK_FALSE(outer_view.is_inference());
  CHECK_FALSE(detached.is_inference());
  CHECK_FALSE(same.is_inference());
  CHECK_FALSE(w.is_inference());
  CHECK(made[1].is_inference());  // a view that is made outside
  CHECK_FALSE(made.clone().is_inference());
  CHECK_FALSE((made + 1.0).is_inference());
}

TEST_CASE("tensors that no op computes belong to it, too") {
  float memory[2] = {1, 2};
  Tensor listed, counted, empty, wrapped;
  {
    const InferenceMode mode;
    listed = rg::tensor({1.0, 2.0});
    counted = rg::arange(4);
    empty = rg::empty({2});
    wrapped = rg::from_blob(memory, {2});
  }
  CHECK(listed.is_inference());
  CHECK(counted.is_inference());
  CHECK(empty.is_inference());
  CHECK(wrapped.is_inference());
  CHECK_FALSE(rg::tensor({1.0, 2.0}).is_inference());
}

TEST_CASE("a tensor of the mode cannot be saved for a backward") {
  const Tensor x = inference({3, 4}), w = leaf();
  std::string text;
  CHECK(rg::category_of([&] { w* x; }, &text) == rg::Category::bad_argument);
  CHECK(text.find("cannot be saved for a backward") != std::string::npos);
  CHECK(text.find("clone") != std::string::npos);
  const Tensor sum = w + x;  // saves nothing
  rg::sum(sum).backward();
  CHECK(w.grad().to_vector() == Values{1, 1});
  const Tensor y = w * x.clone();
  rg::sum(y).backward();
  CHECK(w.grad().to_vector() == Values{4, 5});
  CHECK((x * x).to_vector() == Values{9, 16});  // nothing wants a gradient
}

TEST_CASE("it cannot be written to, or made to require a gradient, outside") {
  const Tensor x = inference({1, 2});
  std::string text;
  CHECK(rg::category_of([&] { x.add_(1.0); }, &text) == rg::Category::bad_argument);
  CHECK(text.find("outside of the mode") != std::string::npos);
  CHECK(rg::category_of([&] { x[0].fill_(1); }) == rg::Category::bad_argument);
  {
    const rg::NoGradGuard no_grad;
    CHECK(rg::category_of([&] { x.add_(1.0); }) == rg::Category::bad_argument);
  }
  CHECK(rg::category_of([&] { x.requires_grad_(); }) == rg::Category::requires_grad_forbidden);
  CHECK(x.to_vector() == Values{1, 2});
  {
    const InferenceMode mode;
    x.add_(1.0);
    x.mul_(2.0);
    CHECK(x.requires_grad_().requires_grad());
  }
  CHECK(x.to_vector() == Values{4, 6});
}

TEST_CASE("it has no version; a normal tensor has one, also in the mode") {
  const Tensor x = inference({1});
  CHECK(rg::category_of([&] { x._version(); }) == rg::Category::bad_argument);
  const Tensor w = leaf(), y = rg::exp(w);
  {
    const InferenceMode mode;
    y.add_(1.0);
  }
  CHECK(y._version() == 1);
  CHECK(rg::category_of([&] { rg::sum(y).backward(); }) == rg::Category::version_mismatch);
}

TEST_CASE("a backward in the mode leaves what was saved as it is") {
  const Tensor w = leaf(), y = rg::sum(rg::exp(w * w));
  {
    const InferenceMode mode;
    y.backward();
  }
  CHECK_FALSE(w.is_inference());
  CHECK_FALSE(y.is_inference());
  CHECK(w.grad().is_inference());
  rg::sum(w * w).backward();
  CHECK(w.grad()[0].item<double>() == Approx(2 * std::exp(1.0) + 2));
}

TEST_CASE("recorded functions run in the mode as eager code does") {
  const Tensor w = leaf(), x = rg::tensor({3.0, 4.0});
  auto f = rg::compile([&](const Tensor& t) { return t * w; });
  for (int run = 0; run < 3; ++run) {
    const Tensor normal = f(x);
    CHECK(normal.requires_grad());
    CHECK_FALSE(normal.is_inference());
    const InferenceMode mode;
    const Tensor y = f(x);
    CHECK(y.is_inference());
    CHECK_FALSE(y.requires_grad());
    CHECK(y.to_vector() == Values{3, 4});
  }
  CHECK(f.stats().captures == 2);
  {
    const rg::NoGradGuard no_grad;
    CHECK_FALSE(f(x).is_inference());
  }
  const Tensor from_mode = inference({1, 2});
  CHECK(rg::category_of([&] { f(from_mode); }) == rg::Category::bad_argument);
}

TEST_CASE("a guard inside a recorded function marks what is computed under it") {
  auto f = rg::compile([](const Tensor& t) {
    const InferenceMode mode;
    return rg::Tensors{t * 2.0, t.view({2, 1})};
  });
  const Tensor x = rg::tensor({3.0, 4.0});
  for (int run = 0; run < 3; ++run) {
    const rg::Tensors y = f(x);
    CHECK(y[0].is_inference());
    CHECK_FALSE(y[1].is_inference());
    CHECK(y[0].to_vector() == Values{6, 8});
  }
  CHECK(f.stats().captures == 1);
}
