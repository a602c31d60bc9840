// Session: the common part of the training loops, so that each example shows only its own part.
//
//   next()         whether there is a step to do; before that, writes the file of --save if it is time for it
//   step(batch)    copies the batch to the chosen device; a training step in the chosen mode (training_step.h); prints
//   "step N loss X ..." every --log-every steps; the graphs and plans after the first step if requested
//   validation()   prints "val loss X ..."
//   finish()       prints the summary
// The file of --save has all state: what the example has put into its rg::TrainingState, the position in the random
// stream, which batches are drawn from, and the number of the step. It is written between two steps, when nothing of a
// step remains to be done. A training that goes on from it (--resume) prints the remaining lines of one that was never
// stopped, in any --mode and with any --threads.
// finish() also prints the peaks that plans have predicted, in the first steps, and whether they were right. With
// --profile a few steps after the first are profiled (tracer/observe/profile.h); finish() prints a table of their
// times, and writes it, a Chrome trace and a chart of live memory to the folder. These steps are a little slower.
// Losses are printed with as many digits as are needed to read the same float back. On a terminal the step lines
// overwrite each other. Time and peak memory are those of the training steps, without validation. Bytes are those of
// tensor data on the device (engine/device.h).
#pragma once

#include <chrono>

#include "examples/common/options.h"
#include "examples/common/saved_choice.h"
#include "examples/common/training_step.h"
#include "retrograd/retrograd.h"

namespace examples {

class Session {
 public:
  /// `items_per_step`: the number of items, named by `unit` ("tokens"), for the speed. `state`: all that a step
  /// changes, and settings; loaded if the training is resumed. FileError if the file does not fit.
  Session(const Options& options, retrograd::nn::Module& model, int64_t items_per_step, std::string unit,
          TrainingStep::Parts parts, retrograd::TrainingState state);

  ~Session();
  Session(const Session&) = delete;

  bool next();
  /// Whether an every-th step was just done that is not the last.
  bool is_time(int64_t every) const { return steps_ % every == 0 && steps_ < options_.steps; }
  /// Throws Interrupted when a signal was received.
  void step(const retrograd::Tensor& input, const retrograd::Tensor& target);
  /// `note` follows the loss, like "accuracy 97.8 %".
  void validation(double loss, const std::string& note);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void resume();
  void show_graphs() const;
  void write_plans() const;
  int64_t steps_here() const { return steps_ - steps_before_; }
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
  retrograd::TrainingState state_;
  retrograd::Profile profile_;
  bool terminal_, line_open_ = false;  // the terminal shows an unfinished line
  double total_seconds_ = 0, first_step_seconds_ = 0, seconds_since_line_ = 0;
  // Done: of the training, of these before this program began, since the last line.
  int64_t steps_ = 0, steps_before_ = 0, steps_since_line_ = 0;
  int64_t peak_bytes_ = 0;
  retrograd::PeakReport watched_;  // of plans, in the first steps
  double last_loss_ = 0, last_validation_ = 0;
};

}  // namespace examples
