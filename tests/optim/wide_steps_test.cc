// Steps of 16-bit parameters that are computed on float32 values: master weights, which have the bits of an optimizer of
// float32 parameters, and stochastic rounding. Eagerly and in recorded steps.
#include <catch2/catch.hpp>

#include <cmath>

#include "engine/allocator.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/optimizer_state.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::ScalarType;
using rg::Tensor;
using rg::Tensors;

namespace {

using Vector = std::vector<double>;

Tensor start(const rg::IntArray& size, ScalarType dtype) {
  Vector values;
  int64_t n = 1;
  for (const int64_t s : size) n *= s;
  for (int64_t i = 0; i < n; ++i) values.push_back(std::cos(0.9 * static_cast<double>(i)));
  return rg::tensor(values, size, {rg::kFloat64}).to(rg::kBFloat16).to(dtype).requires_grad_();
}

// Numbers that bfloat16 represents.
Tensor gradient(const Tensor& p, int t) {
  Vector values;
  for (int64_t i = 0; i < p.numel(); ++i)
    values.push_back(std::sin(1.3 * t + 0.7 * static_cast<double>(i)) + 0.2);
  return rg::tensor(values, p.sizes(), {rg::kFloat64}).to(rg::kBFloat16);
}

template <class Optimizer>
Optimizer make(const Tensors& params, const typename Optimizer::Options& options, bool master_weights,
               bool stochastic_rounding = false) {
  return Optimizer({{.params = params,
                     .options = options,
                     .master_weights = master_weights,
                     .stochastic_rounding = stochastic_rounding}});
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.to_vector() == b.to_vector();
}

// A step of the gradients that it gets, one for each parameter.
auto step_of(optim::Optimizer& optimizer, const Tensors& params) {
  return [&optimizer, params](const Tensors& gradients) {
    for (size_t i = 0; i < params.size(); ++i) params[i].set_grad(gradients[i]);
    optimizer.step();
    optimizer.zero_grad();
    return Tensors{};
  };
}

template <class Optimizer>
void check_masters(const typename Optimizer::Options& options, ScalarType dtype = rg::kBFloat16,
                   int captures = 1) {
  const std::vector<rg::IntArray> sizes = {{8}, {700}, {6, 5}, {}};
  Tensors narrow, recorded, wide;
  for (const rg::IntArray& size : sizes) {
    narrow.push_back(start(size, dtype));
    recorded.push_back(start(size, dtype));
    wide.push_back(start(size, rg::kFloat32));
  }
  Optimizer of_narrow = make<Optimizer>(narrow, options, true),
            of_recorded = make<Optimizer>(recorded, options, true), of_wide(wide, options);
  const auto eager = step_of(of_narrow, narrow);
  auto step = rg::compile_step(step_of(of_recorded, recorded));
  for (int t = 1; t <= 6; ++t) {
    Tensors gradients;
    for (size_t i = 0; i < sizes.size(); ++i) {
      gradients.push_back(gradient(narrow[i], t).to(dtype));
      wide[i].set_grad(gradients[i].to(rg::kFloat32));
    }
    of_wide.step();
    eager(gradients);
    step(gradients);
    const rg::StateDict of_masters = rg::state_of(of_narrow), expected = rg::state_of(of_wide),
                        runs = rg::state_of(of_recorded);
    INFO("step " << t << " of " << name(dtype));
    for (size_t i = 0; i < sizes.size(); ++i) {
      const std::string key = std::to_string(i) + ".master_param";
      CHECK(same(of_masters.at(key), wide[i].detach()));
      CHECK(same(narrow[i].detach(), wide[i].detach().to(dtype)));
      CHECK(same(recorded[i].detach(), narrow[i].detach()));
      CHECK(same(runs.at(key), of_masters.at(key)));
    }
    for (const auto& [key, value] : expected) CHECK(same(of_masters.at(key), value));
    for (const auto& [key, value] : expected) CHECK(same(runs.at(key), value));
  }
  CHECK(step.stats().captures == captures);
}

}  // namespace

TEST_CASE("master weights have the bits of float32 parameters, with every kind of rule") {
  for (const ScalarType dtype : {rg::kBFloat16, rg::kHalf}) {
    check_masters<optim::SGD>({.lr = 0.1, .momentum = 0.9, .nesterov = true}, dtype);
    check_masters<optim::SGD>({.lr = 0.1}, dtype);
    check_masters<optim::AdamW>({.lr = 0.01, .amsgrad = true}, dtype);
    check_masters<optim::Adafactor>({.lr = 0.1}, dtype);
  }
  check_masters<optim::Adam>({.lr = 0.01, .weight_decay = 0.1});
  check_masters<optim::Adamax>({});
  check_masters<optim::NAdam>({});
  check_masters<optim::RAdam>({});
  check_masters<optim::Adagrad>({});
  check_masters<optim::Adadelta>({});
  check_masters<optim::RMSprop>({.momentum = 0.9, .centered = true});
  check_masters<optim::Rprop>({});
  check_masters<optim::ASGD>({});
  check_masters<optim::Lion>({});
  check_masters<optim::AdEMAMix>({});
  check_masters<optim::Muon>({.lr = 0.02});
}

TEST_CASE("master weights have the bits of float32 parameters where a step has several recordings") {
  check_masters<optim::SOAP>({.precondition_frequency = 2}, rg::kBFloat16, 3);
}

TEST_CASE("what else writes a parameter is followed by its master values") {
  const Tensor eager = start({600}, rg::kBFloat16), recorded = start({600}, rg::kBFloat16);
  optim::AdamW of_eager = make<optim::AdamW>({eager}, {.lr = 0.01}, true),
               of_recorded = make<optim::AdamW>({recorded}, {.lr = 0.01}, true);
  // The end of each step writes some elements.
  const auto body = [](const Tensor& p, optim::Optimizer& optimizer) {
    return [&](const Tensor& g) {
      p.set_grad(g);
      optimizer.step();
      const rg::NoGradGuard no_grad;
      p.copy_(rg::clamp(p, -0.9, 0.9));
    };
  };
  const auto step = body(eager, of_eager);
  auto recorded_step = rg::compile_step(body(recorded, of_recorded));
  for (int t = 1; t <= 5; ++t) {
    if (t == 4)  // as loading a checkpoint of the model does
      for (const Tensor& p : {eager, recorded}) {
        const rg::NoGradGuard no_grad;
        rg::slice(p, 0, 0, 10).fill_(0.25);
      }
    const Vector before = eager.to_vector(),
                 masters = rg::state_of(of_eager).count("0.master_param")
                               ? rg::state_of(of_eager).at("0.master_param").to_vector()
                               : before;
    const Tensor g = gradient(eager, t);
    step(g);
    recorded_step(g);
    CHECK(same(eager.detach(), recorded.detach()));
    const Tensor master = rg::state_of(of_eager).at("0.master_param");
    CHECK(same(master, rg::state_of(of_recorded).at("0.master_param")));
    // A step of AdamW moves an element by little, from the written value rather than from the old master's.
    int written = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      CHECK(std::abs(master.to_vector()[i] - before[i]) < 0.02);
      written += std::abs(masters[i] - before[i]) > 0.005;
    }
    if (t > 1) CHECK(written > 10);
  }
  CHECK(recorded_step.stats().captures == 1);
}

TEST_CASE("changes below the last bit add up") {
  const int64_t n = 4000;
  // bfloat16 steps by 2^-7 at 1: 100 changes of 2^-10 are 12.5 of these steps.
  for (const bool is_recorded : {false, true}) {
    rg::manual_seed(11);
    const Tensor plain = rg::ones({n}, {rg::kBFloat16, rg::kCPU, true}),
                 exact = rg::clone(plain.detach()).requires_grad_(),
                 random = rg::clone(plain.detach()).requires_grad_();
    const optim::SGDOptions options{.lr = 0x1p-10};
    optim::SGD of_plain({plain}, options);
    optim::SGD of_exact = make<optim::SGD>({exact}, options, true),
               of_random = make<optim::SGD>({random}, options, false, true);
    const Tensor down = rg::full({n}, -1, {rg::kBFloat16});
    const auto body = [&](const Tensor& g) {
      for (const Tensor& p : {plain, exact, random}) p.set_grad(g);
      of_plain.step();
      of_exact.step();
      of_random.step();
    };
    auto step = rg::compile_step(body);
    for (int t = 0; t < 100; ++t) is_recorded ? void(step(down)) : body(down);
    CHECK(plain.to_vector() == Vector(n, 1));
    CHECK(exact.to_vector() == Vector(n, 1 + 12 * 0x1p-7));  // a tie, to even
    const double mean = rg::mean(random.detach().to(rg::kFloat64)).item<double>();
    // Each of 100 steps rounds with a deviation of at most 2^-8: the mean of 4000 deviates by 2^-8 * 10 / 63.
    CHECK(mean == Approx(1 + 100 * 0x1p-10).margin(0.002));
    if (is_recorded) CHECK(step.stats().captures == 1);
  }
}

TEST_CASE("steps that are rounded at random have the bits of the seed, eagerly and recorded") {
  const auto train = [](int seed, bool is_recorded) {
    rg::manual_seed(seed);
    const Tensors params = {start({300}, rg::kBFloat16), start({20, 7}, rg::kBFloat16)};
    optim::AdamW optimizer = make<optim::AdamW>(params, {.lr = 1e-3}, false, true);
    const auto body = step_of(optimizer, params);
    auto step = rg::compile_step(body);
    for (int t = 1; t <= 5; ++t) {
      const Tensors gradients = {gradient(params[0], t), gradient(params[1], t)};
      is_recorded ? void(step(gradients)) : void(body(gradients));
    }
    for (const auto& [key, value] : rg::state_of(optimizer))
      if (!key.ends_with(".step")) CHECK(value.dtype() == rg::kFloat32);
    Vector all = params[0].to_vector();
    for (const double v : params[1].to_vector()) all.push_back(v);
    return all;
  };
  CHECK(train(1, false) == train(1, false));
  CHECK(train(1, false) == train(1, true));
  CHECK(train(1, false) != train(2, false));
}

TEST_CASE("float32 values of stochastic rounding exist for one parameter at a time") {
  Tensors params;
  for (int i = 0; i < 8; ++i) {
    params.push_back(rg::zeros({100'000}, {rg::kBFloat16, rg::kCPU, true}));
    params.back().set_grad(rg::ones({100'000}, {rg::kBFloat16}));
  }
  for (const bool is_recorded : {false, true}) {
    optim::SGD optimizer = make<optim::SGD>(params, {.lr = 0.1}, false, true);
    auto recorded = rg::compile_step([&] { optimizer.step(); });
    const auto step = [&] { is_recorded ? void(recorded()) : optimizer.step(); };
    step();
    const int64_t live = rg::memory::stats().live_bytes;
    rg::memory::reset_peak();
    step();
    const int64_t more = rg::memory::stats().peak_bytes - live;
    CHECK(more >= 400'000);
    CHECK(more < 450'000);
  }
}

TEST_CASE("master weights are saved, and training goes on from them with the same bits") {
  const Tensor p = start({40}, rg::kBFloat16), q = start({40}, rg::kBFloat16);
  optim::AdamW first = make<optim::AdamW>({p}, {.lr = 0.01}, true),
               second = make<optim::AdamW>({q}, {.lr = 0.01}, true);
  const auto run = [](const Tensor& x, optim::Optimizer& optimizer, int from, int to) {
    for (int t = from; t < to; ++t) step_of(optimizer, {x})({gradient(x, t)});
  };
  run(p, first, 0, 4);
  {
    const rg::NoGradGuard no_grad;
    q.copy_(p);
  }
  second.load_state_dict(first.state_dict());
  run(p, first, 4, 8);
  run(q, second, 4, 8);
  CHECK(p.to_vector() == q.to_vector());
  CHECK(same(rg::state_of(first).at("0.master_param"), rg::state_of(second).at("0.master_param")));

  optim::AdamW copy = first;
  run(p, first, 8, 9);
  CHECK_FALSE(same(rg::state_of(first).at("0.master_param"), rg::state_of(copy).at("0.master_param")));
  // A state without master values begins with those of the parameters; one with them belongs to such a group.
  optim::AdamW plain({q}, {.lr = 0.01});
  CHECK(category_of([&] { plain.load_state_dict(first.state_dict()); }) == Category::dtype_mismatch);
  rg::StateDict without = first.state_dict();
  without.erase("0.master_param");
  second.load_state_dict(without);
  run(q, second, 9, 10);
  CHECK(same(q.detach(), rg::state_of(second).at("0.master_param").to(rg::kBFloat16)));
}

TEST_CASE("a group may change its mode between steps") {
  const Tensor p = start({40}, rg::kBFloat16);
  optim::AdamW optimizer({p}, {.lr = 0.01});
  const auto body = step_of(optimizer, {p});
  auto step = rg::compile_step(body);
  step(Tensors{gradient(p, 1)});
  CHECK(rg::state_of(optimizer).at("0.exp_avg").dtype() == rg::kBFloat16);
  const Vector moments = rg::state_of(optimizer).at("0.exp_avg").to_vector();
  optimizer.param_groups()[0].master_weights = true;
  p.set_grad({});
  step(Tensors{gradient(p, 2)});
  CHECK(step.stats().captures == 2);
  CHECK(rg::state_of(optimizer).at("0.exp_avg").dtype() == rg::kFloat32);
  const Tensor g = gradient(p, 2);
  for (size_t i = 0; i < moments.size(); ++i)
    CHECK(rg::state_of(optimizer).at("0.exp_avg").to_vector()[i] ==
          Approx(moments[i] + 0.1 * (g.to_vector()[i] - moments[i])).epsilon(1e-5));
  optimizer.param_groups()[0].master_weights = false;
  step(Tensors{gradient(p, 3)});
  CHECK_FALSE(rg::state_of(optimizer).contains("0.master_param"));
  CHECK(rg::state_of(optimizer).at("0.exp_avg").dtype() == rg::kBFloat16);
}

TEST_CASE("loss scaling of float16 parameters with master weights") {
  const Tensor p = rg::ones({50}, {rg::kHalf, rg::kCPU, true});
  optim::AdamW optimizer = make<optim::AdamW>({p}, {.lr = 0.01}, true);
  optim::GradScaler scaler({.init_scale = 1024});
  auto step = rg::compile_step([&](const Tensor& g) {
    scaler.scale(rg::sum(p.to(rg::kFloat32) * g)).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
  });
  const Tensor small = rg::full({50}, 1e-4, {rg::kFloat32}), infinite = rg::full({50}, 1e30, {rg::kFloat32});
  step(small);
  const Vector before = p.to_vector(), masters = rg::state_of(optimizer).at("0.master_param").to_vector();
  CHECK(before != Vector(50, 1));
  step(infinite);
  CHECK(p.to_vector() == before);
  CHECK(rg::state_of(optimizer).at("0.master_param").to_vector() == masters);
  step(small);
  CHECK(p.to_vector() != before);
}

TEST_CASE("modes that exclude each other, and dtypes that they do not support, are refused") {
  const Tensor p = start({4}, rg::kBFloat16), h = start({4}, rg::kHalf), f = start({4}, rg::kFloat32);
  CHECK(category_of([&] { make<optim::SGD>({p}, {}, true, true); }) == Category::bad_argument);
  CHECK(category_of([&] { make<optim::SGD>({h}, {}, false, true); }) == Category::dtype_mismatch);
  CHECK(category_of([&] {
          optim::SGD({{.params = {p}, .options = {}, .differentiable = true, .master_weights = true}});
        }) == Category::bad_argument);
  // Wider parameters are updated as without them.
  optim::SGD plain({f}, {.lr = 0.1}), other = make<optim::SGD>({f}, {.lr = 0.1}, true);
  f.set_grad(rg::ones({4}));
  other.step();
  CHECK_FALSE(rg::state_of(other).contains("0.master_param"));
}
