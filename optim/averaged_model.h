// AveragedModel: averages of a model's parameters over training, as torch.optim.swa_utils.AveragedModel.
//
//   optim::AveragedModel averaged(model, {.decay = 0.999});
//   ... optimizer.step(); averaged.update_parameters();
//   {
//     optim::AveragedModel::Applied scope(averaged);   // the model has the averages
//     evaluate(model);
//   }
//
// With a decay the average is exponential: average = decay * average + (1 - decay) * value. Without one all updates count
// the same: stochastic weight averaging (Izmailov et al. 2018). The first update copies the values. Buffers are copied at
// each update, or averaged with use_buffers.
// update_parameters() can be recorded in a training step.
// Limits: the model outlives it; its parameters stay the same tensors.
#pragma once

#include <memory>
#include <optional>

#include "io/state_dict.h"
#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

struct AveragedModelOptions {
  std::optional<double> decay = {};  ///< in [0, 1]
  bool use_buffers = false;
};

class AveragedModel {
 public:
  /// Error(bad_argument) for a decay outside its domain.
  explicit AveragedModel(const nn::Module& model, AveragedModelOptions options = {},
                         SourceLocation where = SourceLocation::current());

  /// Takes the present values of the model into the averages.
  void update_parameters(SourceLocation where = SourceLocation::current());
  int64_t n_averaged() const;
  /// The averages, under the model's names: for nn::functional_call. They share memory with this.
  StateDict averages() const;
  /// The same as "module.NAME", and "n_averaged": PyTorch's keys.
  StateDict state_dict() const;
  /// Error(bad_argument) for a missing or unknown key, shape_mismatch.
  void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current());

  /// Puts the averages into the model, and at its end the model's own values back. Both are copies.
  class Applied {
   public:
    explicit Applied(const AveragedModel& averaged);
    ~Applied();
    Applied(const Applied&) = delete;
    Applied& operator=(const Applied&) = delete;

   private:
    Tensors targets_, own_;
  };

 private:
  struct Data;
  std::shared_ptr<Data> data_;
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
