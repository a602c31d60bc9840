// Numbers of the run (learning rates, step counts, positions of random draws) in steps that run as graphs: the bits are
// those of the same step run eagerly on the same device, nothing is recorded again, and one copy before a start writes
// all changes.
#include <thread>

#include "tests/cuda/device_on_host.h"
#include "tests/cuda/new_device.h"

using namespace retrograd;

namespace {

// The objects that are trained or drawn, made again for each run of a test.
struct Program {
  std::function<Tensors()> step;
  std::function<void(int)> before = [](int) {};  // each step, outside of it
  Tensors parameters = {};
};
using Make = std::function<Program()>;

struct Outcome {
  std::vector<std::vector<double>> values;  // of all results, then of the parameters
  LaunchStats stats;
  int64_t uploads = 0;  // of numbers
  std::string segments;
};

Outcome outcome(const Make& make, bool compiled, int steps) {
  manual_seed(3);
  const Program program = make();
  FunctionCache cache(FunctionKind::step);
  const auto body = [&](const Tensors&) { return program.step(); };
  const int64_t before = cuda::gpu_of(0).number_uploads();
  Outcome found;
  for (int i = 0; i < steps; ++i) {
    program.before(i);
    for (const Tensor& x : compiled ? cache.run(body, {}) : program.step())
      found.values.push_back(x.to_vector());
  }
  for (const Tensor& p : program.parameters) found.values.push_back(p.to_vector());
  found.stats = cache.stats().launches;
  found.uploads = cuda::gpu_of(0).number_uploads() - before;
  found.segments = cache.segments();
  return found;
}

// Compiled, the bits of the eager steps.
Outcome expect_same_bits(const Make& make, int steps) {
  const Outcome expected = outcome(make, false, steps), found = outcome(make, true, steps);
  INFO(found.segments);
  REQUIRE(found.values.size() == expected.values.size());
  for (size_t i = 0; i < found.values.size(); ++i) {
    INFO("value " << i);
    REQUIRE(found.values[i] == expected.values[i]);
  }
  return found;
}

// One recording in the second step, and a copy of numbers before each start.
void check_followed(const Outcome& found, int steps) {
  CHECK(found.stats.recordings == 1);
  CHECK(found.stats.graph_launches == steps - 1);
  CHECK(found.uploads == steps - 1);
  CHECK(found.stats.updates == 0);
  CHECK(found.stats.given_up == 0);
}

Tensors leaves(ScalarType dtype = kFloat32) {
  Tensors all;
  for (const Shape& size : {Shape{7, 9}, Shape{4}, Shape{3, 1025}})
    all.push_back((randn(size) * 0.5).to(dtype).to(kCUDA).requires_grad_());
  return all;
}

// A step of `optimizer`, which makes the parameters smaller.
Tensors shrink(const Tensors& parameters, optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  Tensor loss = sum(square(parameters[0]));
  for (size_t i = 1; i < parameters.size(); ++i) loss = loss + sum(square(parameters[i]));
  loss.backward();
  optimizer.step();
  return {loss.detach()};
}

template <class Optimizer, class Options>
Make training(Options options, ScalarType dtype = kFloat32) {
  return [=] {
    const Tensors parameters = leaves(dtype);
    const auto optimizer = std::make_shared<Optimizer>(parameters, options);
    return Program{[=] { return shrink(parameters, *optimizer); },
                   [=](int i) { optimizer->set_lr(0.1 / (1 + i)); }, parameters};
  };
}

}  // namespace

TEST_CASE("learning rates and counts of steps of AdamW and SGD, in each dtype") {
  new_device();
  constexpr int kSteps = 6;
  const ScalarType dtype = GENERATE(kFloat32, kFloat64, kFloat16, kBFloat16);
  INFO(name(dtype));
  using optim::AdamW, optim::AdamWOptions, optim::SGD, optim::SGDOptions;
  for (const AdamWOptions& o :
       {AdamWOptions{.weight_decay = 0.1}, AdamWOptions{.amsgrad = true, .maximize = true}})
    check_followed(expect_same_bits(training<AdamW>(o, dtype), kSteps), kSteps);
  for (const SGDOptions& o :
       {SGDOptions{}, SGDOptions{.momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01},
        SGDOptions{.momentum = 0.9, .nesterov = true}})
    check_followed(expect_same_bits(training<SGD>(o, dtype), kSteps), kSteps);
}

TEST_CASE("launches of no elements hold no numbers") {
  new_device();
  const Outcome drawn = expect_same_bits(
      [] {
        const Tensor x = randn({4}).to(kCUDA);
        return Program{[=] { return Tensors{rand({0, 3}, {kFloat32, kCUDA}), retrograd::exp(x)}; }};
      },
      4);
  CHECK(drawn.stats.graph_launches == 3);
  CHECK(drawn.uploads == 0);
  const Outcome trained = expect_same_bits(
      [] {
        const Tensors parameters{zeros({0}).to(kCUDA).requires_grad_()};
        const auto optimizer = std::make_shared<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.1});
        return Program{[=] { return shrink(parameters, *optimizer); },
                       [=](int i) { optimizer->set_lr(0.1 / (1 + i)); }, parameters};
      },
      4);
  CHECK(trained.stats.graph_launches == 3);
  CHECK(trained.uploads == 0);
}

TEST_CASE("numbers that are as they were are not written again") {
  cuda::HostDriver& driver = new_device();
  const Tensors parameters = leaves();
  optim::SGD optimizer(parameters, {.lr = 0.1});
  FunctionCache cache(FunctionKind::step);
  const auto log_of_step = [&] {
    driver.log.clear();
    cache.run([&](const Tensors&) { return shrink(parameters, optimizer); }, {});
    return driver.log;
  };
  for (int i = 0; i < 2; ++i) log_of_step();
  cuda::Gpu& gpu = cuda::gpu_of(0);
  CHECK(gpu.number_uploads() == 1);
  for (int i = 0; i < 3; ++i) CHECK(log_of_step() == "launch x1 on 1\n");
  optimizer.set_lr(0.05);
  CHECK(log_of_step().starts_with("copy 128 on 1\n"));
  CHECK(log_of_step() == "launch x1 on 1\n");
  CHECK(gpu.number_uploads() == 2);
  CHECK(cache.stats().launches.graph_launches == 6);
}

TEST_CASE("draws of all distributions, in each dtype and into strided memory") {
  new_device();
  constexpr int kSteps = 6;
  const ScalarType dtype = GENERATE(kFloat32, kFloat64, kFloat16, kBFloat16);
  INFO(name(dtype));
  const Make draws = [dtype] {
    return Program{[dtype] {
      const TensorOptions there{dtype, kCUDA};
      const Tensor p = rand({41}, there), turned = zeros({6, 35}, there).transpose(0, 1);
      turned.uniform_(-2, 3);
      turned.narrow(0, 0, 3).normal_(1, 2);
      return Tensors{p,
                     turned * 1.0,
                     randn({3, 70}, there),
                     normal(2, 0.5, {40}, there),
                     normal(p, 0.25),
                     normal(0.5, p),
                     normal(p, p),
                     zeros({33}, there).exponential_(1.5),
                     bernoulli(zeros({90}, there), 0.3),
                     bernoulli(p),
                     randint(-5, 1000, {31}, {dtype == kFloat32 ? kInt64 : kInt32, kCUDA}),
                     dropout(ones({9, 111}, there), 0.3),
                     dropout(ones({111, 9}, there).transpose(0, 1), 0.3),
                     alpha_dropout(ones({300}, there), 0.2),
                     feature_dropout(ones({3, 50, 2}, there), 0.4)};
    }};
  };
  const Outcome found = expect_same_bits(draws, kSteps);
  check_followed(found, kSteps);
  const size_t results = found.values.size() / kSteps;
  for (size_t i = results; i < found.values.size(); ++i) {
    INFO("value " << i);
    CHECK(found.values[i] != found.values[i - results]);
  }
}

TEST_CASE("a step with dropout and an optimizer writes all its numbers by one copy") {
  cuda::HostDriver& driver = new_device();
  constexpr int kSteps = 12;
  const Make make = [&driver] {
    const Tensors parameters = leaves();
    const auto optimizer = std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.05});
    return Program{[=] {
                     optimizer->zero_grad();
                     Tensor h = dropout(parameters[0], 0.5);
                     for (int i = 0; i < 4; ++i) h = dropout(retrograd::tanh(h), 0.2);
                     const Tensor loss = sum(square(h)) + sum(square(parameters[1])) + sum(parameters[2]);
                     loss.backward();
                     optimizer->step();
                     return Tensors{loss.detach()};
                   },
                   [=, &driver](int i) {
                     optimizer->set_lr(0.05 / (1 + i));
                     driver.log.clear();
                   },
                   parameters};
  };
  check_followed(expect_same_bits(make, kSteps), kSteps);
  INFO(driver.log);
  const size_t copy = driver.log.find("copy "), start = driver.log.find("launch x");
  REQUIRE(start != std::string::npos);
  CHECK(copy < start);
  // 5 draws forward, as many places of them backward, and one launch of the optimizer. Then the loss is read.
  CHECK(driver.log.starts_with("copy 1408 on 1\nrecord "));
  CHECK(driver.log.substr(0, start).find("copy ", copy + 1) == std::string::npos);
}

TEST_CASE("the host may be steps ahead of the device") {
  cuda::HostDriver& driver = new_device();
  constexpr int kSteps = 9;
  int pinned = 0;
  const auto trained = [&](bool compiled) {
    manual_seed(5);
    const Tensors parameters = leaves();
    optim::AdamW optimizer(parameters, {.lr = 0.05});
    FunctionCache cache(FunctionKind::step);
    const auto body = [&](const Tensors&) { return shrink(parameters, optimizer); };
    for (int i = 0; i < kSteps; ++i) {
      optimizer.set_lr(0.05 / (1 + i));
      driver.lags = compiled && i >= 3;
      if (i == 3) pinned = driver.pinned_made;
      if (compiled)
        cache.run(body, {});
      else
        body({});
    }
    if (compiled) pinned = driver.pinned_made - pinned;
    driver.catch_up();
    driver.lags = false;
    if (compiled) CHECK(cuda::gpu_of(0).number_uploads() == kSteps - 1);
    std::vector<std::vector<double>> values;
    for (const Tensor& p : parameters) values.push_back(p.to_vector());
    return values;
  };
  const auto expected = trained(false);
  CHECK(trained(true) == expected);
  CHECK(pinned >= kSteps - 3 - 2);  // the source of a copy is not written to before it has been read
}

TEST_CASE("counts of steps that part cut a launch in two: the graph is recorded again, once") {
  new_device();
  constexpr int kSteps = 9;
  const Make make = [] {
    const Tensors parameters = leaves();
    const auto optimizer = std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.05});
    return Program{[=] { return shrink(parameters, *optimizer); },
                   [=](int i) {
                     if (i != 5) return;
                     StateDict state = optimizer->state_dict();
                     state.at("1.step") = scalar_tensor(40, {kInt64});
                     optimizer->load_state_dict(state);
                   },
                   parameters};
  };
  const Outcome found = expect_same_bits(make, kSteps);
  CHECK(found.stats.updates == 1);
  CHECK(found.stats.recordings == 1);
  CHECK(found.uploads == kSteps - 1);
  CHECK(found.stats.given_up == 0);
}

TEST_CASE("learning rates of groups that cross in each step: each place where they part is recorded once") {
  new_device();
  constexpr int kSteps = 10;
  const Make make = [] {
    const Tensors parameters = leaves();
    std::vector<optim::AdamW::Group> groups;
    for (const Tensor& p : parameters) groups.push_back({{p}, {.lr = 0.1}});
    const auto optimizer = std::make_shared<optim::AdamW>(groups);
    return Program{[=] { return shrink(parameters, *optimizer); },
                   [=](int i) {
                     if (i < 2) return;  // recorded as one launch
                     optimizer->set_lr(0.1 / i);
                     optimizer->param_groups()[i % 2 == 0 ? 0 : 2].options.lr = 0.2;
                   },
                   parameters};
  };
  const Outcome found = expect_same_bits(make, kSteps);
  CHECK(found.stats.updates == 2);
  CHECK(found.stats.recordings == 1);
  CHECK(found.stats.graph_launches == kSteps - 1);
  CHECK(found.uploads == kSteps - 1);
  CHECK(found.stats.given_up == 0);
}

TEST_CASE("numbers that cannot be written: the step is launched one by one, with its numbers") {
  cuda::HostDriver& driver = new_device();
  constexpr int kSteps = 7;
  const Make make = training<optim::AdamW>(optim::AdamWOptions{.lr = 0.05});
  const Make failing = [&] {
    Program program = make();
    program.before = [&driver, before = program.before](int i) {
      before(i);
      if (i == 4) driver.next_copy = 801;
    };
    return program;
  };
  const Outcome expected = outcome(make, false, kSteps), found = outcome(failing, true, kSteps);
  CHECK(found.values == expected.values);
  CHECK(found.stats.given_up == 1);
  CHECK(found.stats.graph_launches == 3);
  CHECK(found.segments.find("one by one: cuda:0: copying to the device") != std::string::npos);
}

TEST_CASE("a thread that runs a step while another is in the midst of it has numbers of its own") {
  new_device();
  const Tensor w = (ones({40}) * 0.5).to(kCUDA).requires_grad_();
  FunctionCache cache(FunctionKind::step);
  std::function<void()> within;
  const auto body = [&](const Tensors&) -> Tensors {
    const Tensor h = dropout(w * 2.0, 0.5);
    h.register_hook([&](const Tensor& g) {
      if (const auto run = std::exchange(within, nullptr)) run();
      return g * 0.5;
    });
    const Tensor loss = sum(square(dropout(retrograd::tanh(h), 0.3)));
    return {loss.detach(), autograd::grad({loss}, {w})[0]};
  };
  const auto values = [](const Tensors& all) {
    std::vector<std::vector<double>> found;
    for (const Tensor& x : all) found.push_back(x.to_vector());
    return found;
  };
  const int64_t uploads = cuda::gpu_of(0).number_uploads();
  for (int i = 0; i < 6; ++i) {
    INFO("run " << i);
    const auto four = [&](auto run) {
      manual_seed(static_cast<uint64_t>(i));
      std::vector<std::vector<std::vector<double>>> found(4);
      run(found);
      return found;
    };
    const auto expected = four([&](auto& found) {
      for (auto& of_run : found) of_run = values(body({}));
    });
    CHECK(expected == four([&](auto& found) {
            within = [&] {
              std::thread([&] {  // launched one by one, recorded, started
                for (size_t k = 1; k < 4; ++k) found[k] = values(cache.run(body, {}));
              })
                  .join();
            };
            found[0] = values(cache.run(body, {}));
          }));
  }
  INFO(cache.segments());
  const LaunchStats stats = cache.stats().launches;
  CHECK(stats.given_up == 0);
  CHECK(stats.recordings == 2 * (1 + 6));  // two segments, of the frame that stays and of one in each run
  CHECK(stats.graph_launches == 2 * (5 + 2 * 6));
  CHECK(cuda::gpu_of(0).number_uploads() - uploads == stats.graph_launches);
}
