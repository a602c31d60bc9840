// Session: what the training loops of the examples share, so that each shows only its own part.
//
//   step(batch)    brings the batch to the chosen device; a training step in the chosen mode
//                  (training_step.h); prints "step N loss X ..." every --log-every steps, and the graphs after
//                  the first step if asked to
//   validation()   prints "val loss X ..."
//   finish()       prints the summary
// finish() also says which peak plans said before they ran, in the first steps, and which one was met.
// With --profile a few steps after the first are looked at (tracer/profile.h); finish() prints a table of
// what took how long, and writes it, a Chrome trace and a chart of live memory into the folder. These steps
// are a little slower. Losses are printed with as many digits as it takes to read the same float back. On a
// terminal the step lines overwrite each other. Time and peak memory are those of the training steps: what
// validation takes is not counted. Bytes are those of tensor data on the device (device_memory.h).
#pragma once

#include <chrono>

#include "examples/common/options.h"
#include "examples/common/saved_choice.h"
#include "examples/common/training_step.h"
#include "retrograd/retrograd.h"

namespace examples {

class Session {
 public:
  /// `items_per_step` counts what `unit` names ("tokens"), for the speed.
  Session(const Options& options, retrograd::nn::Module& model, int64_t items_per_step, std::string unit,
          TrainingStep::Parts parts);

  ~Session();
  Session(const Session&) = delete;

  /// Throws Interrupted when a signal has come.
  void step(const retrograd::Tensor& input, const retrograd::Tensor& target);
  /// `note` follows the loss, like "accuracy 97.8 %".
  void validation(double loss, const std::string& note);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void show_graphs() const;
  bool is_profiled() const;
  void step_done(double loss, double seconds);
  void show_profile();
  void close_line();
  void print_line(const std::string& line, bool overwrite);

  const Options& options_;
  const retrograd::Device place_;
  int64_t parameters_, items_per_step_;
  std::string unit_;
  SavedChoice saved_;
  TrainingStep step_;
  retrograd::Profile profile_;
  bool terminal_, line_open_ = false;  // an unfinished line stands on the terminal
  double total_seconds_ = 0, first_step_seconds_ = 0, seconds_since_line_ = 0;
  int64_t steps_ = 0, steps_since_line_ = 0;  // done
  int64_t peak_bytes_ = 0;
  retrograd::PeakReport watched_;  // of plans, in the first steps
  double last_loss_ = 0, last_validation_ = 0;
};

}  // namespace examples
