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
  using Options = SGDOptions;
  static constexpr std::string_view name = "SGD";
  struct State {
    int64_t step = 0;
    Tensor momentum_buffer;
  };
  struct Pass {
    Tensor param, grad, buffer;
    Options options;
    bool first;  // the buffer holds nothing yet
    template <class T>
    void run(int64_t begin, int64_t end) const;
  };
  static void check(const Options& options, SourceLocation where);
  static Pass prepare(const Options& options, State& state, const Tensor& param);
  template <class F>
  static void visit(State& state, F&& f) {
    f("momentum_buffer", state.momentum_buffer);
  }
};

using SGD = OptimizerOf<SGDAlgorithm>;

}  // namespace retrograd::optim
