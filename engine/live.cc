// See engine/live.h.
#include "engine/live.h"

#include "engine/recording.h"

namespace retrograd::inline v0::detail {

Scalar live_scalar(std::function<Scalar()> now) {
  Scalar number;
  read_live_numbers({&number, 1}, {[now = std::move(now)](std::span<Scalar> out) { out[0] = now(); }});
  return number;
}

void live_number_was_fixed(std::function<bool()> is_same, SourceLocation where) {
  if (FunctionRecording* function = recorded_function())
    function->depends_on(std::move(is_same), "a live number that was used as a plain one has changed");
  else
    refuse_recording("Live::value", "each run would use the same number", where);
}

}  // namespace retrograd::detail
