// SGD with momentum. Formulas as in PyTorch (torch.optim.SGD):
//   g = grad (or -grad to maximize) + weight_decay * p
//   buffer = momentum * buffer + (1 - dampening) * g, at the first step g itself
//   p -= lr * (nesterov ? g + momentum * buffer : buffer)
#pragma once

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
  using Updates = ops::UpdateList<ops::SGDStep>;
  using Options = SGDOptions;
  static constexpr std::string_view name = "SGD";
  struct State {
    int64_t step = 0;
    Tensor momentum_buffer;
  };
  static void check(const Options& options, SourceLocation where);
  static void make(const Options& options, State& state, const Tensor& param);
  static void update(const Options& options, State& state, const Tensor& param, Updates& updates);
  template <class F>
  static void visit(State& state, F&& f) {
    f("momentum_buffer", state.momentum_buffer);
  }
};

using SGD = OptimizerOf<SGDAlgorithm>;

}  // namespace retrograd::optim
