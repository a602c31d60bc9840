// GroupMemory: what the memory of a group's step depends on, besides the sizes of its values. A group runs as one
// kernel (ir/passes/fuse.h): values inside it have no memory, an output may use the memory of an input where the kernel
// says so, and the kernel may need temporary memory. So the kernel is asked, and must be made for that: some
// microseconds per group. Kernels are cached by their nodes, since a group is examined more than once.
//
// Limits: at the given sizes; a group for which the executor has no kernel runs node by node.
#pragma once

#include <memory>
#include <unordered_map>

#include "ir/passes/fuse.h"

namespace retrograd::inline v0::ir {

struct GroupMemory {
  std::unique_ptr<FusedKernel> kernel;  // null: none
  std::vector<ValueId> inputs, outputs;
  int64_t scratch_bytes = 0;

  /// Whether an output may be computed in the memory of an input of the same type.
  bool may_overwrite(ValueId input, ValueId output) const;
};

class GroupMemories {
 public:
  /// `values`: of all symbols; without them those at capture. `kept`: as in FuseOptions. Graph and executor must
  /// outlive this object.
  GroupMemories(const Graph& graph, Executor& executor, std::span<const Number> values = {},
                std::span<const ValueId> kept = {});

  /// `nodes`: by number, in an order in which they may run. The reference remains valid.
  const GroupMemory& of(std::span<const uint32_t> nodes);
  /// The same, moved out: with the kernel that was made for it.
  GroupMemory take(std::span<const uint32_t> nodes);
  /// Temporary memory of a node in no group that could be in one; operands count as row-major. 0 for other nodes: no
  /// group extends over them, so the same values are live around them with and without groups.
  int64_t scratch_bytes(uint32_t node);
  /// The same of any node.
  int64_t kernel_scratch_bytes(uint32_t node);

 private:
  struct Known {
    std::vector<uint32_t> nodes;
    std::unique_ptr<GroupMemory> memory;
  };
  Known& known(std::span<const uint32_t> nodes);

  const Graph& graph_;
  Executor& executor_;
  std::vector<Number> values_;
  std::vector<int32_t> uses_;
  std::unordered_multimap<uint32_t, Known> known_;  // by the first node
};

}  // namespace retrograd::ir
