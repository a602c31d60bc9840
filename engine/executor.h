// Executor: a device that runs calls. The Runner uses it node by node, a plan's replay through bound kernels; both see the same kernels.
// Written once for all devices is everything above it: order, lifetimes, host nodes.
//
// Several nodes of a graph may run as one step. Which ones is decided over the graph (ir/passes/fuse.h), by what fused_role() says of each; a
// plan describes such a group as a FusedGroup and gets a FusedKernel. A group computes what its nodes do one by one, bit for bit.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "engine/allocator.h"
#include "ir/op.h"

namespace retrograd {

/// Computes `outputs` (typed, allocated) from the operands of `call`.
using Kernel = void (*)(const Call& call, TensorImpl* const* outputs);
/// The inner loop of an elementwise op over n contiguous elements: out[i] = f(in[0][i], ...).
using SpanKernel = void (*)(void* out, const void* const* in, int64_t n, const void* attrs);

/// What a node may be in a group.
enum class FusedRole : uint8_t {
  none,
  elementwise,     // its result has the shape of the group, to which its operands broadcast
  reduce_rows,     // its operand has the shape of the group; over the last dims, or all
  reduce_columns,  // over the first dims
};

/// A node of a group. An operand i >= 0 is input i of the group, ~n the result of its node n, kNone not there (a number may stand for it).
struct FusedNode {
  static constexpr int32_t kNone = std::numeric_limits<int32_t>::min();
  const OpInfo* op;
  std::span<const int32_t> operands;
  const void* attrs;  // numbers among them may be others at each run
  TensorType type;    // of its results
  int results = 1;    // more than one: of a step of an optimizer
};

struct FusedGroup {
  std::span<const TensorType> inputs;  // of sizes without symbols, as all types here
  std::span<const FusedNode> nodes;    // in an order in which they may run
  std::span<const int32_t>
      outputs;  // the nodes whose results are used outside, each once; of several results all are
};

/// A group made ready. Several threads may run it at once.
class FusedKernel {
 public:
  virtual ~FusedKernel() = default;
  /// The bytes of temporary memory that run() asks for at most.
  virtual int64_t scratch_bytes() const = 0;
  /// Inputs of the group's types in any layout; outputs allocated, contiguous; attrs[n] of node n, those of this run. Temporary memory is
  /// taken from `scratch`, which begins at a multiple of 64 bytes, and from the allocator what does not fit.
  virtual void run(TensorImpl* const* inputs, TensorImpl* const* outputs, const void* const* attrs,
                   std::span<std::byte> scratch = {}) const = 0;
  /// What a run that begins now takes from the allocator besides `scratch`. Where a kernel is still being
  /// made, the nodes run one by one, with what lies between them in memory. An output that lies on the memory
  /// of an input is the same cell, or at the same place; cells may have no memory.
  struct Temporary {
    int64_t bytes = 0;
    bool is_one_by_one = false;
  };
  virtual Temporary temporary(TensorImpl* const* /*inputs*/, TensorImpl* const* /*outputs*/) const {
    return {};
  }
  /// The same as run(): node by node, where temporary() has said so, though the kernel may be there by now.
  virtual void run_one_by_one(TensorImpl* const* inputs, TensorImpl* const* outputs,
                              const void* const* attrs) const {
    run(inputs, outputs, attrs);
  }
  /// Whether `output` may lie on the memory of `input`, a contiguous tensor of the same type that nothing needs afterwards. Of several
  /// outputs that may lie on one input, only one does.
  virtual bool may_overwrite(int input, int output) const = 0;
};

/// The elements of a tensor in the host's memory: what a device that has memory of its own makes of one (Executor::keep_on_host).
class HostCopy {
 public:
  virtual ~HostCopy() = default;
  /// Begins to copy them to `to`, allocated and row-major on the device, and returns.
  virtual void begin(TensorImpl& to) = 0;
  /// What is launched from now on finds what was begun.
  virtual void wait() = 0;
};

/// Launches that are recorded once and then started together. What they read and write must lie where it lay when they are started, the
/// attributes of ops with numbers of a run (Trait::random, Trait::updates), too, whose kernels read these at each start; temporary memory is
/// the graph's.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
  /// What this thread launches from here to end() becomes the graph, in place of what it was, and does not run.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// In place of end(): the graph stays what it was.
  virtual void cancel() noexcept = 0;
  /// Puts it on the device.
  virtual void start() = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  /// The kernel of an op, or null when this executor has none.
  virtual Kernel find(const OpInfo* op) const = 0;
  /// The inner loop of an elementwise op whose operands and result are of `dtype`, for memory that the host sees: what a plan calls
  /// directly on small tensors. Null when there is none.
  virtual SpanKernel find_span(const OpInfo*, ScalarType) const { return nullptr; }
  /// What a node with one result may be in a group. Sizes may be symbols; the type of an operand that is not there is undefined.
  virtual FusedRole fused_role(const OpInfo&, const void* /*attrs*/, std::span<const TensorType> /*operands*/,
                               const TensorType& /*result*/) const {
    return FusedRole::none;
  }
  /// A kernel for a group of nodes with roles. Null when there is none at these sizes: then the nodes run one by one.
  virtual std::unique_ptr<FusedKernel> fuse(const FusedGroup&) const { return nullptr; }
  /// Memory for the arena of a run.
  virtual RefPtr<Storage> allocate_memory(int64_t bytes) { return Storage::allocate(bytes); }
  /// Gives a typed cell contiguous memory.
  virtual void allocate(TensorImpl& cell) = 0;
  /// Whether a kernel of this op may ask for temporary memory.
  virtual bool has_scratch(const OpInfo*) const { return false; }
  /// The bytes of temporary memory that launch() of the same asks for at most, by types, layouts, attributes and the number of threads:
  /// operands and outputs need no storage.
  virtual int64_t scratch_bytes(Kernel, const Call&, TensorImpl* const* /*outputs*/) { return 0; }
  /// Temporary memory is taken from `scratch`, which begins at a multiple of 64 bytes, and from the allocator what does not fit.
  virtual void launch(Kernel kernel, const Call& call, TensorImpl* const* outputs,
                      std::span<std::byte> scratch = {}) = 0;
  /// Waits for everything launched.
  virtual void synchronize() {}
  /// Begins to copy `x`, row-major and never written to again, into the host's memory, and returns; x may be dropped at once. Null: that is
  /// where the executor's tensors are.
  virtual std::unique_ptr<HostCopy> keep_on_host(const TensorImpl& /*x*/) { return nullptr; }
  /// Whether launches can be recorded.
  virtual bool records_launches() const { return false; }
  /// What is launched from now on may write to memory that this executor gave: it comes behind copies that still read it.
  virtual void reuse(Storage& /*memory*/) {}
  /// A graph without launches. Only where they can be recorded.
  virtual std::unique_ptr<LaunchGraph> new_graph() { return nullptr; }
  /// What the host has to do with a launch, so that it cannot be recorded; empty: nothing. Sizes are no symbols.
  virtual std::string_view host_work(const OpInfo&, const void* /*attrs*/,
                                     std::span<const TensorType> /*operands*/,
                                     std::span<const TensorType> /*results*/) const {
    return {};
  }

  /// Bytes that are live in the memory it allocates from.
  virtual int64_t live_bytes() const { return memory::stats().live_bytes; }
  /// The most of these since the last call becomes what is live, or `at_least` if that is higher. Returns what it was.
  virtual int64_t reset_peak(int64_t at_least = 0) { return memory::reset_peak(at_least); }

  /// Whether updates of optimizers (Trait::updates) of such parameters are computed by one launch where they have the same numbers, as in an
  /// eager step. On a device a launch costs more than the memory of gradients that wait for it; on the CPU it is the other way round.
  virtual bool joins_updates(const TensorType& /*parameter*/) const { return false; }
};

}  // namespace retrograd
