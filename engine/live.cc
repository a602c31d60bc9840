// See engine/live.h.
#include "engine/live.h"

#include "engine/recording.h"

namespace retrograd::inline v0::detail {

namespace {

template <class T>
Scalar scalar_of(const std::shared_ptr<std::atomic<T>>& number, LiveInteger integer) {
  Scalar now;
  read_live_numbers({&now, 1}, {.read = [number](std::span<Scalar> out) { out[0] = number->load(); },
                                .integer = std::move(integer)});
  return now;
}

}  // namespace

Scalar live_scalar(const std::shared_ptr<std::atomic<double>>& number) { return scalar_of(number, {}); }
Scalar live_scalar(const std::shared_ptr<std::atomic<int64_t>>& number) { return scalar_of(number, number); }

Dim live_size(const std::shared_ptr<std::atomic<int64_t>>& number) {
  if (FunctionRecording* function = recorded_function())
    return function->live_size(number, effective_location({}));
  refuse_recording("Live", "each run would use the same size", effective_location({}));
  return number->load();
}

void live_number_was_fixed(std::function<bool()> is_same, SourceLocation where) {
  if (FunctionRecording* function = recorded_function())
    function->depends_on(std::move(is_same), "a live number that was used as a plain one has changed");
  else
    refuse_recording("Live::value", "each run would use the same number", where);
}

}  // namespace retrograd::detail
