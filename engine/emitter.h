// Emitter: the single entry point. Every operation of the user, of a rule or of the driver is one call of emit() on the
// current emitter.
//
// Emitters stack:                                 | emit(call)
//   Runner   (engine/runner.h)                    | runs the call now on an executor: eager execution
//   Recorder (tracer/backward/recorder.h)         | infers types and appends a node to a graph: tracing a backward
//   FunctionRecorder (tracer/function/function_recorder.h) | the same for a compiled function: writes and random draws
//                                                 | become values
//   Taper    (engine/taper.h)                     | emits into the emitter below, and appends a tape record when a
//                                                 | gradient is wanted
//   Dual     (engine/dual.h)                      | carries tangents: emits the primal below, and the op's jvp
// The current emitter is thread-local and scoped, since factories and hook bodies have no operand that would name one.
// Without a scope it is the eager one: Taper over Runner. Scopes nest and never outlive their emitter. Layers are
// opened by users' scope guards, which may end in any order.
#pragma once

#include <atomic>

#include "engine/grad_mode.h"
#include "engine/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct BackwardRequest;
class Recording;
class Region;
class Walk;

/// What the driver is doing, for the annotations of recorded nodes: "mm#3 rule".
struct Origin {
  const Record* record = nullptr;  // null: a leaf
  uint32_t ordinal = 0;  // place of the record in the order of this backward, or of the leaf among its leaves
  std::string_view part = {};  // "rule", "tensor hook", ...
};

class Emitter {
 public:
  virtual ~Emitter() = default;
  /// Performs the call and sets call.outputs results. Each is a new cell, except for the results of bookkeeping ops.
  virtual void emit(const Call& call, Tensor* results) = 0;
  /// For error texts: "Taper over Runner".
  virtual std::string name() const = 0;

  /// The kind of values, which depends on the emitter at the bottom of the stack.
  enum class Values : uint8_t {
    computed,  // Runner: they have data
    of_backward,  // Recorder: sizes and numbers may be symbols, layouts are unknown, in-place writes are impossible
    of_function  // FunctionRecorder: sizes and layouts are known, data is not; a write makes a new value
  };
  virtual Values values() const = 0;
  bool is_symbolic() const { return values() != Values::computed; }

  /// Attributes and types of a record for a rule: with symbols for sizes and numbers while tracing.
  virtual const void* attrs_of(const Record& record);
  virtual TensorType type_of(const Record& record, int i);  // operands, then outputs
  /// The same for the attributes of a call that a region recomputes.
  virtual const void* attrs_of(const Region& region, size_t call);
  /// What the driver does next. Called only where is_symbolic().
  virtual void at(const Origin&) {}

  /// What is being recorded, for operations that are no calls (engine/recording.h); null while calls run.
  virtual Recording* recording() { return nullptr; }

  static Emitter& current();
  class Scope;
  class Layer;
};

/// An emitter that hands calls on to the one below; the other emitters of the stack derive from it.
class PassThrough : public Emitter {
 public:
  PassThrough(std::string_view name, Emitter& below) : name_(name), below_(&below) {}
  void emit(const Call& call, Tensor* results) override { below_->emit(call, results); }
  std::string name() const final { return std::string(name_) + " over " + below_->name(); }
  Values values() const final { return below_->values(); }
  const void* attrs_of(const Record& record) final { return below_->attrs_of(record); }
  TensorType type_of(const Record& record, int i) final { return below_->type_of(record, i); }
  const void* attrs_of(const Region& region, size_t call) final { return below_->attrs_of(region, call); }
  void at(const Origin& origin) final { below_->at(origin); }
  Recording* recording() final { return below_->recording(); }
  Emitter& below() const { return *below_; }

 protected:
  void stand_on(Emitter& below) { below_ = &below; }

 private:
  std::string_view name_;
  Emitter* below_;
};

/// Why a value of vmap or of a recording has no data, and what to do about it: in its function, or after that.
std::string_view no_data_text(const TensorImpl& value);

/// Taper over Runner on the CPU executor: what user code emits into by default.
Emitter& eager_emitter();
/// Runner on the CPU executor.
Emitter& eager_runner();

namespace detail {
inline thread_local constinit Emitter* current_emitter = nullptr;
}  // namespace detail
inline Emitter& Emitter::current() {
  return detail::current_emitter ? *detail::current_emitter : eager_emitter();
}

namespace detail {
/// An emitter on top of its thread's. Their list is in engine/emitter_scope.cc.
struct OpenEmitter {
  Emitter* emitter;
  Emitter::Layer* layer = nullptr;  // null: a Scope
  OpenEmitter* outer = nullptr;

  void enter() noexcept;
  void leave() noexcept;
};
}  // namespace detail

/// Makes an emitter the current one of this thread, for a block of library code.
class Emitter::Scope {
 public:
  explicit Scope(Emitter& emitter) : open_{&emitter} { open_.enter(); }
  ~Scope() { open_.leave(); }
  Scope(const Scope&) = delete;

 private:
  detail::OpenEmitter open_;
};

/// An emitter that a guard of the user puts on top of its thread's. Layers end in any order, and on any thread. The end
/// of a layer marks it: from then on it passes on what is still emitted into it, and its own thread releases it when no
/// other emitter is above it.
class Emitter::Layer : public PassThrough, public RefCounted {
 public:
  virtual ~Layer() = default;
  static void destroy(Layer* layer) noexcept { delete layer; }
  void open() noexcept;
  void end() noexcept;
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }
  /// Layers that this thread has not released.
  static int count() noexcept;

 protected:
  explicit Layer(std::string_view name) : PassThrough(name, current()) {}

 private:
  friend struct detail::OpenEmitter;
  detail::OpenEmitter open_{this, this};
  std::atomic<bool> is_open_{true};
};

/// Whether values count as having no layout yet on this thread, like values of a graph that is being recorded:
/// reshape() then copies a tensor that is not row-major, even where a view would be possible. This holds in rules and
/// traceable hooks of an eager backward: kernels get operands of the same layout as in a traced one, and give the same
/// bits. It does not hold in opaque user code, which eager and traced backwards call in the same way.
class UnknownLayouts {
 public:
  explicit UnknownLayouts(bool on) : previous_(enabled) { enabled = on; }
  ~UnknownLayouts() { enabled = previous_; }
  UnknownLayouts(const UnknownLayouts&) = delete;
  static bool is_enabled() { return enabled; }

 private:
  static inline thread_local constinit bool enabled = false;
  bool previous_;
};

}  // namespace retrograd
#pragma GCC visibility pop
