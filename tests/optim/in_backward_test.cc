// Optimizers in the backward: the bits of plain ones, with and without clipping, eagerly and in recorded steps; how many
// gradients exist at a time; state, options, errors, life.
#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <type_traits>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/optimizer_state.h"

namespace {

namespace rg = retrograd;
namespace optim = rg::optim;
using optim::OptimizerInBackward;
using rg::Category;
using rg::Tensor;
using rg::Tensors;

// A chain of layers; one parameter has several chunks of a norm, one is a single number, one is not used.
struct Net {
  Tensors params;
  Net() {
    const auto add = [&](const rg::Shape& shape) {
      const double at = static_cast<double>(params.size());
      params.push_back(
          rg::cos(rg::arange(rg::full(shape, 0.0).numel(), {rg::kFloat32}) * 0.7 + at).reshape(shape));
      params.back().requires_grad_();
    };
    add({8, 5000}), add({5000}), add({5000, 3}), add({3}), add({}), add({7});
  }
  Tensor loss(const Tensor& x) const {
    const Tensor h = rg::tanh(rg::matmul(x, params[0]) + params[1]);
    return rg::mean(rg::square(rg::matmul(h, params[2]) + params[3])) * params[4];
  }
};

Tensor input(int t) { return rg::cos(rg::arange(16, {rg::kFloat32}) * (0.3 + t)).reshape({2, 8}); }

bool have_no_gradients(const Tensors& params) {
  return std::ranges::none_of(params, [](const Tensor& p) { return p.grad().defined(); });
}

// Trains with the plain optimizer and with the one in the backward, which must agree after each step.
template <class Plain>
void train_both(const optim::InBackwardOptions& options, bool compiled, int64_t* captures = nullptr) {
  Net one, two;
  Plain plain(one.params);
  OptimizerInBackward<Plain> inside(two.params, {}, options);
  const auto train = [&](const Tensor& x) {
    const Tensor loss = two.loss(x);
    inside.backward(loss);
    return loss.detach();
  };
  auto step = rg::compile_step(train);
  for (int t = 0; t < 3; ++t) {
    const Tensor loss = one.loss(input(t));
    loss.backward();
    if (options.max_norm) optim::clip_grad_norm_(one.params, *options.max_norm, options.norm_type);
    plain.step();
    plain.zero_grad();
    const Tensor other = compiled ? step(input(t)) : train(input(t));
    CHECK(loss.to_vector() == other.to_vector());
    CHECK(have_no_gradients(two.params));
    rg::check_same_state(plain, inside);
  }
  if (captures) *captures = step.stats().captures;
}

template <class... Plain>
void train_each(const optim::InBackwardOptions& options, bool compiled) {
  (train_both<Plain>(options, compiled), ...);
}

}  // namespace

TEST_CASE("an optimizer in the backward has the bits of the plain one") {
  const bool compiled = GENERATE(false, true);
  INFO("compiled " << compiled);
  train_each<optim::SGD, optim::Adam, optim::AdamW, optim::NAdam, optim::Adagrad, optim::RMSprop,
             optim::Rprop, optim::ASGD, optim::Lion, optim::AdEMAMix, optim::Adafactor, optim::Muon,
             optim::AdamWScheduleFree>({}, compiled);
}

TEST_CASE("clipping by the norm of all gradients, with the bits of clip_grad_norm_ and a step") {
  const bool compiled = GENERATE(false, true);
  const double norm_type = GENERATE(2.0, 3.0, std::numeric_limits<double>::infinity());
  INFO("compiled " << compiled << ", norm_type " << norm_type);
  int64_t captures = 0;
  for (const double max_norm : {1e-3, 1e6})
    train_both<optim::AdamW>({max_norm, norm_type}, compiled, &captures);
  CHECK(captures == (compiled ? 1 : 0));
}

TEST_CASE("a norm from norms, and clipping by a norm that is known") {
  const double norm_type = GENERATE(1.0, 2.0, 3.0, std::numeric_limits<double>::infinity());
  Net one, two;
  Tensors norms;
  for (const Net* net : {&one, &two}) net->loss(input(1)).backward();
  Tensors grads(one.params.size() - 1);
  for (size_t i = 0; i < grads.size(); ++i) {
    grads[i] = one.params[i].grad();
    norms.push_back(optim::get_total_norm({grads[i]}, norm_type).tensor());
  }
  const optim::GradNorm norm = optim::get_total_norm(norms, norm_type);
  CHECK(double{norm} == optim::get_total_norm(grads, norm_type));
  CHECK(double{norm} == optim::clip_grad_norm_(two.params, 1e-2, norm_type));
  optim::clip_grads_with_norm_(one.params, 1e-2, norm);
  for (size_t i = 0; i < grads.size(); ++i)
    CHECK(one.params[i].grad().to_vector() == two.params[i].grad().to_vector());
  CHECK(double{optim::get_total_norm({})} == 0);
  CHECK(rg::category_of([&] { optim::get_total_norm(grads, 0); }) == Category::bad_argument);
  CHECK(rg::category_of([&] { optim::clip_grads_with_norm_(one.params, -1, norm); }) ==
        Category::bad_argument);
}

TEST_CASE("the norm before clipping is returned, also by a recorded step") {
  Net one, two, three;
  OptimizerInBackward<optim::SGD> inside(two.params, {}, {.max_norm = 0.5});
  OptimizerInBackward<optim::SGD> recorded(three.params, {}, {.max_norm = 0.5});
  auto step = rg::compile_step([&](const Tensor& x) { return recorded.backward(three.loss(x))->tensor(); });
  one.loss(input(0)).backward();
  const double norm = optim::clip_grad_norm_(one.params, 0.5);
  CHECK(norm > 0);
  CHECK(double{*inside.backward(two.loss(input(0)))} == norm);
  CHECK(step(input(0)).item<double>() == norm);
  OptimizerInBackward<optim::SGD> unclipped(one.params);
  CHECK(!unclipped.backward(one.loss(input(0))).has_value());
}

TEST_CASE("few gradients exist at a time, eagerly and in a recorded step, also with clipping") {
  constexpr int kLayers = 12;
  constexpr int64_t kWide = 256, kBytes = kWide * kWide * 4;
  const auto peak_of = [](bool compiled, const std::optional<optim::InBackwardOptions>& options) {
    Tensors params;
    for (int i = 0; i < kLayers; ++i)
      params.push_back(rg::full({kWide, kWide}, 1e-3 * (i + 1), {rg::kFloat32, rg::kCPU, true}));
    std::optional<OptimizerInBackward<optim::SGD>> inside;
    std::optional<optim::SGD> plain;
    if (options)
      inside.emplace(params, optim::SGDOptions{}, *options);
    else
      plain.emplace(params);
    const auto train = [&](const Tensor& x) {
      Tensor h = x;
      for (const Tensor& p : params) h = rg::matmul(h, p);
      const Tensor loss = rg::sum(h);
      if (inside)
        inside->backward(loss);
      else {
        loss.backward();
        optim::clip_grad_norm_(params, 1.0);  // keeps a recorded step from updating early, too
        plain->step();
        plain->zero_grad();
      }
    };
    auto step = rg::compile_step(train);
    const Tensor x = rg::ones({1, kWide});
    for (int t = 0; t < 2; ++t) {
      const int64_t before = rg::memory::stats().live_bytes;
      rg::memory::reset_peak();
      if (compiled)
        step(x);
      else
        train(x);
      if (t == 1) return (rg::memory::stats().peak_bytes - before) / double{kBytes};
    }
    return 0.0;
  };
  const bool compiled = GENERATE(false, true);
  INFO("compiled " << compiled);
  CHECK(peak_of(compiled, {}) >= kLayers);
  CHECK(peak_of(compiled, optim::InBackwardOptions{}) < 2.5);
  CHECK(peak_of(compiled, optim::InBackwardOptions{.max_norm = 1.0}) < 2.5);
}

TEST_CASE("groups, options, a scheduler and saved state are those of the plain optimizer") {
  Net one, two, three;
  using Groups = std::vector<optim::AdamW::Group>;
  const auto groups = [](const Net& net) {
    return Groups{{{net.params[0], net.params[1]}, {.lr = 0.1}},
                  {{net.params[2], net.params[3], net.params[4]}, {.lr = 0.2, .weight_decay = 0.3}}};
  };
  optim::AdamW plain(groups(one));
  OptimizerInBackward<optim::AdamW> inside(groups(two));
  optim::StepLR of_plain(plain, 1, 0.5), of_inside(inside, 1, 0.5);
  auto step = rg::compile_step([&](const Tensor& x) { inside.backward(two.loss(x)); });
  for (int t = 0; t < 4; ++t) {
    if (t == 2)
      for (optim::Optimizer* o :
           {static_cast<optim::Optimizer*>(&plain), static_cast<optim::Optimizer*>(&inside)})
        o->param_group(1).set_option("betas", 0.5, 1);
    one.loss(input(t)).backward();
    plain.step();
    plain.zero_grad();
    step(input(t));
    of_plain.step(), of_inside.step();
    rg::check_same_state(plain, inside);
  }
  CHECK(step.stats().captures == 1);
  CHECK(inside.param_group(0).lr() == 0.1 / 16);
  CHECK(inside.optimizer(1).param_groups()[0].options.lr == 0.1 / 16);

  for (size_t i = 0; i < 5; ++i) {
    rg::NoGradGuard no_grad;
    three.params[i].copy_(two.params[i]);
  }
  OptimizerInBackward<optim::AdamW> resumed(groups(three));
  resumed.load_state_dict(plain.state_dict());
  rg::check_same_state(plain, resumed);
  rg::StateDict wrong = plain.state_dict();
  wrong.insert_or_assign("4.exp_avg", rg::ones({2}));
  wrong.insert_or_assign("0.exp_avg", rg::zeros_like(two.params[0]));
  CHECK(rg::category_of([&] { resumed.load_state_dict(wrong); }) == Category::shape_mismatch);
  rg::check_same_state(plain, resumed);
  wrong = plain.state_dict();
  wrong.emplace("5.exp_avg", rg::ones({7}));
  CHECK(rg::category_of([&] { resumed.load_state_dict(wrong); }) == Category::bad_argument);
  resumed.backward(three.loss(input(9))), inside.backward(two.loss(input(9)));
  rg::check_same_state(inside, resumed);
}

TEST_CASE("leaves of others get their gradient once, and frozen parameters none") {
  Net net;
  OptimizerInBackward<optim::SGD> inside(Tensors{net.params[0], net.params[1], net.params[3]}, {},
                                         {.max_norm = 0.1});
  net.params[3].requires_grad_(false);
  const std::vector<double> frozen = net.params[3].to_vector();
  const Tensor expected = rg::autograd::grad({net.loss(input(0))}, {net.params[2]})[0];
  inside.backward(net.loss(input(0)));
  CHECK(net.params[2].grad().to_vector() == expected.to_vector());
  CHECK(net.params[3].to_vector() == frozen);
}

TEST_CASE("step() updates what has a gradient nevertheless") {
  Tensor p = rg::ones({2}).requires_grad_(), q = rg::ones({2}).requires_grad_();
  OptimizerInBackward<optim::SGD> inside({p, q}, {.lr = 1}, {.max_norm = 5});
  p.set_grad(rg::tensor({6.0f, 8.0f}));
  inside.step();
  CHECK(p.to_vector()[1] == Approx(1 - 4));
  CHECK(q.to_vector() == std::vector<double>{1, 1});
  CHECK(have_no_gradients({p, q}));
}

TEST_CASE("errors: what comes too late, or misses the second pass") {
  Net net;
  std::string text;
  {
    OptimizerInBackward<optim::SGD> clips(net.params, {}, {.max_norm = 1});
    CHECK(rg::category_of([&] { net.loss(input(0)).backward(); }, &text) == Category::bad_argument);
    CHECK(text.find("optimizer.backward(loss)") != std::string::npos);
    clips.zero_grad();
    net.params[0].set_grad(rg::zeros_like(net.params[0]));
    CHECK(rg::category_of([&] { clips.backward(net.loss(input(0))); }, &text) == Category::bad_argument);
    CHECK(text.find("zero_grad()") != std::string::npos);
    clips.zero_grad();
    clips.backward(net.loss(input(0)));
    CHECK(rg::category_of([&] { optim::clip_grad_norm_(net.params, 1); }, &text) == Category::bad_argument);
    CHECK(text.find("max_norm of OptimizerInBackward") != std::string::npos);
    CHECK(rg::category_of([&] { optim::clip_grad_value_(net.params, 1); }) == Category::bad_argument);
  }
  CHECK(double{optim::clip_grad_norm_(net.params, 1)} == 0);  // its hooks are removed with it
  using Inside = OptimizerInBackward<optim::SGD>;
  CHECK(rg::category_of([&] { Inside(net.params, {}, {.max_norm = -1}); }) == Category::bad_argument);
  CHECK(rg::category_of([&] { Inside(net.params, {}, {1.0, 0}); }) == Category::bad_argument);
  CHECK(rg::category_of([&] { Inside(Tensors{}); }) == Category::bad_argument);
  CHECK(rg::category_of([&] { Inside(Tensors{net.params[0], net.params[0]}); }) == Category::bad_argument);
  CHECK(rg::category_of([&] { Inside(net.params, {.lr = -1}); }) == Category::bad_argument);
  net.loss(input(0)).backward();
  CHECK(net.params[0].grad().defined());  // no hook is left
}

TEST_CASE("it may be moved, and is freed while a recorded step exists") {
  const rg::memory::Stats before = rg::memory::stats();
  auto net = std::make_unique<Net>();
  std::optional<OptimizerInBackward<optim::AdamW>> inside;
  {
    OptimizerInBackward<optim::AdamW> made(net->params);
    inside.emplace(std::move(made));
  }
  auto step = rg::compile_step([&](const Tensor& x) { net->loss(x).backward(); });
  step(input(0)), step(input(1));
  CHECK(inside->state_dict().at("0.step").item<int64_t>() == 2);
  inside.reset();
  net.reset();
  CHECK(rg::memory::stats().live_bytes - before.live_bytes < 1000);  // numbers that the recording made
  CHECK(rg::category_of([&] { step(input(2)); }) == Category::bad_argument);
  CHECK(rg::memory::stats().live_tensors == before.live_tensors);
}
