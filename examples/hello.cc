// The program of the README: three backwards, one captured graph. Unpack and hook are nodes of the graph.
#include <retrograd/retrograd.h>

#include <iostream>

namespace rg = retrograd;
using rg::Tensor;

int main() {
  const Tensor x = rg::full({4, 3}, 0.5);
  const Tensor w = rg::full({3, 2}, 0.1).requires_grad_();
  rg::CompiledBackward backward = rg::compile_backward();
  for (int step = 0; step < 3; ++step) {
    rg::SavedTensorHooksGuard half([](const Tensor& t) { return t.to(rg::kFloat16); },
                                   [](const Tensor& t) { return t.to(rg::kFloat32); });
    const Tensor y = rg::mm(x, w);
    y.register_hook([](const Tensor& g) { return g * 0.5; });
    backward(rg::sum(y * y));
  }
  std::cout << backward.graph()->print();
  std::cout << backward.stats().captures << " capture, " << backward.stats().hits << " hits\n";
}
