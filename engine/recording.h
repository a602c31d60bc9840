// Recording: what an operation that is no call of an op asks for while something is recorded: a write in place, .grad
// of a leaf, a number that each run reads again. Emitter::recording() gives it; it is null while calls run, and then
// the operation does its work at once.
//
//   Recording          of a backward (tracer/backward/recorder.h) or of a function
//   FunctionRecording  of a function (tracer/function/function_recorder.h): memory, .grad of leaves, and what decides the
//                      recording
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "engine/emitter.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class FunctionRecording;

using LiveInteger = std::shared_ptr<const std::atomic<int64_t>>;

/// Numbers that the host provides again for each run: a learning rate, a step count, an offset in a random stream.
struct LiveNumbers {
  static constexpr size_t kMost = 16;  // of one call

  /// Reads them now or, in recorded code, before each of its runs, in the order of these calls.
  std::function<void(std::span<Scalar>)> read;
  /// While a function is recorded: called once for each time that the numbers were read, with what was read and
  /// whether the function used it. It did not when the run, or the recording, ended with an error before that. The
  /// numbers that were read last are settled first.
  std::function<void(std::span<const Number> was_read, bool was_used)> settle = {};
  /// Called before each run of a recorded function: whether what was recorded from the numbers is still right;
  /// otherwise the function is recorded again. Empty: always.
  std::function<bool()> fits = {};
  /// A `Live` integer that is the only number: a recorded function may use it as a size.
  LiveInteger integer = {};

  /// Reads values.size() numbers, which are plain ones.
  void read_into(std::span<Number> values) const {
    Scalar now[kMost];
    read({now, values.size()});
    for (size_t i = 0; i < values.size(); ++i) values[i] = now[i].number();
  }
};

class Recording {
 public:
  /// Runs a backward that recorded code has started into the current emitter, so that it is part of the recording.
  /// Throws when it leads outside of what is recorded.
  virtual Tensors own_backward(const BackwardRequest& request, Walk& walk) = 0;
  /// Called by operations that are allowed but cannot be part of a recording: ends the recording, and a recorded
  /// function runs eagerly from then on. In a recorded backward it is an Error(unsupported).
  virtual void cannot_record(std::string_view op, std::string_view why, SourceLocation where) = 0;
  /// Symbols for numbers, with their values now.
  virtual void live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) = 0;
  /// Null of a backward.
  virtual FunctionRecording* of_function() { return nullptr; }

 protected:
  ~Recording() = default;
};

class FunctionRecording {
 public:
  /// The present value of `self`, as a cell that later writes do not change.
  virtual Tensor present_value(TensorImpl& self) = 0;
  /// From now on `self` has the value of `result`, which has the same type. Tensors that share its memory see the new
  /// value.
  virtual void write(TensorImpl& self, const Tensor& result, SourceLocation where) = 0;
  /// Whether the function has written to memory from outside, which then does not hold the new value yet.
  virtual bool writes_to(const Storage& memory) const = 0;
  /// Called when the state of an object decides what is recorded. `holds` is called before each run of a recorded
  /// function; when it returns false, the function is recorded again, and `what` says why.
  virtual void depends_on(std::function<bool()> holds, std::string_view what) = 0;
  /// A size for the number, which is that of each run: a plan is made for each value. Where sizes are fixed, the number
  /// now, on which the recording then depends.
  virtual Dim live_size(const LiveInteger& number, SourceLocation where) = 0;
  /// To be called before .grad of `leaf` is replaced: a recorded function replaces it in its runs, not when it is
  /// recorded.
  virtual void grad_is_replaced(TensorImpl& leaf) = 0;
  /// To be called before .grad of a leaf is read.
  virtual void grad_is_read(TensorImpl& leaf) = 0;
  /// To be called before a hook is added to a leaf.
  virtual void hook_is_added(const TensorImpl& leaf, SourceLocation where) = 0;
  /// To be called before `self` gets other sizes or strides: a tensor from outside, or an argument, keeps its own.
  virtual void geometry_changes(const TensorImpl& self, SourceLocation where) = 0;
  /// Each run makes `copy` of `values`, which the host has computed for the recording. Code that is recorded may read
  /// them until they are written to.
  virtual void made_of_host_values(const Tensor& copy, const Tensor& values) = 0;
  /// A tensor with data that shows what `cell` does; undefined if its value was not made by the host.
  virtual Tensor host_values(const TensorImpl& cell) const = 0;

 protected:
  ~FunctionRecording() = default;
};

/// What the current emitter records, if that is a function; else null.
inline FunctionRecording* recorded_function() {
  Recording* const recording = detail::current_emitter ? detail::current_emitter->recording() : nullptr;
  return recording ? recording->of_function() : nullptr;
}

/// Open while other tensors take the place of those that a user's code names (nn::functional_call). A recorded function
/// knows tensors from outside as objects, so a call of one runs as it is meanwhile.
class SubstitutionScope {
 public:
  SubstitutionScope() noexcept { ++open_; }
  ~SubstitutionScope() { --open_; }
  SubstitutionScope(const SubstitutionScope&) = delete;
  SubstitutionScope& operator=(const SubstitutionScope&) = delete;
  /// On this thread.
  static bool is_open() noexcept { return open_ > 0; }

 private:
  static constinit thread_local int open_;
};

/// The innermost function that this thread records, also where calls run in between (what is printed, or saved).
FunctionRecording* innermost_recorded_function();

/// Numbers for one call: read now, or symbols for them.
inline void read_live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) {
  if (detail::current_emitter)
    if (Recording* const recording = detail::current_emitter->recording())
      return recording->live_numbers(out, numbers);
  numbers.read(out);
}

/// See Recording::cannot_record. Returns when nothing is recorded.
inline void refuse_recording(std::string_view op, std::string_view why, SourceLocation where) {
  if (Recording* recording = Emitter::current().recording()) recording->cannot_record(op, why, where);
}

}  // namespace retrograd
#pragma GCC visibility pop
