// A fused group in the form for fusion: a FusedGroup (engine/executor.h) that has been checked and copied, with the
// kinds of its nodes.
//
// The iteration space of a group has the shape of its elementwise nodes. Inputs broadcast to it. If the group reduces,
// the space is also `rows` times `length`: element k of row r is element r * row_step + k * step of the space.
#pragma once

#include <optional>
#include <vector>

#include "cuda/fusion/op_table.h"

namespace retrograd::inline v0::cuda::fusion {

/// Groups with more inputs or nodes are left to single kernels.
inline constexpr size_t kMostInputs = 16, kMostNodes = 64;

struct Group {
  struct Node {
    const OpInfo* op;
    std::vector<int32_t> operands;  // as in FusedNode::operands
    TensorType type;
    FusedRole role;
    const Formula* formula = nullptr;           // of a node that has a formula
    const Reducing* reducing = nullptr;         // of a reduction
    uint32_t attrs_offset = 0, attrs_size = 0;  // the bytes of its attributes that a kernel gets
    int last_use = -1;                          // the last node that reads its result
    bool is_output = false;
  };

  std::vector<TensorType> inputs;
  std::vector<Node> nodes;
  std::vector<int32_t> outputs;
  Shape shape;
  int64_t numel = 0;
  FusedRole reduces = FusedRole::none;  // reduce_rows or reduce_columns
  IntList dims;                         // the reduced dims
  int64_t rows = 0, length = 0, row_step = 0, step = 0;

  const TensorType& type_of(int32_t operand) const;
  const Node& output(size_t o) const { return nodes[static_cast<size_t>(outputs[o])]; }
};

/// Nothing if such a group is not run as one kernel.
std::optional<Group> read_group(const FusedGroup& group);

}  // namespace retrograd::cuda::fusion
