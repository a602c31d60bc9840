// autocast: mixed precision by op. While a scope is open on a thread, an op gets its floating operands in the dtype
// that its CastPolicy (engine/op.h) names: matrix products in the 16-bit dtype of the scope, what needs range in
// float32.
//
// Where it takes effect. The uppermost emitter that differentiates, Taper or Dual, casts the operands of a call by
// calls of `to` before it emits the call: so casts are on the tape, in graphs, and have tangents. An emitter below
// finds nothing left to cast. A public function that is made of several ops casts as one op would (AutocastFunction).
// Where it does not: it is off in backwards, hooks and packs, which compute in the dtypes of the forward; in writes in
// place, whose dtype is given; and in graphs that are replayed. Forward and backward of a custom Function have the
// scope of its call, and so has a body that is called again (checkpoint_loop, recompute).
//
// The cache. A float32 leaf that requires a gradient is converted once, until it is written to or the outermost scope
// ends. Each use still has its own record of `to`, on shared memory: values and gradients have the same bits without
// the cache, and in recorded functions, which have none: passes merge equal conversions there. A write that the
// library does not see (through data of the caller) is not noticed.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "engine/op.h"
#include "engine/open_scopes.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class Emitter;

namespace detail {

class AutocastCache;

struct AutocastMode {
  ScalarType dtype;                      // Undefined: off
  ScalarType given;                      // by the user, also where it is off
  std::shared_ptr<AutocastCache> cache;  // null: none

  bool is_on() const { return dtype != ScalarType::Undefined; }
};

/// Of the innermost scope of this thread; null if there is none, or if it is off.
inline const AutocastMode* autocast_mode() {
  const AutocastMode* mode = OpenScopes<AutocastMode>::innermost();
  return mode && mode->is_on() ? mode : nullptr;
}
/// What decides the casts of this thread: a dtype, or Undefined where autocast is off.
inline ScalarType autocast_dtype() {
  const AutocastMode* mode = autocast_mode();
  return mode ? mode->dtype : ScalarType::Undefined;
}

}  // namespace detail

struct AutocastOptions {
  bool enabled = true;  // false: autocast is off in the scope
  bool cache_enabled = true;
};

/// torch.autocast: on from here until the object is destroyed, for the thread that made it, on all devices. Scopes
/// nest, and end in any order: of the open ones, the one opened last decides. `dtype` is float16 or bfloat16:
/// Error(bad_argument) otherwise.
class autocast {
 public:
  explicit autocast(ScalarType dtype = kBFloat16, AutocastOptions options = {},
                    SourceLocation where = SourceLocation::current());

 private:
  OpenScopes<detail::AutocastMode>::Guard guard_;
};

/// Whether autocast is on on this thread.
inline bool is_autocast_enabled() { return detail::autocast_mode(); }
/// The dtype of the innermost scope, also if that is off; without a scope, bfloat16.
ScalarType get_autocast_dtype();

/// Counters of the process: casts of operands, and how many of these took a converted leaf from the cache.
struct AutocastCounters {
  std::atomic<int64_t> casts{0}, cached{0};
};
inline constinit AutocastCounters autocast_counters;

namespace detail {

/// Autocast with this dtype, or off (Undefined), for a block of library code.
class AutocastAs {
 public:
  explicit AutocastAs(ScalarType dtype);
  AutocastAs(const AutocastAs&) = delete;

 private:
  std::optional<OpenScopes<AutocastMode>::Guard> guard_;
};
struct AutocastOff : AutocastAs {
  explicit AutocastOff(bool is_off = true) : AutocastAs(is_off ? ScalarType::Undefined : autocast_dtype()) {}
};

/// f, called under the autocast of where this is called.
template <class F>
auto with_present_autocast(F f) {
  return [f = std::move(f), dtype = autocast_dtype()](auto&&... arguments) {
    const AutocastAs as_before(dtype);
    return f(std::forward<decltype(arguments)>(arguments)...);
  };
}

/// Whether operands of the op may have to be cast now.
inline bool is_autocast(const OpInfo& op) { return op.cast_policy != CastPolicy::none && autocast_mode(); }

/// A call with its operands cast as the op's policy says, by calls emitted into `emitter`.
/// Error(unsupported) for a banned op.
class CastCall {
 public:
  CastCall(const Call& call, Emitter& emitter);
  CastCall(const CastCall&) = delete;
  const Call& call() const { return call_; }

 private:
  Call call_;
  Tensors made_;
  std::vector<TensorImpl*> operands_;
};

}  // namespace detail

namespace ops {

/// In a public function that is made of several ops: casts its operands as an op of this policy gets them, and switches
/// autocast off for the ops inside. `operands`: all of them; some may be undefined.
class AutocastFunction {
 public:
  AutocastFunction(CastPolicy policy, std::initializer_list<const Tensor*> operands);
  /// The tensor to compute with.
  Tensor operator()(const Operand& x) const;

 private:
  const ScalarType dtype_;  // Undefined: nothing is cast
  const detail::AutocastOff inside_;
};

}  // namespace ops
}  // namespace retrograd
#pragma GCC visibility pop
