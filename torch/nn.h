// torch::nn: modules, functions, initial values and utilities under the names of libtorch's torch/nn.h.
//
//   struct NetImpl : torch::nn::Module {
//     NetImpl() : fc(register_module("fc", torch::nn::Linear(64, 10))) {}
//     torch::Tensor forward(torch::Tensor x) { return torch::log_softmax(fc->forward(x), 1); }
//     torch::nn::Linear fc;
//   };
//   TORCH_MODULE(Net);
//
// A torch::nn::Module is a retrograd::nn::Module, and a torch::nn::LinearImpl a retrograd::nn::Linear: both styles mix in
// one tree. Folders: options/ has the classes with chained setters, modules/ the layers made from them (wrapped.h),
// functional/ the functions.
// Other than in libtorch:
//   * `options` of a module is constant, since a module would not see a change;
//   * parameters are `weight` and `bias` of the layer itself: they take values (copy_, fill_), and are not replaced;
//   * sparse(true) of embeddings is an error, and their _weight is copied;
//   * a PackedSequence keeps the padding (nn/packed_sequence.h): there is no data() and no batch_sizes();
//   * F::normalize has no option `out`.
#pragma once

#include "torch/nn/cloneable.h"
#include "torch/nn/functional.h"
#include "torch/nn/init.h"
#include "torch/nn/modules.h"
#include "torch/nn/utils.h"
