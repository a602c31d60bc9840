// OpenBackwards: backwards that are part of a recorded function, as hooks see them in a run.
//
// A plan is not a backward, but code called by its hooks may ask for the current one: multi-grad hooks wait for the
// tensors that it reaches, callbacks for its end. So before the first user code in a recorded backward a node
// `begin_backward` makes a CurrentBackward, which knows what the recorded backward reached, and passes it as an
// opaque value to the node `end_backward` at the end, which calls the callbacks. When a run ends with an error, the
// CurrentBackward is destroyed with the opaque value.
// Without user code there are no such nodes, and a device's graphs of launches are not cut.
// The backward of a differentiable function is part of the one that runs outside: it has no end of its own.
#pragma once

#include <functional>
#include <vector>

#include "engine/driver.h"
#include "tracer/function/recorded_function.h"

namespace retrograd::inline v0 {

class FunctionRecorder;

class OpenBackwards {
 public:
  explicit OpenBackwards(FunctionRecorder& of) : of_(of) {}

  /// Runs a backward that is part of the recording.
  Tensors within(const BackwardRequest& request, Walk& walk, const std::function<Tensors()>& run);
  /// To be called before user code: begins the open backwards for it.
  void begin();

 private:
  struct Open {
    Walk* walk;
    Tensor value;  // any
    Tensor begun;  // the opaque value; undefined until the first user code
  };
  void begin(Open& open);

  FunctionRecorder& of_;
  std::vector<Open> open_;  // innermost last
};

}  // namespace retrograd
