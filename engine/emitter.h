// Emitter: the one door. Every operation, of the user, of a rule or of the driver, is one call of emit() on the current emitter.
//
// Emitters stack:                              | emit(call) does
//   Runner   (engine/runner.h)                 | runs the call now on an executor: eager execution
//   Recorder (tracer/recorder.h)                | infers types and appends a node to a graph: tracing
//   Taper    (engine/taper.h)                  | emits into the emitter below and appends a tape record when a gradient is wanted
//   Dual     (engine/dual.h)                   | carries tangents: emits the primal below, and the op's jvp
// The current emitter is thread-local and scoped, since factories and hook bodies have no operand to ask; without a scope it is the
// eager one: Taper over Runner. Scopes nest and never outlive their emitter.
#pragma once

#include "ir/op.h"

namespace retrograd {

/// What the driver is doing, for the notes of recorded nodes: "matmul#3 lhs".
struct Origin {
  const Record* record = nullptr;  // null: a leaf
  uint32_t ordinal = 0;  // place of the record in the order of this backward, or of the leaf among its leaves
  std::string_view part = {};  // "rule", "tensor hook", ...
};

class Emitter {
 public:
  virtual ~Emitter() = default;
  /// Performs the call and sets call.outputs results. Each is a fresh cell, save for the results of bookkeeping ops.
  virtual void emit(const Call& call, Tensor* results) = 0;
  /// For error texts: "Taper over Runner".
  virtual std::string name() const = 0;
  /// True when values have no data (the bottom of the stack is a Recorder).
  virtual bool is_symbolic() const = 0;

  /// Attributes and types of a record as a rule may see them: with symbols for sizes and numbers while tracing.
  virtual const void* attrs_of(const Record& record);
  virtual TensorType type_of(const Record& record, int i);  // operands, then outputs
  virtual void at(const Origin&) {}

  static Emitter& current();
  class Scope {
   public:
    explicit Scope(Emitter& emitter);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    Emitter* previous_;
  };
};

/// Taper over Runner on the CPU executor: what user code emits into by default.
Emitter& eager_emitter();
/// Runner on the CPU executor.
Emitter& eager_runner();

namespace detail {
inline thread_local constinit Emitter* current_emitter [[gnu::tls_model("initial-exec")]] = nullptr;
}
inline Emitter& Emitter::current() {
  return detail::current_emitter ? *detail::current_emitter : eager_emitter();
}
inline Emitter::Scope::Scope(Emitter& emitter) : previous_(detail::current_emitter) {
  detail::current_emitter = &emitter;
}
inline Emitter::Scope::~Scope() { detail::current_emitter = previous_; }

/// Gradient mode of this thread: with it off, Taper records nothing.
class GradMode {
 public:
  static bool is_enabled() { return enabled; }
  static void set_enabled(bool on) { enabled = on; }

 private:
  static inline thread_local constinit bool enabled [[gnu::tls_model("initial-exec")]] = true;
};

class AutoGradMode {
 public:
  explicit AutoGradMode(bool on) : previous_(GradMode::is_enabled()) { GradMode::set_enabled(on); }
  ~AutoGradMode() { GradMode::set_enabled(previous_); }
  AutoGradMode(const AutoGradMode&) = delete;

 private:
  bool previous_;
};
/// Whether values count as having no layout yet on this thread, as those of a graph that is recorded: reshape() then copies what is not
/// row-major, also where another view would do. So it is in rules and traceable hooks of an eager backward: kernels are called with operands
/// of the same layout there as in a traced one, and give the same bits. Not in opaque code of the user's, which both call in the same way.
class UnknownLayouts {
 public:
  explicit UnknownLayouts(bool on) : previous_(enabled) { enabled = on; }
  ~UnknownLayouts() { enabled = previous_; }
  UnknownLayouts(const UnknownLayouts&) = delete;
  static bool is_enabled() { return enabled; }

 private:
  static inline thread_local constinit bool enabled [[gnu::tls_model("initial-exec")]] = false;
  bool previous_;
};

struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
struct EnableGradGuard : AutoGradMode {
  EnableGradGuard() : AutoGradMode(true) {}
};

}  // namespace retrograd
