// Each single `operator new` of a program fails once: of training steps in each mode, cold and warm, and of a series of
// other library calls. The result is std::bad_alloc or an error of the library, never the end of the process.
// Afterwards parameters and the state of optimizers are unchanged and the same call gives the bits that it gives
// without a failure, once gradients that an aborted backward may have left are dropped; or the error has said that
// parameters had been updated.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "ir/text.h"
#include "ops/all_ops.h"
#include "tests/scenarios/scenario.h"
#include "tests/test_folder.h"
#include "tests/tracer/failing_new.h"

namespace {

using namespace scenario;
namespace ag = rg::autograd;
namespace optim = rg::optim;

using retrograd::testing::news_left;

using Bits = std::vector<std::vector<double>>;

// A program with a state; run() gives what it has computed.
struct Program {
  virtual ~Program() = default;
  virtual Bits run() = 0;
  virtual Bits state() = 0;
  /// A program that continues after an error.
  virtual void recover() {}
  /// Whether run() calls the library several times, so that an error may occur after everything that matters is done.
  virtual bool is_sequence() const { return false; }
};

// What the test itself does, when the program is done, does not fail.
struct Pause {
  Pause() = default;
  ~Pause() { news_left = left; }
  Pause(const Pause&) = delete;
  const int64_t left = std::exchange(news_left, 0);
};

Bits bits_of(const Tensors& tensors) {
  const Pause pause;
  Bits bits;
  for (const Tensor& t : tensors) bits.push_back(t.defined() ? values(t.detach()) : std::vector<double>{});
  return bits;
}

template <class Optimizer>
class Training final : public Program {
 public:
  enum class Mode { eager, traced, compiled, step };
  Training(Mode mode, bool hooks) : mode_(mode) {
    for (int i = 0; i < 2; ++i) {
      parameters_.push_back(parameter({rg::Dim(4), rg::Dim(4)}, 3 + i));
      parameters_.push_back(parameter({rg::Dim(4)}, 7 + i));
    }
    optimizer_.emplace(parameters_);
    if (hooks)
      for (const Tensor& p : parameters_) p.register_hook([](const Tensor& g) { return g * 0.5; });
  }
  Bits run() override {
    if (mode_ == Mode::step) {
      const Tensor loss = step_(x_);
      const Pause pause;
      return bits_of({loss});
    }
    const Tensor loss = mode_ == Mode::compiled ? compiled_(x_) : loss_of(x_);
    if (mode_ == Mode::traced)
      traced_.backward({loss});
    else
      loss.backward();
    optimizer_->step();
    optimizer_->zero_grad();
    return bits_of({loss});
  }
  Bits state() override {
    Bits all = bits_of(parameters_);
    for (const auto& [name, value] : optimizer_->state_dict()) all.push_back(values(value.to(rg::kFloat64)));
    return all;
  }
  void recover() override { optimizer_->zero_grad(); }
  bool is_sequence() const override { return mode_ != Mode::step; }

 private:
  Tensor loss_of(const Tensor& x) {
    Tensor h = x;
    for (size_t i = 0; i < 2; ++i) h = rg::gelu(rg::mm(h, parameters_[2 * i]) + parameters_[2 * i + 1]);
    return rg::mean(rg::square(h - 0.5));
  }
  Tensor step_of(const Tensor& x) {
    const Tensor loss = loss_of(x);
    loss.backward();
    optimizer_->step();
    optimizer_->zero_grad();
    return loss;
  }

  const Mode mode_;
  Tensors parameters_;
  std::optional<Optimizer> optimizer_;
  const Tensor x_ = parameter({rg::Dim(3), rg::Dim(4)}, 1).detach();
  rg::CompiledBackward traced_;
  std::function<Tensor(const Tensor&)> loss_function_ = [this](const Tensor& x) { return loss_of(x); };
  std::function<Tensor(const Tensor&)> step_function_ = [this](const Tensor& x) { return step_of(x); };
  rg::Compiled<std::function<Tensor(const Tensor&)>> compiled_ = rg::compile(loss_function_);
  rg::Compiled<std::function<Tensor(const Tensor&)>> step_ = rg::compile_step(step_function_);
};

// Without a state: a closure that computes something.
class Computes final : public Program {
 public:
  explicit Computes(std::function<Tensors()> f) : f_(std::move(f)) {}
  Bits run() override { return bits_of(f_()); }
  Bits state() override { return {}; }

 private:
  const std::function<Tensors()> f_;
};

using Make = std::function<std::unique_ptr<Program>()>;

// Every k up to 40, then in steps of an eighth; all of them if RETROGRAD_ALL_NEWS is set.
int64_t next_of(int64_t k) {
  static const bool all = std::getenv("RETROGRAD_ALL_NEWS");
  return k + (all ? 1 : std::max<int64_t>(1, (k - 32) / 8));
}

// `warm`: how many runs before the one in which an allocation fails.
void exhaust(const std::string& name, const Make& make, int warm) {
  INFO(name << ", after " << warm << " runs");
  const auto plain = make();
  for (int i = 0; i < warm; ++i) plain->run();
  const Bits before = plain->state();
  const Bits result = plain->run(), state = plain->state();
  int64_t failures = 0;
  for (int64_t k = 1;; k = next_of(k)) {
    INFO("operator new number " << k);
    const auto program = make();
    for (int i = 0; i < warm; ++i) program->run();
    std::string text;
    bool failed = false;
    try {
      news_left = k;
      program->run();
    } catch (const std::bad_alloc&) {
      failed = true;
    } catch (const rg::Exception& e) {
      failed = true;
      news_left = 0;
      text = e.what();
    }
    const bool reached = news_left == 0;
    news_left = 0;
    failures += failed;
    if (!failed) {
      CHECK(program->state() == state);
      if (!reached) break;
      continue;  // it was caught, and done without
    }
    if (text.find("had been updated") != std::string::npos) continue;
    if (program->is_sequence() && program->state() == state) continue;  // it failed after the step
    REQUIRE(program->state() == before);
    program->recover();
    REQUIRE(program->run() == result);
    REQUIRE(program->state() == state);
  }
  CHECK(failures > 0);
}

template <class Optimizer>
void exhaust_training(const std::string& name) {
  using T = Training<Optimizer>;
  using Mode = typename T::Mode;
  const std::pair<const char*, Mode> modes[] = {
      {"eager", Mode::eager}, {"traced", Mode::traced}, {"compiled", Mode::compiled}, {"step", Mode::step}};
  for (const auto& [mode_name, mode] : modes)
    for (const bool hooks : {false, true})
      for (const int warm : {0, 2})
        exhaust(
            name + ", " + mode_name + (hooks ? ", hooks" : ""),
            [=, mode = mode] { return std::make_unique<T>(mode, hooks); }, warm);
}

Make computes(std::function<Tensors()> f) {
  return [f] { return std::make_unique<Computes>(f); };
}

struct Cube : rg::Function<Cube> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {g[0] * x * x * 3.0};
  }
};

}  // namespace

TEST_CASE("training with SGD") { exhaust_training<optim::SGD>("SGD"); }
TEST_CASE("training with AdamW") { exhaust_training<optim::AdamW>("AdamW"); }

TEST_CASE("differentiation") {
  const auto cubes = [](const Tensors& t) { return Tensors{t[0] * t[0] * t[0]}; };
  exhaust("double backward", computes([] {
            const Tensor x = leaf({1, 2}), g = ag::grad({rg::sum(rg::exp(x) * x)}, {x}, {}, {}, true)[0];
            return ag::grad({rg::sum(g)}, {x});
          }),
          0);
  exhaust("captured double backward", computes([] {
            rg::CompiledBackward compiled;
            const Tensor x = leaf({1, 2}), g = compiled.grad({rg::sum(rg::exp(x) * x)}, {x}, {}, {}, true)[0];
            return compiled.grad({rg::sum(g)}, {x});
          }),
          0);
  exhaust("jacobian", computes([=] { return ag::jacobian(cubes, {leaf({1, 2})})[0]; }), 0);
  exhaust("jvp", computes([=] { return ag::jvp(cubes, {leaf({1, 2})}, {leaf({1, 1})}).tangents; }), 0);
  exhaust("a level that records", computes([] {
            const Tensor x = leaf({1, 2});
            ag::DualLevel level;
            const Tensor y = rg::exp(level.make_dual(x, rg::ones({2}))) * x;
            return ag::grad({rg::sum(level.tangent(y))}, {x});
          }),
          0);
  exhaust("gradients of a compiled function's gradients", computes([] {
            auto f = rg::compile([](const Tensor& t) { return rg::sum(rg::sin(t) * t); });
            const Tensor x = leaf({1, 2}), g = ag::grad({f(x)}, {x}, {}, {}, true)[0];
            return ag::grad({rg::sum(g)}, {x});
          }),
          0);
}

TEST_CASE("hooks and functions") {
  exhaust("all kinds of hooks", computes([] {
            const Tensor x = leaf({1, 2}), y = x * x;
            y.register_hook([](const Tensor& g) { return g * 2.0; });
            y.grad_fn().register_prehook([](const Tensors& g) { return g; });
            y.grad_fn().register_hook([](const Tensors& g, const Tensors&) { return g; });
            x.register_post_accumulate_grad_hook([](const Tensor&) {});
            ag::register_multi_grad_hook({x, y}, [](const Tensors&) { ag::queue_callback([] {}); });
            y.retain_grad();
            rg::sum(y * y).backward();
            return Tensors{x.grad(), y.grad()};
          }),
          0);
  exhaust("an opaque function in a step", computes([] {
            auto step =
                rg::compile_step([](const Tensor& x) { return ag::grad({rg::sum(Cube::apply(x))}, {x}); });
            const Tensor x = leaf({1, 2});
            step(x);
            return step(x);
          }),
          0);
  exhaust("packed tensors in a step", computes([] {
            const auto same = [](const Tensor& t) { return t; };
            rg::SavedTensorHooksGuard guard(same, same);
            auto step =
                rg::compile_step([](const Tensor& x) { return ag::grad({rg::sum(rg::exp(x) * x)}, {x}); });
            return step(leaf({1, 2}));
          }),
          0);
  exhaust("saved tensors that may be written to", computes([] {
            const Tensor x = leaf({1, 2});
            rg::AllowMutationOnSavedTensors scope;
            const Tensor h = x * 1.0, y = h * h;
            h.mul_(3.0);
            h.mul_(2.0);
            rg::sum(y * h).backward();
            return Tensors{x.grad()};
          }),
          0);
}

TEST_CASE("files and texts") {
  const std::string path = rg::testing::in_test_folder("failed_new.safetensors");
  exhaust("a file", computes([=] {
            rg::save({{"a", rg::tensor({1.0, 2})}, {"b", rg::tensor({3.0})}}, path);
            rg::StateDict read = rg::load(path);
            return Tensors{read.at("a"), read.at("b")};
          }),
          0);
  exhaust("the text of a graph", computes([] {
            const rg::ir::Graph graph = rg::ir::parse(
                "graph @g(%0: f32[2]) {\n  %1 = exp %0 : f32[2]\n  return %1\n}\n", rg::ops::find_op);
            return Tensors{rg::tensor({static_cast<double>(graph.print().size())})};
          }),
          0);
  exhaust("a tensor as text", computes([] {
            return Tensors{rg::tensor({static_cast<double>(rg::to_string(leaf({1, 2})).size())})};
          }),
          0);
}
