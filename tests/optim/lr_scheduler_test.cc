// Learning-rate schedulers: PyTorch 2.15's rates, alone and composed, saved and loaded at any epoch; 1,000 steps of a
// recorded step with each are one capture; refusals.
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::Tensor;

namespace {

using optim::Optimizer;
using Scheduler = std::shared_ptr<optim::LRScheduler>;
using Schedulers = std::vector<Scheduler>;
using Milestones = std::vector<int64_t>;
using CyclicMode = optim::CyclicLROptions::Mode;

template <class S, class... Args>
Scheduler make(Optimizer& optimizer, Args... args) {
  return std::make_shared<S>(optimizer, std::move(args)...);
}

constexpr int64_t kEpochs[] = {0, 1, 2, 3, 5, 8, 13, 21, 34};

// Of SGD with a rate of 0.5 and a momentum of 0.9: the rates at kEpochs, and the momenta if the schedule changes them.
struct Schedule {
  const char* name;
  Scheduler (*make)(Optimizer&);
  std::vector<double> lrs, momenta;
};
const std::vector<Schedule>& schedules() {
  static const std::vector<Schedule> all = {
      {"lambda",
       [](Optimizer& o) -> Scheduler {
         return make<optim::LambdaLR>(
             o, [](int64_t e) { return std::pow(0.95, e) + 0.01 * static_cast<double>(e); });
       },
       {0.5, 0.48, 0.46125, 0.44368749999999996, 0.4118904687499999, 0.3717102156445311, 0.3216710416397524,
        0.2752808131440574, 0.2574123073618985},
       {}},
      {"multiplicative",
       [](Optimizer& o) -> Scheduler {
         return make<optim::MultiplicativeLR>(
             o, [](int64_t e) { return 0.9 + 0.01 * static_cast<double>(e % 3); });
       },
       {0.5, 0.455, 0.4186, 0.37674, 0.315406728, 0.23765266141344002, 0.14665548587655325,
        0.06894013159670251, 0.020220896991415854},
       {}},
      {"step",
       [](Optimizer& o) -> Scheduler { return make<optim::StepLR>(o, 4, 0.5); },
       {0.5, 0.5, 0.5, 0.5, 0.25, 0.125, 0.0625, 0.015625, 0.001953125},
       {}},
      {"multi_step",
       [](Optimizer& o) -> Scheduler {
         return make<optim::MultiStepLR>(o, std::vector<int64_t>{8, 3, 20, 3}, 0.3);
       },
       {0.5, 0.5, 0.5, 0.045, 0.045, 0.0135, 0.0135, 0.00405, 0.00405},
       {}},
      {"constant",
       [](Optimizer& o) -> Scheduler { return make<optim::ConstantLR>(o, 0.25, 4); },
       {0.125, 0.125, 0.125, 0.125, 0.5, 0.5, 0.5, 0.5, 0.5},
       {}},
      {"linear",
       [](Optimizer& o) -> Scheduler { return make<optim::LinearLR>(o, 0.2, 0.9, 7); },
       {0.1, 0.15000000000000002, 0.2, 0.25, 0.35000000000000003, 0.45, 0.45, 0.45, 0.45},
       {}},
      {"exponential",
       [](Optimizer& o) -> Scheduler { return make<optim::ExponentialLR>(o, 0.93); },
       {0.5, 0.465, 0.43245000000000006, 0.40217850000000005, 0.34784418465000005, 0.2797909048325201,
        0.19464727832790746, 0.10892107625310522, 0.04240238209042682},
       {}},
      {"polynomial",
       [](Optimizer& o) -> Scheduler { return make<optim::PolynomialLR>(o, 20, 1.7); },
       {0.5, 0.4582475306090063, 0.418005763958417, 0.37929941951256346, 0.30660141306638006,
        0.2098104571243289, 0.0839239042746605, 0.0, 0.0},
       {}},
      {"cosine",
       [](Optimizer& o) -> Scheduler { return make<optim::CosineAnnealingLR>(o, 9, 0.01); },
       {0.5, 0.48522469209254754, 0.44268088856414956, 0.3775, 0.21245619647160208, 0.024775307907452464,
        0.21245619647160216, 0.37750000000000006, 0.44268088856415144},
       {}},
      {"restarts",
       [](Optimizer& o) -> Scheduler { return make<optim::CosineAnnealingWarmRestarts>(o, 3, 2, 0.02); },
       {0.5, 0.38, 0.14000000000000004, 0.5, 0.38, 0.052153903091734705, 0.38, 0.5, 0.2286737138671876},
       {}},
      {"cyclic",
       [](Optimizer& o) -> Scheduler {
         return make<optim::CyclicLR>(o, 0.1, 0.6,
                                      optim::CyclicLROptions{.step_size_up = 4, .step_size_down = 6});
       },
       {0.1, 0.22500000000000012, 0.35, 0.4750000000000001, 0.5166666666666667, 0.2666666666666666,
        0.47499999999999976, 0.22500000000000012, 0.5999999999999998},
       {0.9, 0.875, 0.8500000000000001, 0.8250000000000001, 0.8166666666666667, 0.8666666666666667,
        0.8250000000000001, 0.875, 0.8}},
      {"cyclic2",
       [](Optimizer& o) -> Scheduler {
         return make<optim::CyclicLR>(
             o, 0.1, 0.6, optim::CyclicLROptions{.step_size_up = 4, .mode = CyclicMode::triangular2});
       },
       {0.1, 0.225, 0.35, 0.475, 0.475, 0.1, 0.2875, 0.19375, 0.115625},
       {0.9, 0.875, 0.8500000000000001, 0.8250000000000001, 0.8250000000000001, 0.9, 0.8625, 0.88125,
        0.896875}},
      {"cyclic_exp",
       [](Optimizer& o) -> Scheduler {
         return make<optim::CyclicLR>(
             o, 0.1, 0.6,
             optim::CyclicLROptions{
                 .step_size_up = 4, .step_size_down = 6, .mode = CyclicMode::exp_range, .gamma = 0.97});
       },
       {0.1, 0.2212500000000001, 0.33522499999999994, 0.44225237500000003, 0.4578058440416667,
        0.23062389323961596, 0.3523851588120903, 0.16593506407986813, 0.2775043372702171},
       {0.9, 0.87575, 0.852955, 0.831549525, 0.8284388311916667, 0.8738752213520768, 0.849522968237582,
        0.8868129871840263, 0.8644991325459566}},
      {"one_cycle",
       [](Optimizer& o) -> Scheduler { return make<optim::OneCycleLR>(o, 0.7, 35); },
       {0.028000000000000025, 0.04620540678858687, 0.09884878884281179, 0.18022541887086452,
        0.3917466600787036, 0.6595031804053803, 0.6653392424094315, 0.38360932463545233, 2.8e-06},
       {0.95, 0.9472908620850317, 0.9394570254698197, 0.9273474079061214, 0.8958710327263834,
        0.8560263124396755, 0.854951556604879, 0.8951988487046159, 0.95}},
      {"one_cycle3",
       [](Optimizer& o) -> Scheduler {
         return make<optim::OneCycleLR>(
             o, 0.7, 35,
             optim::OneCycleLROptions{.pct_start = 0.4,
                                      .anneal_strategy = optim::AnnealStrategy::linear,
                                      .div_factor = 10,
                                      .final_div_factor = 100,
                                      .three_phase = true});
       },
       {0.06999999999999999, 0.11846153846153845, 0.16692307692307692, 0.2153846153846154,
        0.31230769230769234, 0.45769230769230773, 0.7, 0.31230769230769223, 0.0007000000000000062},
       {0.95, 0.9423076923076923, 0.9346153846153846, 0.9269230769230768, 0.9115384615384615,
        0.8884615384615384, 0.85, 0.9115384615384615, 0.95}},
      {"swa",
       [](Optimizer& o) -> Scheduler { return make<optim::SWALR>(o, 0.05, 6); },
       {0.5, 0.4698557158514987, 0.3875, 0.275, 0.08014428414850128, 0.05, 0.05, 0.05, 0.05},
       {}},
      {"swa_linear",
       [](Optimizer& o) -> Scheduler {
         return make<optim::SWALR>(o, 0.05, 6, optim::AnnealStrategy::linear);
       },
       {0.5, 0.42500000000000004, 0.35000000000000003, 0.275, 0.12499999999999999, 0.05, 0.05, 0.05, 0.05},
       {}},
      {"sequential",
       [](Optimizer& o) -> Scheduler {
         return make<optim::SequentialLR>(
             o,
             Schedulers{make<optim::LinearLR>(o, 0.1, 1.0, 4), make<optim::CosineAnnealingLR>(o, 12),
                        make<optim::ExponentialLR>(o, 0.8)},
             Milestones{4, 16});
       },
       {0.05, 0.1625, 0.275, 0.38750000000000007, 0.49148145657226705, 0.375, 0.07322330470336313,
        0.16384000000000007, 0.009007199254741001},
       {}},
      {"chained",
       [](Optimizer& o) -> Scheduler {
         return std::make_shared<optim::ChainedScheduler>(Schedulers{make<optim::ConstantLR>(o, 0.1, 3),
                                                                     make<optim::ExponentialLR>(o, 0.9),
                                                                     make<optim::StepLR>(o, 10, 0.5)});
       },
       {0.05, 0.045000000000000005, 0.04050000000000001, 0.3645000000000001, 0.2952450000000001,
        0.21523360500000008, 0.06354664570822503, 0.013677373641439054, 0.0017383024340230863},
       {}},
  };
  return all;
}

Tensor parameter() { return rg::ones({3}, {rg::kFloat64, rg::kCPU, true}); }

optim::SGD sgd(const Tensor& p) { return optim::SGD({p}, {.lr = 0.5, .momentum = 0.9}); }

}  // namespace

TEST_CASE("schedules have PyTorch's rates") {
  for (const Schedule& schedule : schedules()) {
    INFO(schedule.name);
    optim::SGD optimizer = sgd(parameter());
    const Scheduler scheduler = schedule.make(optimizer);
    size_t next = 0;
    for (int64_t epoch = 0; epoch <= kEpochs[8]; ++epoch, scheduler->step()) {
      CHECK(scheduler->last_epoch() == epoch);
      CHECK(scheduler->get_last_lr() == std::vector<double>{optimizer.param_groups()[0].options.lr});
      if (kEpochs[next] != epoch) continue;
      INFO("epoch " << epoch);
      CHECK(optimizer.param_groups()[0].options.lr == Approx(schedule.lrs[next]).epsilon(1e-9).margin(1e-15));
      const double momentum = schedule.momenta.empty() ? 0.9 : schedule.momenta[next];
      CHECK(optimizer.param_groups()[0].options.momentum == Approx(momentum).epsilon(1e-12));
      ++next;
    }
  }
}

// PyTorch begins an inner sequence with its second epoch.
TEST_CASE("a sequence within a sequence has the rates of its parts") {
  optim::SGD flat = sgd(parameter()), nested = sgd(parameter());
  const auto constant = [](Optimizer& o) { return make<optim::ConstantLR>(o, 0.5, int64_t{2}); };
  const auto linear = [](Optimizer& o) { return make<optim::LinearLR>(o, 0.2, 1.0, int64_t{3}); };
  const auto last = [](Optimizer& o) { return make<optim::PolynomialLR>(o, int64_t{10}); };
  const Scheduler one = make<optim::SequentialLR>(flat, Schedulers{constant(flat), linear(flat), last(flat)},
                                                  Milestones{5, 12});
  const Scheduler inner =
      make<optim::SequentialLR>(nested, Schedulers{constant(nested), linear(nested)}, Milestones{5});
  const Scheduler two = make<optim::SequentialLR>(nested, Schedulers{inner, last(nested)}, Milestones{12});
  for (int epoch = 0; epoch < 30; ++epoch, one->step(), two->step()) {
    INFO("epoch " << epoch);
    CHECK(one->get_last_lr() == two->get_last_lr());
  }
}

TEST_CASE("a saved schedule continues") {
  for (const Schedule& schedule : schedules())
    for (const int stop : {0, 1, 4, 5, 17}) {
      INFO(schedule.name << " saved at " << stop);
      optim::SGD optimizer = sgd(parameter()), other = sgd(parameter());
      const Scheduler scheduler = schedule.make(optimizer), resumed = schedule.make(other);
      for (int i = 0; i < stop; ++i) scheduler->step();
      resumed->load_state_dict(scheduler->state_dict());
      other.param_groups()[0].options = optimizer.param_groups()[0].options;
      for (int i = stop; i < 30; ++i) {
        scheduler->step(), resumed->step();
        CHECK(optimizer.param_groups()[0].options.lr == other.param_groups()[0].options.lr);
        CHECK(optimizer.param_groups()[0].options.momentum == other.param_groups()[0].options.momentum);
      }
    }
}

TEST_CASE("a recorded step follows any schedule with one capture") {
  for (const Schedule& schedule : schedules()) {
    INFO(schedule.name);
    const Tensor p = parameter(), q = parameter();
    optim::SGD eager = sgd(p), recorded = sgd(q);
    const Scheduler of_eager = schedule.make(eager), of_recorded = schedule.make(recorded);
    auto step = rg::compile_step([&](const Tensor& g) {
      q.set_grad(g);
      recorded.step();
    });
    const int steps = std::string(schedule.name).starts_with("one_cycle") ? 35 : 1000;
    for (int i = 0; i < steps; ++i) {
      const Tensor g = rg::full({3}, std::sin(i), {rg::kFloat64});
      p.set_grad(g);
      eager.step(), of_eager->step();
      step(g), of_recorded->step();
    }
    CHECK(p.to_vector() == q.to_vector());
    CHECK(step.stats().captures == 1);
  }
}

TEST_CASE("betas are cycled where there is no momentum, and groups have rates of their own") {
  const Tensor a = parameter(), b = parameter();
  optim::Adam optimizer({{{a}, {.lr = 0.1}}, {{b}, {.lr = 0.2, .betas = {0.5, 0.9}}}});
  optim::CyclicLR scheduler(optimizer, std::vector<double>{0.01, 0.02}, std::vector<double>{0.05, 0.1},
                            {.step_size_up = 4});
  scheduler.step(), scheduler.step();
  CHECK(scheduler.get_last_lr()[0] == Approx(0.03));
  CHECK(scheduler.get_last_lr()[1] == Approx(0.06));
  CHECK(optimizer.param_groups()[0].options.betas[0] == Approx(0.85));
  CHECK(optimizer.param_groups()[1].options.betas[1] == 0.9);
}

TEST_CASE("ReduceLROnPlateau has PyTorch's rates, and continues when saved") {
  const std::vector<double> lrs = {0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.5,
                                   0.2,
                                   0.2,
                                   0.2,
                                   0.2,
                                   0.2,
                                   0.08000000000000002,
                                   0.08000000000000002,
                                   0.08000000000000002,
                                   0.08000000000000002,
                                   0.08000000000000002,
                                   0.05,
                                   0.05,
                                   0.05,
                                   0.05,
                                   0.05,
                                   0.05,
                                   0.05};
  const optim::ReduceLROnPlateauOptions options{
      .factor = 0.4, .patience = 2, .threshold = 0.01, .cooldown = 2, .min_lr = 0.05};
  const Tensor p = parameter();
  optim::SGD optimizer({p}, {.lr = 0.5});
  auto scheduler = std::make_unique<optim::ReduceLROnPlateau>(optimizer, options);
  for (int e = 0; e < static_cast<int>(lrs.size()); ++e) {
    scheduler->step(1.0 / (1 + std::min(e, 9)) + 0.001 * (e * 7 % 5));
    CHECK(optimizer.param_groups()[0].options.lr == Approx(lrs[static_cast<size_t>(e)]).epsilon(1e-12));
    const rg::StateDict state = scheduler->state_dict();
    scheduler = std::make_unique<optim::ReduceLROnPlateau>(optimizer, options);
    scheduler->load_state_dict(state);
  }
  optim::ReduceLROnPlateau rises(optimizer,
                                 {.mode = optim::ReduceLROnPlateauOptions::Mode::max, .patience = 0});
  optimizer.set_lr(1);
  rises.step(1), rises.step(2);
  CHECK(optimizer.param_groups()[0].options.lr == 1);
  rises.step(2);
  CHECK(optimizer.param_groups()[0].options.lr == 0.1);
}

TEST_CASE("schedulers refuse what they cannot follow") {
  const Tensor p = parameter();
  optim::SGD optimizer({p}, {.lr = 0.5});
  optim::Adagrad without({p});
  std::string text;
  const auto is_refused = [&](auto f) { return category_of(f, &text) == Category::bad_argument; };
  CHECK(is_refused([&] { optim::StepLR(optimizer, 0); }));
  CHECK(text.find("step_size must be at least 1, it is 0") != std::string::npos);
  CHECK(is_refused([&] { optim::CyclicLR(without, 0.1, 0.2); }));
  CHECK(text.find("cycle_momentum = false") != std::string::npos);
  CHECK(is_refused([&] { optim::LambdaLR(optimizer, std::vector<optim::LRLambda>(2)); }));
  CHECK(is_refused([&] { optim::SequentialLR(optimizer, {make<optim::StepLR>(optimizer, 1)}, {1}); }));
  CHECK(is_refused([&] {
    optim::ChainedScheduler({make<optim::StepLR>(optimizer, 1), make<optim::StepLR>(without, 1)});
  }));
  CHECK(is_refused([&] {
    optim::OneCycleLR scheduler(optimizer, 1.0, 3);
    for (int i = 0; i < 4; ++i) scheduler.step();
  }));
  optim::StepLR scheduler(optimizer, 1);
  CHECK(is_refused([&] { scheduler.load_state_dict({}); }));
  optimizer.add_param_group({{parameter()}, {}});
  CHECK(is_refused([&] { scheduler.step(); }));
  CHECK(text.find("Hint: add groups before") != std::string::npos);
}
