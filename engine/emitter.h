// Emitter: the one door. Every operation, of the user, of a rule or of the driver, is one call of emit() on the current emitter.
//
// Emitters stack:                              | emit(call) does
//   Runner   (engine/runner.h)                 | runs the call now on an executor: eager execution
//   Recorder (tracer/recorder.h)                | infers types and appends a node to a graph: tracing a backward
//   FunctionRecorder (tracer/function_recorder.h) | the same for a function of the user's: writes and draws become values
//   Taper    (engine/taper.h)                  | emits into the emitter below and appends a tape record when a gradient is wanted
//   Dual     (engine/dual.h)                   | carries tangents: emits the primal below, and the op's jvp
// The current emitter is thread-local and scoped, since factories and hook bodies have no operand to ask; without a scope it is the
// eager one: Taper over Runner. Scopes nest and never outlive their emitter; layers, which guards of the user's open, end in any order.
#pragma once

#include <atomic>
#include <functional>
#include <unordered_set>

#include "engine/grad_mode.h"
#include "ir/op.h"

namespace retrograd {

struct BackwardRequest;
class Walk;

/// What the driver is doing, for the notes of recorded nodes: "mm#3 rule".
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

  /// What values are, by what is at the bottom of the stack.
  enum class Values : uint8_t {
    computed,     // Runner: they have data
    of_backward,  // Recorder: sizes and numbers may be symbols, layouts are not known, nothing can be written to
    of_function  // FunctionRecorder: sizes and layouts are known, data is not; a write makes a new value
  };
  virtual Values values() const = 0;
  bool is_symbolic() const { return values() != Values::computed; }

  /// Attributes and types of a record as a rule may see them: with symbols for sizes and numbers while tracing.
  virtual const void* attrs_of(const Record& record);
  virtual TensorType type_of(const Record& record, int i);  // operands, then outputs
  /// What the driver does next: told where is_symbolic().
  virtual void at(const Origin&) {}

  /// Numbers that the host gives anew each time: a learning rate, a count of steps, a place in a random stream. Read now, or before each run
  /// of the function that is recorded, in the order of these calls.
  struct LiveNumbers {
    std::function<void(std::span<Scalar>)> read;
    /// While a function is recorded, called once for each time that they were read, with what was read: whether the function came to use it. It
    /// did not where the run, or the recording, ended with an error before that. What was read last is settled first.
    std::function<void(std::span<const Number> was_read, bool was_used)> settle = {};
    /// Asked before each run: whether what was made of them is still right beside the numbers; else it is recorded anew. Empty: always.
    std::function<bool()> fits = {};
  };
  static constexpr size_t kMostLiveNumbers = 16;  // of one call
  virtual void live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) { numbers.read(out); }
  // While something is recorded:
  /// Runs a backward that recorded code has started into the current emitter, so that it is part of the recording. Throws where it leads
  /// beyond what is recorded.
  virtual std::vector<Tensor> own_backward(const BackwardRequest& request, Walk& walk);
  /// Called by what is right to use but cannot be part of a recording: ends the recording, and a recorded function runs as it is from then
  /// on. Elsewhere an Error(unsupported). Returns where nothing is recorded.
  virtual void cannot_record(std::string_view /*op*/, std::string_view /*why*/, SourceLocation) {}
  /// Called where state of an object decides what is recorded. Asked before each run of a recorded function: where `holds()` gives false, it
  /// is recorded anew, and `what` says why.
  virtual void depends_on(std::function<bool()> /*holds*/, std::string_view /*what*/) {}
  // While a function is recorded:
  /// What `self` holds now, as a cell that later writes do not change.
  virtual Tensor present_value(TensorImpl& self);
  /// `self` has the value of `result`, of the same type, from now on; who shares its memory sees that.
  virtual void write(TensorImpl& self, const Tensor& result, SourceLocation where);
  /// To be called before .grad of `leaf` is replaced: a recorded function does so in its runs, not when it is recorded.
  virtual void grad_is_replaced(TensorImpl&) {}
  /// The same before it is looked at.
  virtual void grad_is_read(TensorImpl&) {}
  /// The same before a hook is added to it.
  virtual void hook_is_added(const TensorImpl&, SourceLocation) {}

  static Emitter& current();
  class Scope;
  class Layer;
};

/// An emitter that hands calls on to the one below; the others of the stack are made of it.
class PassThrough : public Emitter {
 public:
  PassThrough(std::string_view name, Emitter& below) : name_(name), below_(&below) {}
  void emit(const Call& call, Tensor* results) override { below_->emit(call, results); }
  std::string name() const final { return std::string(name_) + " over " + below_->name(); }
  Values values() const final { return below_->values(); }
  const void* attrs_of(const Record& record) final { return below_->attrs_of(record); }
  TensorType type_of(const Record& record, int i) final { return below_->type_of(record, i); }
  void at(const Origin& origin) final { below_->at(origin); }
  void live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) final {
    below_->live_numbers(out, numbers);
  }
  void write(TensorImpl& self, const Tensor& result, SourceLocation where) final {
    below_->write(self, result, where);
  }
  std::vector<Tensor> own_backward(const BackwardRequest& request, Walk& walk) final {
    return below_->own_backward(request, walk);
  }
  void cannot_record(std::string_view op, std::string_view why, SourceLocation where) final {
    below_->cannot_record(op, why, where);
  }
  void depends_on(std::function<bool()> holds, std::string_view what) final {
    below_->depends_on(std::move(holds), what);
  }
  Tensor present_value(TensorImpl& self) final { return below_->present_value(self); }
  void grad_is_replaced(TensorImpl& leaf) final { below_->grad_is_replaced(leaf); }
  void grad_is_read(TensorImpl& leaf) final { below_->grad_is_read(leaf); }
  void hook_is_added(const TensorImpl& leaf, SourceLocation where) final {
    below_->hook_is_added(leaf, where);
  }
  Emitter& below() const { return *below_; }

 protected:
  void stand_on(Emitter& below) { below_ = &below; }

 private:
  std::string_view name_;
  Emitter* below_;
};

/// Why a recorded value has no data, and what to do about it: while something is recorded, or when that is over.
std::string_view no_data_text();

/// Taper over Runner on the CPU executor: what user code emits into by default.
Emitter& eager_emitter();
/// Runner on the CPU executor.
Emitter& eager_runner();

namespace detail {
/// While a function is recorded: memory from outside that it has written to, and that does not hold the new value yet.
class RecordedWrites {
 public:
  using Memory = std::unordered_set<const Storage*>;
  explicit RecordedWrites(const Memory& written) : outer_(std::exchange(current, &written)) {}
  ~RecordedWrites() { current = outer_; }
  RecordedWrites(const RecordedWrites&) = delete;
  static bool contain(const Storage& memory) { return current && current->contains(&memory); }

 private:
  static inline thread_local constinit const Memory* current = nullptr;
  const Memory* outer_;
};
inline thread_local constinit Emitter* current_emitter = nullptr;
}  // namespace detail
inline Emitter& Emitter::current() {
  return detail::current_emitter ? *detail::current_emitter : eager_emitter();
}

namespace detail {
/// An emitter on top of its thread's; the list of them is in engine/emitter_scope.cc.
struct OpenEmitter {
  Emitter* emitter;
  Emitter::Layer* layer = nullptr;  // that this is; null: of a Scope
  OpenEmitter* outer = nullptr;

  void enter() noexcept;
  void leave() noexcept;
};
}  // namespace detail

/// Makes an emitter the current one of this thread, for a block of the library's code.
class Emitter::Scope {
 public:
  explicit Scope(Emitter& emitter) : open_{&emitter} { open_.enter(); }
  ~Scope() { open_.leave(); }
  Scope(const Scope&) = delete;

 private:
  detail::OpenEmitter open_;
};

/// An emitter that a guard of the user's puts on top of its thread's. Layers end in any order, and on any thread: whoever ends one marks it, it
/// then passes on what is still emitted into it, and its thread lets go of it when no other is above it.
class Emitter::Layer : public PassThrough, public RefCounted {
 public:
  virtual ~Layer() = default;
  static void destroy(Layer* layer) noexcept { delete layer; }
  void open() noexcept;
  void end() noexcept;
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }
  /// Those that this thread has not let go of.
  static int count() noexcept;

 protected:
  explicit Layer(std::string_view name) : PassThrough(name, current()) {}

 private:
  friend struct detail::OpenEmitter;
  detail::OpenEmitter open_{this, this};
  std::atomic<bool> is_open_{true};
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
  static inline thread_local constinit bool enabled = false;
  bool previous_;
};

}  // namespace retrograd
