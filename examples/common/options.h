// The flags that all training examples have, and their joint checks.
//
// An example fills in its own defaults, add_flags() declares the flags with these, and apply() checks what no single
// flag can: writable paths, --dot without a graph. All of it happens before training begins. The effects of the flags
// are elsewhere: --mode in training_step.h, --saved in saved_choice.h, the rest in session.h.
//
// --checkpoint is recomputation (PyTorch's torch.utils.checkpoint); files are --save, --checkpoint-every and --resume.
#pragma once

#include <cstdint>
#include <string>

#include "retrograd/retrograd.h"

namespace CLI {
class App;  // not its header, which takes longer to compile than an example
}

namespace examples {

struct Options {
  std::string mode = "traced";      // or eager, compiled, step
  std::string saved = "keep";       // or half, fp8, offload, offload-file
  bool can_recompute = false;       // set by an example that has --checkpoint
  std::string checkpoint = "none";  // or block, policy=NAME (examples/recomputation.h)
  double memory_budget = 0;         // part of the eager peak; 0, which cannot be given: none
  std::string pareto;               // file for the plans that the budget chooses from; empty: none
  std::string offload_dir;          // empty: a private temporary folder
  std::string device = "cpu";       // or cuda, cuda:1, ...
  std::string data;                 // empty: the file that comes with the example
  std::string save;                 // file for all state of the training; empty: nothing is saved
  int64_t checkpoint_every = 0;     // steps; 0: only after the last
  std::string resume;               // file to go on from; empty: a new training
  bool auto_resume = false;         // go on from `save` if it exists
  std::string dot;
  std::string profile;  // folder for the profile of some steps; empty: no profile
  bool print_graph = false;
  int64_t steps = 1000;
  int64_t log_every = 10;
  uint64_t seed = 1;
  int threads = 0;  // 0, which cannot be given: all processors

  bool has_graph() const { return mode != "eager"; }
  /// The device of model and data. CLI::ValidationError for an invalid or missing device, with the reason.
  retrograd::Device place() const;
};

/// Declares the flags, with the values in `options` as defaults.
void add_flags(CLI::App& app, Options& options);

/// Checks that no single flag can make; throws CLI::ValidationError, FileError. Applies --threads and --seed.
void apply(const Options& options);

}  // namespace examples
