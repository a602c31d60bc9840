// SGD with momentum. Formulas as in PyTorch (torch.optim.SGD):
//   g = grad (or -grad to maximize) + weight_decay * p
//   buffer = momentum * buffer + (1 - dampening) * g, or g itself where there is none yet
//   p -= lr * (nesterov ? g + momentum * buffer : buffer)
#pragma once

#include <array>
#include <limits>

#include "optim/optimizer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  ///< needs momentum > 0 and dampening 0
  bool maximize = false;
};

struct SGDAlgorithm {
  using Step = ops::SGDStep;
  using Options = SGDOptions;
  static constexpr std::string_view name = "SGD";
  static constexpr bool needs_step = false;
  struct State {
    static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    int64_t step = 0, ahead = 0;
    // Steps up to this one restart the buffer: with a momentum the last that did, 0 for a loaded buffer.
    int64_t first = kNever;
    Tensor momentum_buffer;
  };
  static void check(const Options& options, SourceLocation where);
  static void make(const Options& options, State& state, const Tensor& param);
  static constexpr int numbers_count = 5;
  static std::array<Tensor, 3> operands(const Options& options, const State& state, const Tensor& param);
  static void numbers(const Options& options, State& state, int64_t step, std::span<Scalar> out);
  static Step::Attrs attrs(const Options& options, std::span<const Scalar> numbers);
  static std::array<bool, 3> form(const Options& options) {
    return {options.momentum != 0, options.nesterov, options.maximize};
  }
  static bool is_filled(const State& state) { return state.first <= state.step; }
  static void resume(State& state, const State& loaded) {
    state.first = loaded.momentum_buffer.defined() ? 0 : State::kNever;
  }
  template <class F>
  static void visit(State& state, F&& f) {
    f("momentum_buffer", state.momentum_buffer);
  }
};

using SGD = OptimizerOf<SGDAlgorithm>;

}  // namespace retrograd::optim
#pragma GCC visibility pop
