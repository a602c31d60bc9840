// SGD with momentum. Formulas as in PyTorch (torch.optim.SGD):
//   g = grad (or -grad to maximize) + weight_decay * p
//   buffer = momentum * buffer + (1 - dampening) * g, at the first step g itself
//   p -= lr * (nesterov ? g + momentum * buffer : buffer)
#pragma once

#include <array>

#include "optim/optimizer.h"

namespace retrograd::optim {

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
  struct State {
    int64_t step = 0, ahead = 0;
    Tensor momentum_buffer;
  };
  static void check(const Options& options, SourceLocation where);
  static void make(const Options& options, State& state, const Tensor& param);
  static constexpr int numbers_count = 5;
  static std::array<Tensor, 3> operands(const Options& options, const State& state, const Tensor& param);
  static void numbers(const Options& options, int64_t step, std::span<Scalar> out);
  static Step::Attrs attrs(const Options& options, std::span<const Scalar> numbers);
  static std::array<bool, 3> form(const Options& options) {
    return {options.momentum != 0, options.nesterov, options.maximize};
  }
  template <class F>
  static void visit(State& state, F&& f) {
    f("momentum_buffer", state.momentum_buffer);
  }
};

using SGD = OptimizerOf<SGDAlgorithm>;

}  // namespace retrograd::optim
