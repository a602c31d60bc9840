// Executor: a device that runs calls. The Runner uses it node by node, the replay of a plan through bound kernels; both
// use the same kernels. Everything above it is written once for all devices: order, lifetimes, host nodes.
//
// Several nodes of a graph may run as one step. ir/passes/fuse.h selects them by what fused_role() says of each node. A
// plan describes such a group as a FusedGroup and gets a FusedKernel. A group computes the same as its nodes one by
// one, bit for bit.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "engine/allocator.h"
#include "engine/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Computes `outputs` (typed, allocated) from the operands of `call`.
using Kernel = void (*)(const Call& call, TensorImpl* const* outputs);
/// The inner loop of an elementwise op over n contiguous elements: out[i] = f(in[0][i], ...).
using SpanKernel = void (*)(void* out, const void* const* in, int64_t n, const void* attrs);

/// The role of a node in a group.
enum class FusedRole : uint8_t {
  none,
  elementwise,     // its result has the shape of the group, to which its operands broadcast
  reduce_rows,     // its operand has the shape of the group; over the last dims, or all
  reduce_columns,  // over the first dims
};

/// A node of a group. Operand i >= 0 is input i of the group, ~n the result of its node n, kNone an absent operand (a
/// number may stand for it).
struct FusedNode {
  static constexpr int32_t kNone = std::numeric_limits<int32_t>::min();
  const OpInfo* op;
  std::span<const int32_t> operands;
  const void* attrs;  // its numbers may differ from run to run
  TensorType type;    // of its results
  int results = 1;    // more than one: a step of an optimizer
};

struct FusedGroup {
  std::span<const TensorType> inputs;  // sizes without symbols, as for all types here
  std::span<const FusedNode> nodes;    // in an order in which they may run
  // The nodes whose results are used outside, each once; of several results all are used.
  std::span<const int32_t> outputs;
};

/// A group that is ready to run. Several threads may run it at the same time.
class FusedKernel {
 public:
  virtual ~FusedKernel() = default;
  /// The largest number of bytes of temporary memory that run() asks for.
  virtual int64_t scratch_bytes() const = 0;
  /// Inputs have the group's types in any layout; outputs are allocated and contiguous; attrs[n] are the attributes of
  /// node n for this run. Temporary memory is taken from `scratch`, which begins at a multiple of 64 bytes, and from
  /// the allocator where that is too small.
  virtual void run(TensorImpl* const* inputs, TensorImpl* const* outputs, const void* const* attrs,
                   std::span<std::byte> scratch = {}) const = 0;
  /// What a run that begins now takes from the allocator besides `scratch`. While a kernel is still being compiled, the
  /// nodes run one by one, with the values between them in memory. An output that uses the memory of an input is the
  /// same cell, or has the same address; cells may have no memory.
  struct Temporary {
    int64_t bytes = 0;
    bool is_one_by_one = false;
  };
  virtual Temporary temporary(TensorImpl* const* /*inputs*/, TensorImpl* const* /*outputs*/) const {
    return {};
  }
  /// The same as run(), node by node, when temporary() has said so, even if the kernel is available by now.
  virtual void run_one_by_one(TensorImpl* const* inputs, TensorImpl* const* outputs,
                              const void* const* attrs) const {
    run(inputs, outputs, attrs);
  }
  /// Whether `output` may use the memory of `input`, a contiguous tensor of the same type that is not needed
  /// afterwards. Of several outputs that may use one input, only one does.
  virtual bool may_overwrite(int input, int output) const = 0;
};

/// The elements of a tensor in host memory, kept by a device that has memory of its own (Executor::keep_on_host).
class HostCopy {
 public:
  virtual ~HostCopy() = default;
  /// Begins to copy them to `to`, which is allocated and row-major on the device, and returns.
  virtual void begin(TensorImpl& to) = 0;
  /// Later launches find the copy that was begun complete.
  virtual void wait() = 0;
};

/// Launches that are recorded once and then started together. What they read and write must have the same addresses at
/// each start. This also holds for the attributes of ops with numbers of a run (Trait::random, Trait::updates): their
/// kernels read these at each start. Temporary memory belongs to the graph.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
  /// What this thread launches from here to end() becomes the graph, in place of its former content, and does not run.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// In place of end(): the graph keeps its former content.
  virtual void cancel() noexcept = 0;
  /// Launches the graph on the device.
  virtual void start() = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  /// The kernel of an op, or null when this executor has none.
  virtual Kernel find(const OpInfo* op) const = 0;
  /// The inner loop of an elementwise op whose operands and result are of `dtype`, for memory that the host can access:
  /// a plan calls it directly for small tensors. Null when there is none.
  virtual SpanKernel find_span(const OpInfo*, ScalarType) const { return nullptr; }
  /// The role of a node with one result in a group. Sizes may be symbols; the type of an absent operand is undefined.
  virtual FusedRole fused_role(const OpInfo&, const void* /*attrs*/, std::span<const TensorType> /*operands*/,
                               const TensorType& /*result*/) const {
    return FusedRole::none;
  }
  /// A kernel for a group of nodes with roles. Null when there is none for these sizes: then the nodes run one by one.
  virtual std::unique_ptr<FusedKernel> fuse(const FusedGroup&) const { return nullptr; }
  /// Whether products of matrices are faster in this dtype than in float32.
  virtual bool multiplies_fast(ScalarType) const { return false; }
  /// Memory for the arena of a run.
  virtual RefPtr<Storage> allocate_memory(int64_t bytes) { return Storage::allocate(bytes); }
  /// Gives a typed cell contiguous memory.
  virtual void allocate(TensorImpl& cell) = 0;
  /// Whether a kernel of this op may ask for temporary memory.
  virtual bool has_scratch(const OpInfo*) const { return false; }
  /// The largest number of bytes of temporary memory that launch() of the same call asks for, by types, layouts,
  /// attributes and the number of threads. Operands and outputs need no storage.
  virtual int64_t scratch_bytes(Kernel, const Call&, TensorImpl* const* /*outputs*/) { return 0; }
  /// Temporary memory is taken from `scratch`, which begins at a multiple of 64 bytes, and from the allocator where
  /// that is too small.
  virtual void launch(Kernel kernel, const Call& call, TensorImpl* const* outputs,
                      std::span<std::byte> scratch = {}) = 0;
  /// Waits for everything launched.
  virtual void synchronize() {}
  /// Begins to copy `x`, which is row-major and never written to again, into host memory, and returns; x may be dropped
  /// immediately. Null: the tensors of this executor are in host memory already.
  virtual std::unique_ptr<HostCopy> keep_on_host(const TensorImpl& /*x*/) { return nullptr; }
  /// Whether launches can be recorded.
  virtual bool records_launches() const { return false; }
  /// Later launches may write to memory that this executor gave: they wait for copies that still read it.
  virtual void reuse(Storage& /*memory*/) {}
  /// A graph without launches. Only for executors that can record launches.
  virtual std::unique_ptr<LaunchGraph> new_graph() { return nullptr; }
  /// What the host has to do for a launch, so that it cannot be recorded; empty: nothing. Sizes are no symbols.
  virtual std::string_view host_work(const OpInfo&, const void* /*attrs*/,
                                     std::span<const TensorType> /*operands*/,
                                     std::span<const TensorType> /*results*/) const {
    return {};
  }

  /// Live bytes in the memory it allocates from.
  virtual int64_t live_bytes() const { return memory::stats().live_bytes; }
  /// The highest live_bytes() since reset_peak().
  virtual int64_t peak_bytes() const { return memory::stats().peak_bytes; }
  /// Sets the peak of live bytes to the live bytes, or to `at_least` if that is higher. Returns the old value.
  virtual int64_t reset_peak(int64_t at_least = 0) { return memory::reset_peak(at_least); }

  /// Whether updates of optimizers (Trait::updates) of such parameters are computed by one launch where they have the
  /// same numbers, as in an eager step. On a device a launch costs more than the memory of gradients that wait for it;
  /// on the CPU it is the other way round.
  virtual bool joins_updates(const TensorType& /*parameter*/) const { return false; }
};

}  // namespace retrograd
#pragma GCC visibility pop
