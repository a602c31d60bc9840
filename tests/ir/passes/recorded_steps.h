// Training steps recorded as one graph each: forward, backward and optimizer, as compile_step() records them. Realistic
// input for passes.
#pragma once

#include <string>
#include <vector>

#include "ir/passes/memory_classes.h"

namespace recorded_steps {

struct Step {
  std::string name;
  retrograd::ir::Graph graph;
  std::vector<retrograd::ir::OutsideWrite> writes;
};

/// Two layers with tanh; SGD with momentum.
Step perceptron();
/// Convolutions, batch norm, pooling; Adam.
Step convolutional();
/// Pre-norm blocks of attention and a GELU network, tokens as input, the head tied to the embedding; AdamW. The
/// gradients are cleared before the step, so they exist after it; or they are cleared after it.
Step gpt(int64_t layers, int64_t width, int64_t batch, int64_t length, bool clear_behind = false);
/// The same with blocks that compute in bfloat16.
Step mixed_gpt(int64_t layers, int64_t width, int64_t batch, int64_t length);

/// Small ones of each.
std::vector<Step> all_small();

}  // namespace recorded_steps
