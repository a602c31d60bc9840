// Converts the tensors of a run to the arguments of a fused kernel: how each input is read (Variant), and the bytes of
// the kernel's parameter in the order of cuda/fusion/source.h.
//
// Inputs with the layout of the iteration space, and single elements, need no strides. For the others the dims of the
// space are merged if all of them allow it; a pack of neighbours is then within the last dim, whose size it divides.
#pragma once

#include <array>
#include <cstddef>

#include "cuda/fusion/source.h"

namespace retrograd::inline v0::cuda::fusion {

/// The layout of the tensors of a run.
class Placement {
 public:
  /// Inputs of any layout with the group's types; outputs are contiguous.
  Placement(const Group& group, TensorImpl* const* inputs, TensorImpl* const* outputs);
  /// The kernel that reads these tensors best.
  const Variant& variant() const { return variant_; }
  /// From now on variant() is the one for all layouts.
  void generalize();

  const Group& group() const { return group_; }
  /// The merged dims, and input k's strides by them.
  size_t rank() const { return rank_; }
  int64_t size(size_t d) const { return size_[d]; }
  int64_t stride(size_t k, size_t d) const { return merged_[k][d]; }

 private:
  using Strides = std::array<int64_t, kMaxRank>;

  void choose(bool any_layout);
  bool is_dense(size_t k) const;
  bool is_number(size_t k) const;
  void merge_dims();
  int widest_pack() const;
  bool allows(int pack) const;
  Access access(size_t k, int pack) const;

  // Arrays of fixed size, without allocation, since this is made for each launch.
  const Group& group_;
  std::array<Strides, kMostInputs> strides_;  // by the dims of the group's shape; 0 for a repeated dim
  std::array<Strides, kMostInputs> merged_;   // by the merged dims, for inputs that are read by strides
  std::array<uintptr_t, kMostInputs> address_;
  TensorImpl* const* outputs_;
  Strides size_;
  size_t rank_ = 0;
  Variant variant_;
};

/// The bytes of a kernel's parameter.
class Arguments {
 public:
  static constexpr size_t kMost = 4096;  // the limit of a launch

  /// partials[i]: memory for the parts of reduction i, if there are several. attrs: of each node.
  Arguments(const Placement& placement, TensorImpl* const* inputs, TensorImpl* const* outputs,
            const void* const* attrs, std::span<void* const> partials);
  void* data() { return bytes_.data(); }
  /// The arguments of reduction i, for its second kernel.
  void* reduction(size_t i) { return bytes_.data() + reductions_[i]; }

 private:
  void add(const void* bytes, size_t size);
  template <int Sides>
  void add_grid(const Placement& placement);

  alignas(16) std::array<std::byte, kMost> bytes_;
  size_t size_ = 0;
  std::vector<size_t> reductions_;
};

/// Whether a kernel's parameter has room for the whole group.
bool has_room(const Group& group);

/// How reduction n of the group is divided; without memory.
ReduceCall reduce_call(const Group& group, const Group::Node& node);

}  // namespace retrograd::cuda::fusion
