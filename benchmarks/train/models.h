// The models of the train-step benchmark, those of peers/train_steps.py: the same layers, initial values and batches.
//
//   mlp       784-512-512-10 with relu, batch 128, cross entropy
//   gpt-char  4 pre-norm blocks, 4 heads, 128 wide, 64 characters of 65, batch 12; biases, gelu by tanh, a
//             tied head
//   gpt-124m  the same with the sizes of GPT-2 small, batch 4 of 64 tokens
//
// A model keeps one batch of random data, which every step uses. It also lists the matrix products of a step,
// forward and backward, so that they can be timed alone.
//
// Parameters are float32, and so are their gradients and the state of an optimizer. In a 16-bit dtype everything in
// between is computed in that dtype: each parameter is rounded where it is used, except for the rows of an embedding,
// which are looked up first. Reductions inside ops, including those of the norms and the loss, sum in float32. Under
// autocast a float32 model passes its parameters as they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/common/place.h"
#include "benchmarks/train/products.h"

namespace bench {

class Model : public rg::nn::Module {
 public:
  /// The mean cross entropy of the batch.
  virtual rg::Tensor loss() const = 0;
  /// The matrix products of a step: those of the layers and, as full squares, of attention.
  virtual std::vector<Product> products() const = 0;
  /// Predictions of a step.
  virtual int64_t tokens() const = 0;
};

/// Sizes that differ from the model's own; 0 keeps those.
struct BatchSize {
  int64_t batch = 0, block = 0;
  int64_t loss_rows = 0;  // of a GPT: so many rows of logits exist at a time; 0: all
};

const std::vector<std::string>& model_names();

/// The model of this name, with its batch, on the device; `dtype` is the dtype it computes in.
std::unique_ptr<Model> make_model(const std::string& name, BatchSize size,
                                  rg::ScalarType dtype = rg::kFloat32, rg::Device device = rg::kCPU);

}  // namespace bench
