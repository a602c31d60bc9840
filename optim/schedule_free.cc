// See optim/schedule_free.h. With y the parameter while training, z the sequence of steps and x the average:
// y = (1 - beta1) z + beta1 x, hence x = y + (z - y) (1 - 1 / beta1) and y = x + (z - x) (1 - beta1).
#include "optim/schedule_free.h"

#include "engine/recording.h"
#include "ops/arithmetic.h"

namespace retrograd::inline v0::optim {

void AdamWScheduleFree::step(SourceLocation where) {
  if (FunctionRecording* const function = recorded_function())
    function->depends_on([flag = is_training_, now = *is_training_] { return *flag == now; },
                         "an optimizer has been switched between train() and eval()");
  if (!*is_training_)
    fail(Category::bad_argument, "AdamWScheduleFree",
         "the parameters are averages since eval(). Hint: call train() before the next step", where);
  OptimizerOf::step(where);
}

void AdamWScheduleFree::mix(double (*share)(double beta1)) {
  NoGradGuard no_grad;
  const StateDict state = state_dict();
  size_t i = 0;
  for (const auto& group : param_groups())
    for (const Tensor& p : group.params) {
      const auto z = state.find(std::to_string(i++) + ".z");
      if (z == state.end()) continue;  // no step yet: all are equal
      p.add_(z->second - p, share(group.options.betas[0]));
    }
}

void AdamWScheduleFree::eval() {
  if (!*is_training_) return;
  mix([](double beta1) { return 1 - 1 / beta1; });
  *is_training_ = false;
}

void AdamWScheduleFree::train() {
  if (*is_training_) return;
  mix([](double beta1) { return 1 - beta1; });
  *is_training_ = true;
}

}  // namespace retrograd::optim
