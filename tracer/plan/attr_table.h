// AttrTable: the attributes of the steps of a plan, with sizes as constants.
//
// An attribute whose numbers are symbols is **patched**: each frame has a separate copy, into which the numbers of
// the run are written (fill_in). All copies of a frame are stored in one block of bytes, which starts as initial().
// Limits: only numbers are patched; sizes are those that the plan was made for.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace retrograd::inline v0 {

/// Attributes of one node.
struct StepAttrs {
  union {
    void* fixed = nullptr;
    size_t patched_at;  // offset of the frame's copy
  };
  bool is_patched = false;
};

class AttrTable {
 public:
  /// A number that is written in each run.
  struct Patch {
    uint32_t at;  // in the frame's block
    int32_t expression;
  };

  /// The attributes of `node` with sizes from `values`.
  StepAttrs add(const ir::Node& node, std::span<const Number> values);

  /// The attributes of a run, whose block is `block`.
  static void* of_run(const StepAttrs& attrs, std::vector<std::byte>& block) {
    return attrs.is_patched ? block.data() + attrs.patched_at : attrs.fixed;
  }
  /// The attributes at planning time: for querying a kernel before a run.
  const void* sample(const StepAttrs& attrs) const {
    return attrs.is_patched ? initial_.data() + attrs.patched_at : attrs.fixed;
  }
  const std::vector<std::byte>& initial() const { return initial_; }
  void fill_in(std::vector<std::byte>& block, std::span<const Number> numbers) const;
  /// The patches of `attrs`, which have a size of `bytes`.
  std::span<const Patch> patches(const StepAttrs& attrs, size_t bytes) const;

 private:
  void find_patches(const ir::Node& node, StepAttrs& attrs);

  std::vector<std::unique_ptr<std::byte[]>> fixed_;
  std::vector<Patch> patches_;  // in the order of `at`
  std::vector<std::byte> initial_;
};

}  // namespace retrograd
