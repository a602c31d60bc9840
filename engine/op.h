// OpInfo: everything generic code knows about an op. It is made at compile time from the op's struct (ops/op.h); a
// user-defined op provides the same struct. There is no registry: code that emits an op passes the address of its
// OpInfo.
//
// Call is one application of an op, on the caller's stack: borrowed operands (null: not given, or replaced by a number
// in the attributes) and borrowed attributes. Attributes are plain data, copied as bytes. Generic code accesses their
// fields through an AttrVisitor, which serves hashing, printing, parsing, comparison and the replacement of numbers by
// symbols.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// The possible types of a field of an attribute struct. `name` is the field's name in PyTorch and in the IR text.
class AttrVisitor {
 public:
  virtual void field(std::string_view name, bool& value) = 0;
  virtual void field(std::string_view name, int64_t& value) = 0;  // structure: part of the key
  virtual void field(std::string_view name, Dim& value) = 0;      // a size: a symbol while tracing
  virtual void field(std::string_view name, Scalar& value) = 0;   // a number: a symbol while tracing
  virtual void field(std::string_view name, Shape& value) = 0;    // sizes
  virtual void field(std::string_view name, IntList& value) = 0;  // structure
  virtual void field(std::string_view name, ScalarType& value) = 0;
  virtual void field(std::string_view name, Device& value) = 0;  // the CPU is neither printed nor required

 protected:
  ~AttrVisitor() = default;
};

enum class Trait : uint32_t {
  pure = 1,          // no effect: may be moved, shared, dropped
  effect = 2,        // keeps its place among effects
  host = 4,          // runs host code given by the user
  view = 8,          // the result shares the operand's memory
  elementwise = 16,  // result element i depends on element i of each operand
  commutative = 32,
  bookkeeping = 64,  // unpack, hook, accumulate_grad...: Taper and Dual treat it by name, never by a rule
  random = 128,      // draws from a generator: never merged with another
  updates = 256,     // an optimizer's step: result k may be computed into the memory of operand k
  checks = 512,  // fails for some values of its operands (an index, a singular matrix): runs even if unused
  fresh = 1024,  // of an op that runs on the host: results have new memory, and no operand is kept
  overwrites = 2048,  // the result may be computed into the memory of operand 0
  row_major = 4096    // the result, even if it shares memory, is row-major where operand 0 is
};
/// The dtype that autocast (engine/autocast.h) gives the floating operands of an op, float64 and float8 excepted.
enum class CastPolicy : uint8_t {
  none,             // their own
  lower_precision,  // the dtype of the scope
  float32,
  promote,  // float32 if any of them has it
  banned    // refused in float16; else float32
};

constexpr uint32_t operator|(Trait a, Trait b) { return static_cast<uint32_t>(a) | static_cast<uint32_t>(b); }
constexpr uint32_t operator|(uint32_t a, Trait b) { return a | static_cast<uint32_t>(b); }

/// The largest number of results of an op that computes. A user-defined function, and compiled code, may have
/// kMaxOperands.
inline constexpr int kMaxOutputs = 8;
/// The largest number of operands of a tape record and of a node, and of results. The number of values that may die at
/// a node, operands and results together, is counted in 16 bits.
inline constexpr size_t kMaxOperands = 32767;

struct OpInfo;
struct Record;

/// One application of an op.
struct Call {
  const OpInfo* op;
  std::span<TensorImpl* const> operands;
  void* attrs;  // borrowed; the emitter copies what it keeps
  SourceLocation where;
  int outputs = 1;

  template <class A>
  A& attrs_as() const {
    return *static_cast<A*>(attrs);
  }
};

/// The values that a record keeps for its rule.
struct SaveSet {
  uint64_t operands = 0;  // bit i: operand i
  uint64_t results = 0;
};

class BatchContext;
class RuleContext;
class TangentContext;

struct OpInfo {
  std::string_view name;
  uint32_t traits = 0;
  int8_t arity = 1;    // -1: any number of operands
  int8_t outputs = 1;  // -1: depends on the call
  uint16_t attrs_size = 0;
  bool has_scalar_operand = false;  // a null operand means the attribute `scalar`
  uint8_t optional = 0;             // bit i: operand i may be null (except for bookkeeping ops)
  CastPolicy cast_policy = CastPolicy::none;
  void (*visit_attrs)(void* attrs, AttrVisitor&) = nullptr;
  /// Checks the operands and sets dtype, device and shape of every output.
  void (*infer)(const Call&, TensorImpl* const* outputs) = nullptr;
  /// Runs on the host wherever the operands are (bookkeeping, opaque user-defined functions); such an op has no kernel.
  void (*run_on_host)(const Call&, Tensor* results) = nullptr;
  /// Trait view: sets strides and offset of the output, whose storage is the operand's.
  void (*layout)(const Call&, TensorImpl& output) = nullptr;
  /// The values to keep when the operands in `wants` (bit i) want a gradient.
  SaveSet (*saves)(const Call&, uint64_t wants) = nullptr;
  void (*vjp)(RuleContext&) = nullptr;  // null: not differentiable
  void (*jvp)(TangentContext&) = nullptr;
  /// The op on operands with a batch dim in front (engine/batching.h); null: once for each sample.
  void (*batch)(BatchContext&) = nullptr;
  /// The backward of a record that is one opaque node, function_backward: operands are the gradients of the results,
  /// then the saved tensors.
  void (*host_backward)(Record& record, std::span<TensorImpl* const> operands, Tensor* results) = nullptr;
  std::string_view no_derivative = {};  // the reason, when vjp is null
  std::string_view doc = {};
  std::string_view operands = {};  // their names, "input, weight"

  bool is(Trait t) const { return traits & static_cast<uint32_t>(t); }
};

/// "matmul: inner sizes differ. Operands f32[32,64], f32[65,10] (called at mlp.cc:44)" as an Error.
[[noreturn]] void fail_call(const Call& call, Category category, std::string_view text);
[[noreturn]] void fail_counts(std::string_view op, size_t operands, size_t results, SourceLocation where);
/// Error(unsupported) beyond kMaxOperands.
inline void check_counts(std::string_view op, size_t operands, size_t results, SourceLocation where = {}) {
  if (operands > kMaxOperands || results > kMaxOperands) [[unlikely]]
    fail_counts(op, operands, results, where);
}

/// Error(bad_argument) unless all operands of a call are on one device.
inline void check_devices(const Call& call) {
  const TensorImpl* first = nullptr;
  for (const TensorImpl* x : call.operands) {
    if (!x) continue;
    if (!first) first = x;
    if (!(x->device() == first->device())) [[unlikely]]
      fail_call(call, Category::bad_argument, "operands are on different devices");
  }
}

}  // namespace retrograd
#pragma GCC visibility pop
