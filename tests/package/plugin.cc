// A plug-in that contains the library, loaded by a host that knows nothing of tensors. See plugin_test.cc.
#include <stdexcept>

#include "retrograd/retrograd.h"

namespace rg = retrograd;

/// Trains a small model on two threads, eagerly and compiled, for some steps, with hooks and files of saved tensors
/// left out; returns the sum of the weights.
extern "C" [[gnu::visibility("default")]] double train(int steps) {
  rg::cpu::set_num_threads(2);
  rg::manual_seed(7);
  const rg::Tensor x = rg::rand({64, 200}), w = (rg::rand({200, 300}) - 0.5).detach().requires_grad_();
  rg::optim::SGD sgd({w}, {.lr = 0.01, .momentum = 0.9});
  auto step = rg::compile_step([&] {
    sgd.zero_grad();
    const rg::Tensor loss = rg::mean(rg::relu(rg::matmul(x, w)));
    loss.backward();
    sgd.step();
    return loss;
  });
  for (int i = 0; i < steps; ++i) {
    const rg::NoGradGuard off;
    const rg::EnableGradGuard on;
    step();
  }
  return rg::sum(w).item<double>();
}

/// Whether an error of the library is caught here.
extern "C" [[gnu::visibility("default")]] bool fails_well() {
  try {
    rg::matmul(rg::ones({2, 3}), rg::ones({2, 3}));
  } catch (const rg::Error&) {
    return true;
  }
  return false;
}
