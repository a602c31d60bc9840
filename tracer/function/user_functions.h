// UserFunctions: calls of user-defined functions (engine/function.h) in a recorded function.
//
// Opaque functions. The results of an opaque function are known only after a call, so a function that calls one first
// runs eagerly (a dry run), and the observed result types are kept (tracer/function/compile.cc). Then the call is a
// node `function` whose results have the observed types, and the ordinary rule turns its record into a node
// `function_backward`. The context, which forward creates in each run, travels from one to the other as an opaque
// value. If backward previously returned no gradient though one is needed, the backward does not continue there. A
// run in which the function returns something else is an error: the nodes after it can no longer be changed. Sizes
// are fixed in such a recording: only the types of one call are known.
// Results are passed on row-major. An argument that forward marks as dirty is copied before the call, and has a new
// value after it.
//
// Traceable functions. Forward runs on recorded values, so its operations are part of the graph, and the record on
// the recorded tape has the function's own backward. A replay that is to be differentiated again needs such a record,
// too; its place is kept here.
#pragma once

#include <unordered_map>
#include <vector>

#include "tracer/function/recorded_function.h"

namespace retrograd::inline v0 {

class FunctionRecorder;

/// Thrown at a call of an unknown opaque function: the enclosing function must first run eagerly.
class DryRunNeeded : public Error {
 public:
  DryRunNeeded() : Error(Category::unsupported, "the results of its opaque functions are not known yet") {}
};

/// A call of an opaque function, as observed earlier.
struct KnownCall {
  FunctionCall::Signature signature;
  std::shared_ptr<std::atomic<uint64_t>> missing;  // gradients that its backward did not return
};
using KnownCalls = std::vector<KnownCall>;

class UserFunctions final : public FunctionCall::Observer {
 public:
  UserFunctions(FunctionRecorder& of, const KnownCalls* known) : of_(of), known_(known) {}

  const FunctionCall::Signature& expected(const FunctionCall::Of& function,
                                          const std::vector<TensorType>& arguments) override;
  Tensors record(const FunctionCall::Of& function, const std::vector<const Tensor*>& arguments,
                 const FunctionCall::ForwardOf& forward, const FunctionCall::Signature& signature,
                 const AutogradContext& context) override;
  void emit_backward(const Call& call, Tensor* results);
  /// Emits a traceable function, which runs now.
  void emit_traceable(const Call& call, Tensor* results);

  /// Throws DryRunNeeded if the function made an unknown call, FixedSizesNeeded if it made one with symbols as sizes,
  /// even if it caught the exception.
  void check_known() const;
  /// Refuses a write to memory that a result of an opaque function shares with its argument.
  void check_write(const Storage* memory, SourceLocation where) const;
  /// Throws NotRecordable if a result of an opaque function shares memory with another tensor: a run would make a
  /// copy.
  void check_results(const Tensors& results) const;
  void finish(RecordedFunction& out);

  template <class F>
  void each_held(const F& f) const {
    for (const auto& [context, call] : opaque_calls_) f(call.context.get());
    for (const auto& call : traceable_calls_)
      for (const Tensor& t : call.made) f(t.get());
  }

 private:
  struct OpaqueCall {
    Tensor context;                                  // the opaque value
    std::shared_ptr<std::atomic<uint64_t>> missing;  // arguments for which backward returns no gradient
  };
  const OpaqueCall* find(const Record& record) const;

  FunctionRecorder& of_;
  const KnownCalls* known_;  // null after the recording
  size_t seen_ = 0;
  bool needs_dry_run_ = false, needs_fixed_sizes_ = false;
  std::unordered_map<const AutogradContext*, OpaqueCall> opaque_calls_;
  // Memory of a result -> memory of the argument that contains it.
  std::unordered_map<const Storage*, const Storage*> shown_;
  std::vector<RecordedFunction::TraceableCall> traceable_calls_;
};

}  // namespace retrograd
