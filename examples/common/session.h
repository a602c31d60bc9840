// Session: what the training loops of the examples share, so that each shows only its own part.
//
//   forward(f)     runs f under the chosen pair of saved-tensor hooks
//   backward(loss) eager or traced, as chosen; the first time, also shows the graph if asked to
//   update(f)      runs f, which is to do the optimizer's step and what belongs to it
//   step_done()    prints "step N loss X ...", every --log-every steps
//   validation()   prints "val loss X ..."
//   finish()       prints the summary
// With --profile a few steps after the first are looked at (tracer/profile.h); finish() prints a table of
// what took how long, and writes it, a Chrome trace and a chart of live memory into the folder. These steps
// are a little slower. Losses are printed with as many digits as it takes to read the same float back. On a
// terminal the step lines overwrite each other. Time and peak memory are those of the training steps: what
// validation takes is not counted. Bytes are those of tensor data.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "examples/common/options.h"
#include "examples/common/saved_choice.h"
#include "retrograd/retrograd.h"

namespace examples {

class Session {
 public:
  /// `items_per_step` counts what `unit` names ("tokens"), for the speed.
  Session(const Options& options, const retrograd::nn::Module& model, int64_t items_per_step,
          std::string unit);

  ~Session();
  Session(const Session&) = delete;

  retrograd::Tensor forward(const std::function<retrograd::Tensor()>& f);
  void backward(const retrograd::Tensor& loss);
  void update(const std::function<void()>& f);
  /// Throws Interrupted when a signal has come.
  void step_done(int64_t step, double loss);
  /// `note` follows the loss, like "accuracy 97.8 %".
  void validation(double loss, const std::string& note);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void show_graph() const;
  bool is_profiled(int64_t step) const;
  void show_profile();
  void close_line();
  void print_line(const std::string& line, bool overwrite);

  const Options& options_;
  int64_t parameters_, items_per_step_;
  std::string unit_;
  SavedChoice saved_;
  retrograd::CompiledBackward traced_ = retrograd::compile_backward();
  retrograd::Profile profile_;
  std::optional<retrograd::ProfileScope> profiling_;  // while a profiled step runs
  bool terminal_, line_open_ = false;                 // an unfinished line stands on the terminal
  Clock::time_point step_began_;
  double total_seconds_ = 0, first_step_seconds_ = 0, seconds_since_line_ = 0;
  int64_t steps_ = 0, steps_since_line_ = 0;
  int64_t peak_bytes_ = 0;
  double last_loss_ = 0, last_validation_ = 0;
};

}  // namespace examples
