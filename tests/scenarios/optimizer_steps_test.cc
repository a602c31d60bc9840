// Captured steps of optimizers, by number (docs/training.md lists those that are elsewhere, and those without a meaning
// here). Each compares a recorded step with the eager one, bit for bit, and counts captures.
#include <memory>

#include "tests/errors.h"
#include "tests/optimizer_state.h"
#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
namespace optim = rg::optim;
using rg::Category;

using Make = std::unique_ptr<optim::Optimizer> (*)(const Tensors&);
template <class Optimizer>
std::unique_ptr<optim::Optimizer> make(const Tensors& params) {
  return std::make_unique<Optimizer>(params);
}
struct Named {
  const char* name;
  Make make;
};
constexpr Named kOptimizers[] = {
    {"SGD", make<optim::SGD>},           {"Adam", make<optim::Adam>},
    {"AdamW", make<optim::AdamW>},       {"Adamax", make<optim::Adamax>},
    {"NAdam", make<optim::NAdam>},       {"RAdam", make<optim::RAdam>},
    {"Adagrad", make<optim::Adagrad>},   {"Adadelta", make<optim::Adadelta>},
    {"RMSprop", make<optim::RMSprop>},   {"Rprop", make<optim::Rprop>},
    {"ASGD", make<optim::ASGD>},         {"Adafactor", make<optim::Adafactor>},
    {"Muon", make<optim::Muon>},         {"Lion", make<optim::Lion>},
    {"AdEMAMix", make<optim::AdEMAMix>}, {"AdamWScheduleFree", make<optim::AdamWScheduleFree>},
};

Tensors parameters() {
  return {rg::linspace(-1, 1, 6, {rg::kFloat64}).reshape({2, 3}).clone().requires_grad_(),
          rg::linspace(0.5, 2, 4, {rg::kFloat64}).clone().requires_grad_(),
          rg::zeros({0}, {rg::kFloat64, rg::kCPU, true}), rg::ones({}, {rg::kFloat64, rg::kCPU, true})};
}
Tensor gradient(const Tensor& p, int t) {
  return rg::cos(rg::full(p.sizes(), 0.7 * t + 0.3, {p.dtype()}) + p.detach() * 3);
}

// Gives the parameters for which `has` holds the gradients of step t, drops the others.
template <class Has>
void give(const Tensors& params, int t, Has has) {
  for (size_t i = 0; i < params.size(); ++i) params[i].set_grad(has(i) ? gradient(params[i], t) : Tensor());
}
bool all(size_t) { return true; }

// The eager and the recorded training of one optimizer.
struct Sides {
  Tensors of_eager = parameters(), of_recorded = parameters();
  std::unique_ptr<optim::Optimizer> eager, recorded;

  template <class Has>
  void give(int t, Has has) const {
    ::give(of_eager, t, has), ::give(of_recorded, t, has);
  }
  int64_t recorded_steps(const std::string& param) const {
    return recorded->state_dict().at(param + ".step").item<int64_t>();
  }
};

// Trains with each optimizer, whose two sides must agree after every step.
template <class Before, class After, class End>
void train_each(int steps, Before before, After after, End end) {
  for (const Named& named : kOptimizers) {
    INFO(named.name);
    Sides sides;
    sides.eager = named.make(sides.of_eager), sides.recorded = named.make(sides.of_recorded);
    auto step = rg::compile_step([&] { sides.recorded->step(); });
    for (int t = 1; t <= steps; ++t) {
      before(sides, t);
      sides.eager->step(), step();
      rg::check_same_state(*sides.eager, *sides.recorded);
      after(sides, t);
    }
    end(step.stats(), sides);
  }
}

}  // namespace

TEST_CASE(
    "1, 2, 20, 36: the first recorded step makes the state, later ones need no capture and count every "
    "step") {
  train_each(
      5, [](const Sides& s, int t) { s.give(t, all); },
      [](const Sides& s, int t) { CHECK(s.recorded_steps("0") == t); },
      [](const rg::FunctionCache::Stats& stats, const Sides&) {
        CHECK(stats.captures == 1);
        CHECK(stats.hits == 4);
      });
}

TEST_CASE("5: cleared state begins again, without another capture") {
  train_each(
      6,
      [](const Sides& s, int t) {
        if (t == 4) s.eager->load_state_dict({}), s.recorded->load_state_dict({});
        s.give(t, all);
      },
      [](const Sides&, int) {},
      [](const rg::FunctionCache::Stats& stats, const Sides& s) {
        CHECK(s.recorded_steps("0") == 3);
        CHECK(stats.captures == 1);
      });
}

TEST_CASE("6, 7: parameters without a gradient are passed over; a pattern that comes back is known") {
  train_each(
      6, [](const Sides& s, int t) { s.give(t, [t](size_t i) { return t != 3 && (t % 2 == 0 || i != 1); }); },
      [](const Sides&, int) {},
      [](const rg::FunctionCache::Stats& stats, const Sides& s) {
        CHECK(stats.captures == 3);
        CHECK(s.recorded_steps("0") == 5);
        CHECK(s.recorded_steps("1") == 3);
      });
}

TEST_CASE(
    "10, 11: numbers cause no capture, not even one that becomes 0 or is 0 no longer; a flag causes one") {
  const Tensors p = parameters(), q = parameters();
  optim::Adam eager(p), recorded(q);
  auto step = rg::compile_step([&] { recorded.step(); });
  for (int t = 1; t <= 8; ++t) {
    for (optim::Adam* o : {&eager, &recorded}) {
      optim::AdamOptions& options = o->param_groups()[0].options;
      options.lr = t == 2 ? 0 : 0.01 * t;
      options.betas = {0.8 + 0.01 * t, 0.99};
      options.eps = 1e-8 * t;
      options.weight_decay = t % 3 == 0 ? 0 : 0.1 * t;
      options.amsgrad = t >= 6;
    }
    give(p, t, all), give(q, t, all);
    eager.step(), step();
    rg::check_same_state(eager, recorded);
    CHECK(step.stats().captures == (t < 6 ? 1 : 2));
  }
}

TEST_CASE(
    "12, 13: groups that are added, removed and reordered are followed, and so is a parameter in another's "
    "place") {
  const Tensors p = parameters(), q = parameters();
  const auto train = [](const Tensors& params, bool compiled) {
    optim::AdamW optimizer({{{params[0]}, {.lr = 0.1}}, {{params[1]}, {.lr = 0.2}}});
    auto step = rg::compile_step([&] { optimizer.step(); });
    std::vector<int64_t> captures;
    const Tensor other = rg::full({4}, 3.0, {rg::kFloat64, rg::kCPU, true});
    for (int t = 1; t <= 10; ++t) {
      if (t == 3) optimizer.add_param_group({{params[3]}, {.lr = 0.3}});
      if (t == 5) optimizer.remove_param_group(0);
      if (t == 7) std::swap(optimizer.param_groups()[0], optimizer.param_groups()[1]);
      if (t == 9) optimizer.param_groups()[1].params[0] = other;
      give(params, t, all), give({other}, t, all);
      if (compiled)
        step();
      else
        optimizer.step();
      captures.push_back(step.stats().captures);
    }
    if (compiled) CHECK(captures == std::vector<int64_t>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
    std::vector<std::vector<double>> result = rg::values_of(params);
    result.push_back(other.to_vector());
    return result;
  };
  CHECK(train(p, false) == train(q, true));
}

TEST_CASE("14: an optimizer and parameters that are destroyed are freed although the recorded step exists") {
  for (const Named& named : kOptimizers) {
    INFO(named.name);
    const int64_t before = rg::memory::stats().live_bytes;
    std::optional<Tensors> p = parameters();
    auto optimizer = named.make(*p);
    auto step = rg::compile_step([&] { optimizer->step(); });
    give(*p, 1, all);
    step();
    optimizer.reset();
    CHECK(rg::category_of([&] { step(); }) == Category::bad_argument);
    p.reset();
    CHECK(rg::category_of([&] { step(); }) == Category::bad_argument);
    CHECK(rg::memory::stats().live_bytes == before);
  }
}

TEST_CASE("15, 16: a step of an optimizer that has gone is an error, also when another one has its address") {
  const Tensors p = parameters();
  std::optional<optim::SGD> optimizer(std::in_place, p);
  auto step = rg::compile_step([&] { optimizer->step(); });
  give(p, 1, all);
  step();
  optimizer.reset();
  optimizer.emplace(p);
  give(p, 2, all);
  CHECK(rg::category_of([&] { step(); }) == Category::bad_argument);
}

TEST_CASE(
    "19, 45: a saved state is taken over by another optimizer, PyTorch's too, and goes on with the same "
    "bits") {
  for (const Named& named : kOptimizers) {
    INFO(named.name);
    const Tensors p = parameters(), q = parameters();
    const auto whole = named.make(p), first = named.make(q);
    for (int t = 1; t <= 3; ++t) {
      give(p, t, all), give(q, t, all);
      whole->step(), first->step();
    }
    rg::StateDict state = first->state_dict();
    for (auto& [key, value] : state)
      if (key.ends_with(".step")) value = value.to(rg::kFloat32);  // PyTorch's dtype
    const auto second = named.make(q);
    second->load_state_dict(state);
    auto step = rg::compile_step([&] { second->step(); });
    for (int t = 4; t <= 6; ++t) {
      give(p, t, all), give(q, t, all);
      whole->step(), step();
      rg::check_same_state(*whole, *second);
    }
  }
}

TEST_CASE("22, 23: gradients that a step is given are named by a log, those that it plans are not") {
  std::vector<std::string> heard;
  rg::logging::set_sink([&](rg::logging::Topic, std::string_view text) { heard.emplace_back(text); });
  rg::logging::set_topics("gradients");
  const Tensors p = parameters();
  optim::SGD optimizer({p[0], p[1]});
  auto planned = rg::compile_step([&] {
    rg::sum(rg::exp(p[0]) * rg::sum(p[1])).backward();
    optimizer.step();
    optimizer.zero_grad();
  });
  planned(), planned();
  CHECK(heard.empty());
  auto given = rg::compile_step([&] { optimizer.step(); });
  for (int t = 1; t <= 3; ++t) {
    give({p[0], p[1]}, t, all);
    given();
  }
  rg::logging::set_topics("");
  rg::logging::set_sink({});
  REQUIRE(heard.size() == 1);  // once, at the recording
  CHECK(heard[0].find(".grad of a leaf, f64[2,3], used by sgd_step at") != std::string::npos);
  CHECK(heard[0].find(".grad of a leaf, f64[4], used by sgd_step at") != std::string::npos);
  CHECK(heard[0].find("optimizer_steps_test.cc") != std::string::npos);
}

TEST_CASE("24: a step finds what the function has written to a parameter before") {
  const Tensors p = parameters(), q = parameters();
  optim::AdamW eager(p), recorded(q);
  const auto train = [](const Tensors& params, optim::Optimizer& optimizer, const Tensor& by) {
    {
      rg::NoGradGuard no_grad;
      params[0].mul_(by);
    }
    rg::sum(rg::exp(params[0])).backward();
    optimizer.step();
    optimizer.zero_grad();
  };
  auto step = rg::compile_step([&](const Tensor& by) { train(q, recorded, by); });
  for (int t = 1; t <= 4; ++t) {
    const Tensor by = rg::full({}, 0.9 + 0.05 * t, {rg::kFloat64});
    train(p, eager, by), step(by);
    rg::check_same_state(eager, recorded);
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("25: a closure is called once a step, and its loss is returned") {
  const Tensors p = parameters();
  optim::SGD optimizer(p);
  int calls = 0;
  const Tensor loss = optimizer.step([&] {
    ++calls;
    const Tensor l = rg::sum(rg::square(p[0]));
    CHECK(l.requires_grad());
    l.backward();
    return l;
  });
  CHECK(calls == 1);
  CHECK(loss.item<double>() == Approx(2.8));
  CHECK(rg::state_of(optimizer).size() == 1);  // the count of steps, which PyTorch's SGD does not save
}

TEST_CASE("26, 27: gradients of several backwards, dropped or filled with zeros between steps") {
  for (const bool set_to_none : {true, false}) {
    INFO("set_to_none " << set_to_none);
    const Tensors p = parameters(), q = parameters();
    optim::AdamW eager({p[0]}), recorded({q[0]});
    const auto train = [set_to_none](const Tensor& x, optim::Optimizer& optimizer, const Tensor& t) {
      for (int i = 0; i < 3; ++i) rg::sum(rg::sin(x * (t + i))).backward();
      optimizer.step();
      optimizer.zero_grad(set_to_none);
    };
    auto step = rg::compile_step([&](const Tensor& t) { train(q[0], recorded, t); });
    for (int t = 1; t <= 5; ++t) {
      const Tensor at = rg::full({}, t, {rg::kFloat64});
      train(p[0], eager, at), step(at);
      rg::check_same_state(eager, recorded);
    }
    CHECK(step.stats().captures == (set_to_none ? 1 : 2));  // .grad exists from the second step on
  }
}

TEST_CASE("31, 33: many small parameters together have the bits of each alone") {
  for (const Named& named : kOptimizers) {
    INFO(named.name);
    Tensors together, alone;
    for (int i = 0; i < 50; ++i)
      for (Tensors* of : {&together, &alone})
        of->push_back(rg::full({i % 5}, 0.1 * i, {rg::kFloat32, rg::kCPU, true}));
    const auto optimizer = named.make(together);
    std::vector<std::unique_ptr<optim::Optimizer>> each;
    for (const Tensor& p : alone) each.push_back(named.make({p}));
    for (int t = 1; t <= 3; ++t) {
      give(together, t, all), give(alone, t, all);
      optimizer->step();
      for (const auto& o : each) o->step();
    }
    CHECK(rg::values_of(together) == rg::values_of(alone));
  }
}

TEST_CASE("35: a parameter at an odd address is updated, its neighbours are not") {
  const Tensor memory = rg::ones({11}, {rg::kFloat32});
  const Tensor p = memory.narrow(0, 3, 5).detach().requires_grad_();
  const Tensor q = rg::ones({5}, {rg::kFloat32, rg::kCPU, true});
  optim::AdamW odd({p}), even({q});
  for (int t = 1; t <= 3; ++t) {
    give({p, q}, t, all);
    odd.step(), even.step();
  }
  CHECK(p.to_vector() == q.to_vector());
  const std::vector<double> all_values = memory.to_vector();
  for (const size_t i : {0u, 1u, 2u, 8u, 9u, 10u}) CHECK(all_values[i] == 1);
}

TEST_CASE("40: a gradient with other strides than its parameter") {
  const Tensors p = parameters(), q = parameters();
  optim::AdamW eager({p[0]}), recorded({q[0]});
  auto step = rg::compile_step([&] { recorded.step(); });
  for (int t = 1; t <= 3; ++t) {
    for (const Tensor& x : {p[0], q[0]}) x.set_grad(gradient(x, t).t().contiguous().t());
    REQUIRE(!p[0].grad().is_contiguous());
    eager.step(), step();
    rg::check_same_state(eager, recorded);
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("44: two optimizers of one parameter see each other's steps") {
  const Tensors p = parameters(), q = parameters();
  optim::AdamW a({p[0]}), c({q[0]});
  optim::SGD b({p[0]}, {.lr = 0.1, .momentum = 0.9}), d({q[0]}, {.lr = 0.1, .momentum = 0.9});
  auto step = rg::compile_step([&] { c.step(), d.step(); });
  for (int t = 1; t <= 4; ++t) {
    give({p[0], q[0]}, t, all);
    a.step(), b.step();
    step();
    rg::check_same_state(a, c), rg::check_same_state(b, d);
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("47: a backward through what a recorded step has overwritten is the eager error") {
  for (const bool compiled : {false, true}) {
    INFO("compiled " << compiled);
    const Tensors p = parameters();
    optim::SGD optimizer({p[0]});
    auto step = rg::compile_step([&] { optimizer.step(); });
    give({p[0]}, 1, all);
    step();
    const Tensor loss = rg::sum(p[0] * p[0]);
    if (compiled)
      step();
    else
      optimizer.step();
    CHECK(rg::category_of([&] { loss.backward(); }) == Category::version_mismatch);
  }
}

TEST_CASE("48: an optimizer for each parameter in the backward, recorded as eagerly") {
  const Tensors p = parameters(), q = parameters();
  std::vector<std::unique_ptr<optim::AdamW>> of_eager, of_recorded;
  const auto attach = [](const Tensors& params, auto& optimizers) {
    for (const Tensor& x : params) {
      optimizers.push_back(std::make_unique<optim::AdamW>(Tensors{x}));
      optim::AdamW* const optimizer = optimizers.back().get();
      x.register_post_accumulate_grad_hook([optimizer](const Tensor& leaf) {
        optimizer->step();
        leaf.set_grad({});
      });
    }
  };
  attach(p, of_eager), attach(q, of_recorded);
  const auto train = [](const Tensors& x) { rg::sum(rg::exp(x[0] * 0.5) * x[1].sum() * x[3]).backward(); };
  auto step = rg::compile_step([&] { train(q); });
  for (int t = 0; t < 4; ++t) {
    train(p), step();
    for (size_t i = 0; i < p.size(); ++i) rg::check_same_state(*of_eager[i], *of_recorded[i]);
  }
}

TEST_CASE(
    "49: a hook that throws leaves parameters, state and counts as they were; the next step is the eager "
    "one") {
  for (const Named& named : kOptimizers) {
    INFO(named.name);
    const Tensors p = parameters(), q = parameters();
    const auto eager = named.make({p[0]}), recorded = named.make({q[0]});
    bool throws = false;
    q[0].register_hook([&](const Tensor&) {
      if (throws) throw std::runtime_error("hook");
    });
    const auto train = [](const Tensor& x, optim::Optimizer& optimizer) {
      rg::sum(rg::sin(x)).backward();
      optimizer.step();
      optimizer.zero_grad();
    };
    auto step = rg::compile_step([&] { train(q[0], *recorded); });
    for (int t = 0; t < 4; ++t) {
      if (t == 2) {
        throws = true;
        CHECK_THROWS_AS(step(), std::runtime_error);
        throws = false;
        rg::check_same_state(*eager, *recorded);
        q[0].set_grad({});
      }
      train(p[0], *eager), step();
      rg::check_same_state(*eager, *recorded);
    }
  }
}

TEST_CASE(
    "50: gradients at other addresses in each step cause no capture; of replaced parameters few are kept") {
  const Tensors p = parameters(), q = parameters();
  optim::AdamW eager(p), recorded(q);
  auto step = rg::compile_step([&] { recorded.step(); });
  Tensors kept;  // so that no memory comes back
  for (int t = 1; t <= 50; ++t) {
    give(p, t, all), give(q, t, all);
    for (const Tensor& x : q) kept.push_back(x.grad());
    eager.step(), step();
  }
  rg::check_same_state(eager, recorded);
  CHECK(step.stats().captures == 1);
  CHECK(step.stats().evictions == 0);

  constexpr int kReplaced = 10, kKept = 4;
  optim::SGD replaced({p[0]}, {.lr = 0.5});
  auto other = rg::compile_step([&] { replaced.step(); }, {.recordings = kKept});
  for (int t = 0; t < kReplaced; ++t) {
    const Tensor next = rg::ones({3}, {rg::kFloat64, rg::kCPU, true});
    next.set_grad(rg::full({3}, static_cast<double>(t), {rg::kFloat64}));
    replaced.param_groups()[0].params = {next};
    kept.push_back(next);
    other();
    CHECK(next.to_vector() == std::vector<double>(3, 1 - 0.5 * t));
  }
  CHECK(other.stats().captures == kReplaced);
  CHECK(other.stats().evictions == kReplaced - kKept);
}
