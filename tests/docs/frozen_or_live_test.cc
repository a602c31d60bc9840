// Executes the table "What is frozen, what lives" of docs/compile.md: each row is tried, and what is seen must be what
// the page says. The twin check finds what is frozen, and nothing else.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;

// Something that a function uses, and a change to it between two calls.
struct Trial {
  std::function<Tensor(const Tensors&)> function;
  std::function<Tensors()> arguments = [] { return Tensors{parameter(rg::Shape{4, 3}, 1)}; };
  std::function<void()> change = [] {};
  bool is_step = false;
};

std::string seen(Trial trial) {
  rg::FunctionCache compiled(trial.is_step ? rg::FunctionKind::step : rg::FunctionKind::function);
  const auto run = [&](bool plan) {
    const rg::GeneratorState before = rg::default_generator().state();
    const Tensors given = trial.arguments();
    const auto body = [&](const Tensors& a) { return Tensors{trial.function(a)}; };
    const std::vector<double> result = values((plan ? compiled.run(body, given) : body(given))[0].detach());
    if (plan) rg::default_generator().set_state(before);  // the eager call draws the same numbers
    return result;
  };
  try {
    run(true);
  } catch (const rg::Error&) {
    return "refused";
  }
  trial.change();
  run(true), trial.change();  // sizes are symbols from the second call on
  const int64_t captures = compiled.stats().captures;
  trial.change();
  const std::vector<double> plan = run(true);
  if (compiled.stats().captures > captures) return plan == run(false) ? "checked" : "wrong";
  return plan == run(false) ? "live" : "frozen";
}

// Whether the twin check tells that the function is not what was recorded.
bool is_found_by_twin(Trial trial) {
  rg::FunctionCache compiled(trial.is_step ? rg::FunctionKind::step : rg::FunctionKind::function,
                             {.twin_calls = 1});
  const auto run = [&] {
    compiled.run([&](const Tensors& a) { return Tensors{trial.function(a)}; }, trial.arguments());
  };
  try {
    for (int i = 0; i < 4; ++i) run(), trial.change();
  } catch (const rg::Error& e) {
    const std::string text = e.what();
    CHECK(text.find("is not what was recorded") != std::string::npos);
    CHECK(text.find("frozen_or_live_test.cc") != std::string::npos);
    UNSCOPED_INFO(text);
    return true;
  }
  return false;
}

// State that changes by itself: each row has its own.
template <class T>
std::shared_ptr<T> shared(T value) {
  return std::make_shared<T>(std::move(value));
}

struct Dropped : rg::nn::Module {
  Tensor forward(const Tensor& x) const { return rg::dropout(x, 1.0, is_training()); }
};

std::map<std::string, std::function<std::string()>> rows() {
  std::map<std::string, std::function<std::string()>> all;
  const auto row = [&](const char* name, const std::function<Trial()>& trial) {
    all[name] = [trial] {
      const std::string is = seen(trial());
      if (is != "refused") CHECK(is_found_by_twin(trial()) == (is == "frozen"));
      return is;
    };
  };
  row("values of arguments and of tensors from outside", [] {
    const Tensor outside = spread(rg::Shape{4, 3}, 2);
    return Trial{.function = [=](const Tensors& a) { return a[0] * outside; },
                 .change =
                     [=] {
                       outside.add_(rg::ones({4, 3}));
                     }};
  });
  const auto of_sizes = [](std::function<Tensor(const Tensors&)> function) {
    const auto size = shared<int64_t>(4);
    return Trial{.function = std::move(function),
                 .arguments =
                     [=] {
                       return Tensors{parameter(rg::Shape{*size, 3}, 1)};
                     },
                 .change = [=] { ++*size; }};
  };
  row("sizes of arguments, as symbols", [=] {
    return of_sizes([](const Tensors& a) { return a[0].view({a[0].sym_size(0) * 3}) / a[0].sym_size(0); });
  });
  row("a size of an argument, as an integer",
      [=] { return of_sizes([](const Tensors& a) { return a[0] / static_cast<double>(a[0].size(0)); }); });
  row("dtypes, ranks, and sizes that are 0 or 1", [] {
    const auto rank = shared(0);
    return Trial{.function = [](const Tensors& a) { return rg::sum(a[0], {0}); },
                 .arguments =
                     [=] {
                       return Tensors{parameter(*rank == 1 ? rg::Shape{4}
                                                : *rank    ? rg::Shape{1, 4}
                                                           : rg::Shape{2, 4},
                                                1)};
                     },
                 .change = [=] { ++*rank; }};
  });
  row("gradient mode", [] {
    const auto on = shared(0);
    return Trial{.function = [](const Tensors& a) { return a[0] * 2.0; },
                 .change = [=] { rg::GradMode::set_enabled(++*on < 3); }};
  });
  row("the default dtype", [] {
    struct Restored {
      ~Restored() { rg::set_default_dtype(rg::kFloat32); }
    };
    const auto calls = shared(0);
    return Trial{.function = [](const Tensors& a) { return a[0] * rg::full({3}, 1.0 / 3.0); },
                 .arguments = [] { return Tensors{rg::ones({3}, {rg::kFloat32})}; },
                 .change =
                     [=, restored = std::make_shared<Restored>()] {
                       if (++*calls == 3) rg::set_default_dtype(rg::kFloat64);
                     }};
  });
  row("autocast around the call", [] {
    const auto calls = shared(0);
    const auto scope = std::make_shared<std::optional<rg::autocast>>();
    return Trial{.function = [](const Tensors& a) { return rg::mm(a[0], a[0].t()); },
                 .change =
                     [=] {
                       if (++*calls == 3) scope->emplace();
                     }};
  });
  row("whether an argument, or a tensor from outside, requires a gradient", [] {
    const Tensor outside = spread(rg::Shape{3}, 2);
    const auto calls = shared(0);
    return Trial{.function = [=](const Tensors& a) { return a[0] * outside; },
                 .change = [=] { outside.requires_grad_(++*calls == 3); }};
  });
  row("the shape and dtype of a tensor from outside", [] {
    struct Scale : rg::nn::Module {
      rg::nn::Parameter weight{this, "weight", rg::ones({3})};
    };
    const auto module = std::make_shared<Scale>();
    const auto calls = shared(0);
    return Trial{.function = [=](const Tensors& a) { return a[0] * module->weight; },
                 .change =
                     [=] {
                       if (++*calls == 3) module->to(rg::kFloat64);
                     }};
  });
  row("learning rates and other numbers of an optimizer", [] {
    const Tensor w = parameter(rg::Shape{3}, 2);
    const auto sgd = std::make_shared<rg::optim::SGD>(Tensors{w}, rg::optim::SGDOptions{.lr = 0.1});
    const auto lr = shared(0.1);
    return Trial{.function =
                     [=](const Tensors& a) {
                       rg::NoGradGuard no_grad;
                       w.copy_(rg::ones({3}));
                       w.set_grad(rg::sum(a[0], {0}));
                       sgd->step();
                       return w.clone();
                     },
                 .arguments =
                     [] {
                       return Tensors{spread(rg::Shape{4, 3}, 1)};
                     },
                 .change = [=] { sgd->set_lr(*lr *= 0.5); },
                 .is_step = true};
  });
  row("whether a module is in training", [] {
    const auto module = std::make_shared<Dropped>();
    const auto calls = shared(0);
    return Trial{.function = [=](const Tensors& a) { return module->forward(a[0]); },
                 .change = [=] { module->train(++*calls < 3); }};
  });
  row("hooks of a module that is called", [] {
    const auto module = std::make_shared<rg::nn::Identity>();
    const auto calls = shared(0);
    return Trial{.function = [=](const Tensors& a) { return (*module)(a[0]); },
                 .change =
                     [=] {
                       if (++*calls >= 3)
                         module->register_forward_hook(
                             [](rg::nn::Module&, const Tensors&, const Tensor& out) { return out * 2.0; });
                     }};
  });
  row("random numbers, and the seed", [] {
    const auto seed = shared<uint64_t>(1);
    return Trial{.function = [](const Tensors& a) { return rg::dropout(a[0], 0.5); },
                 .change = [=] { rg::manual_seed(++*seed); }};
  });
  row("whether a leaf has a `.grad` that the function adds to", [] {
    const Tensor w = parameter(rg::Shape{3}, 2);
    const auto calls = shared(0);
    return Trial{.function =
                     [=](const Tensors& a) {
                       rg::sum(a[0] * w).backward();
                       return w.grad().clone();
                     },
                 .arguments =
                     [=] {
                       w.set_grad(*calls == 3 ? rg::ones({3}) : Tensor());
                       return Tensors{spread(rg::Shape{4, 3}, 1)};
                     },
                 .change = [=] { ++*calls; },
                 .is_step = true};
  });
  row("hooks on a leaf that a backward in the function reaches", [] {
    const Tensor w = parameter(rg::Shape{3}, 2);
    const auto calls = shared(0);
    return Trial{.function =
                     [=](const Tensors& a) {
                       w.set_grad({});
                       rg::sum(a[0] * w).backward();
                       return w.grad().clone();
                     },
                 .arguments =
                     [] {
                       return Tensors{spread(rg::Shape{4, 3}, 1)};
                     },
                 .change =
                     [=] {
                       if (++*calls == 3) w.register_hook([](const Tensor& g) { return g * 2.0; });
                     },
                 .is_step = true};
  });
  row("a `Live` number", [] {
    const auto lr = shared(rg::Live<double>(1.0));
    const auto calls = shared(0);
    return Trial{.function = [=](const Tensors& a) { return a[0] * *lr; },
                 .change = [=] { *lr = 1.0 / ++*calls; }};
  });
  row("a `Live` integer, as a size", [] {
    const auto rows = std::make_shared<rg::Live<int64_t>>(1);
    const auto calls = shared<int64_t>(1);
    return Trial{.function = [=](const Tensors& a) { return rg::narrow(a[0], 0, 0, *rows); },
                 .change = [=] { *rows = 2 + ++*calls % 3; }};
  });
  row("a number that is captured, or computed on the host", [] {
    const auto beta = shared(1.0);
    return Trial{.function = [=](const Tensors& a) { return a[0] * *beta; }, .change = [=] { *beta *= 0.5; }};
  });
  row("the values of a tensor that the function makes of host numbers", [] {
    const auto beta = shared(1.0);
    return Trial{.function =
                     [=](const Tensors& a) {
                       const Tensor scale = rg::tensor({*beta, 1, 2}, {3}, {rg::kFloat64});
                       return scale.mul_(a[0].select(0, 0)) * a[0];
                     },
                 .change = [=] { *beta *= 0.5; }};
  });
  row("a branch on captured state", [] {
    const auto calls = shared(0);
    return Trial{.function = [=](const Tensors& a) { return *calls < 3 ? rg::exp(a[0]) : rg::tanh(a[0]); },
                 .change = [=] { ++*calls; }};
  });
  row("a `Buffer` of a module, also where it is assigned", [] {
    struct Sum : rg::nn::Module {
      rg::nn::Buffer total{this, "total", rg::zeros({3}, {rg::kFloat64})};
    };
    const auto module = std::make_shared<Sum>();
    const auto calls = shared(0);
    return Trial{.function = [=](const Tensors& a) { return a[0] * module->total; },
                 .change = [=] { module->total = spread(rg::Shape{3}, ++*calls); }};
  });
  row("a variable that is assigned another tensor", [] {
    const auto scale = shared(rg::full({3}, 1.0));
    return Trial{.function = [=](const Tensors& a) { return a[0] * *scale; },
                 .change = [=] { *scale = *scale * 0.5; }};
  });
  row("printing, counting and other effects of the host", [] {
    const auto calls = shared(0);
    return Trial{.function = [=](const Tensors& a) { return a[0] * static_cast<double>(++*calls); }};
  });
  row("the value of a computed tensor, as a number",
      [] { return Trial{.function = [](const Tensors& a) { return a[0] * rg::sum(a[0]).item<double>(); }}; });
  all["a number, flag or string in an argument"] = [] {
    auto compiled = rg::compile([](const Tensor& x, double factor) { return x * factor; });
    const Tensor x = leaf({1, 2});
    compiled(x, 1.0);
    const bool is_right = values(compiled(x, 2.0)) == std::vector<double>{2, 4};
    return std::string(!is_right ? "frozen" : compiled.stats().captures == 2 ? "checked" : "live");
  };
  row("options of an optimizer that are not numbers", [] {
    const Tensor w = parameter(rg::Shape{3}, 2);
    const auto sgd = std::make_shared<rg::optim::SGD>(Tensors{w}, rg::optim::SGDOptions{.lr = 0.1});
    const auto calls = shared(0);
    return Trial{.function =
                     [=](const Tensors& a) {
                       rg::NoGradGuard no_grad;
                       w.set_grad(rg::sum(a[0], {0}));
                       sgd->step();
                       return w.clone();
                     },
                 .arguments =
                     [=] {
                       rg::NoGradGuard no_grad;
                       w.copy_(rg::ones({3}));
                       return Tensors{spread(rg::Shape{4, 3}, 1)};
                     },
                 .change = [=] { sgd->param_groups()[0].options.maximize = ++*calls == 3; },
                 .is_step = true};
  });
  return all;
}

// The rows of the page: what is used, and what it is.
std::map<std::string, std::string> page() {
  std::ifstream in("docs/compile.md");
  std::map<std::string, std::string> said;
  bool is_here = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) is_here = line == "## What is frozen, what lives";
    if (!is_here || !line.starts_with("| ") || line.starts_with("| the function uses")) continue;
    const size_t first = line.find(" | "), second = line.find(" | ", first + 3);
    said[line.substr(2, first - 2)] = line.substr(first + 3, second - first - 3);
  }
  return said;
}

}  // namespace

TEST_CASE("each row of the table of docs/compile.md is so") {
  const auto said = page();
  const auto tried = rows();
  REQUIRE(said.size() > 15);
  for (const auto& [name, is] : said) {
    INFO(name);
    REQUIRE(tried.contains(name));
    const bool gradients = rg::GradMode::is_enabled();
    CHECK(tried.at(name)() == is);
    rg::GradMode::set_enabled(gradients);
  }
  CHECK(tried.size() == said.size());
}
