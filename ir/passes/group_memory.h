// GroupMemory: what the memory of a group's step depends on, besides the sizes of its values. A group runs as
// one kernel (ir/passes/fuse.h): values inside it have no memory, an output may lie on an input where the
// kernel says so, and the kernel may need memory for itself. So the kernel is asked, and to be asked it has
// to be made: some microseconds a group. Those made are kept by their nodes, since a group is looked at more
// than once.
//
// Limits: at the given sizes; a group for which the executor has no kernel runs node by node.
#pragma once

#include <memory>
#include <unordered_map>

#include "ir/passes/fuse.h"

namespace retrograd::ir {

struct GroupMemory {
  std::unique_ptr<FusedKernel> kernel;  // null: none
  std::vector<ValueId> inputs, outputs;
  int64_t scratch_bytes = 0;

  /// Whether an output may be computed in the memory of an input of the same type.
  bool may_overwrite(ValueId input, ValueId output) const;
};

class GroupMemories {
 public:
  /// `values`: of all symbols; without them those at capture. `kept`: as in FuseOptions. Graph and executor
  /// must outlive this.
  GroupMemories(const Graph& graph, Executor& executor, std::span<const Number> values = {},
                std::span<const ValueId> kept = {});

  /// Of nodes, by number, in an order in which they may run. The reference stays good.
  const GroupMemory& of(std::span<const uint32_t> nodes);
  /// The same, given away: with the kernel that was made for looking.
  GroupMemory take(std::span<const uint32_t> nodes);
  /// What a node in no group needs for itself, if it could be in one; operands count as row-major. Of other
  /// nodes 0: no group reaches over them, so they are beside the same values with groups and without.
  int64_t scratch_bytes(uint32_t node);

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
