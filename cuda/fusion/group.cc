// See cuda/fusion/group.h.
#include "cuda/fusion/group.h"

#include <algorithm>

#include "engine/each_field.h"
#include "ops/full.h"

namespace retrograd::inline v0::cuda::fusion {
namespace {

class Reader {
 public:
  explicit Reader(const FusedGroup& from) : from_(from) {}

  bool run() {
    if (from_.inputs.size() > kMostInputs || from_.nodes.size() > kMostNodes) return false;
    group.inputs.assign(from_.inputs.begin(), from_.inputs.end());
    group.outputs.assign(from_.outputs.begin(), from_.outputs.end());
    for (const FusedNode& node : from_.nodes)
      if (!add(node)) return false;
    for (int32_t n : group.outputs) group.nodes[static_cast<size_t>(n)].is_output = true;
    if (!std::ranges::all_of(group.nodes, [](const Group::Node& n) { return n.is_output || !n.reducing; }))
      return false;
    group.numel = group.shape.numel().raw();
    return has_shape_ && cut();
  }

  Group group;

 private:
  bool add(const FusedNode& from) {
    const auto n = static_cast<int>(group.nodes.size());
    std::vector<TensorType> operands;
    for (int32_t k : from.operands) {
      if (k < 0 && k != FusedNode::kNone) {
        Group::Node& source = group.nodes[static_cast<size_t>(~k)];
        if (source.role != FusedRole::elementwise) return false;
        source.last_use = n;
      }
      operands.push_back(group.type_of(k));
    }
    Group::Node node{from.op, {from.operands.begin(), from.operands.end()}, from.type, {}};
    node.role = role_of(*from.op, from.attrs, operands, from.type);
    node.formula = formula_of(*from.op);
    if (node.role == FusedRole::none) return false;
    if (node.role != FusedRole::elementwise) {
      if (!set_shape(operands[0].shape) || !set_dims(node.role, dims_of(*from.op, from.attrs))) return false;
      node.reducing = reducing_of(*from.op);
    } else if (!set_shape(from.type.shape)) {
      return false;
    }
    set_attrs(node, from.attrs);
    group.nodes.push_back(std::move(node));
    return true;
  }

  bool set_shape(const Shape& shape) {
    if (!has_shape_) group.shape = shape;
    has_shape_ = true;
    return group.shape == shape;
  }
  bool set_dims(FusedRole role, const IntList& dims) {
    if (group.reduces == FusedRole::none) group.dims = dims;
    if (group.reduces != FusedRole::none && group.reduces != role) return false;
    group.reduces = role;
    return std::ranges::equal(group.dims, dims);
  }

  // All attributes of a formula; for a constant its number.
  static void set_attrs(Group::Node& node, const void* attrs) {
    if (node.formula) node.attrs_size = node.op->attrs_size;
    if (node.op != &ops::info<ops::Full>) return;
    ir::for_each_field(*node.op, const_cast<void*>(attrs), [&](std::string_view name, Scalar& number) {
      if (name != "value") return;
      node.attrs_offset =
          static_cast<uint32_t>(reinterpret_cast<const char*>(&number) - static_cast<const char*>(attrs));
      node.attrs_size = sizeof(Scalar);
    });
  }

  // Empty reductions, and those of rows with one element, are left to their own kernels.
  bool cut() {
    if (group.reduces == FusedRole::none) return true;
    group.length = 1;
    for (int64_t d : group.dims) group.length *= group.shape[static_cast<int>(d)].raw();
    if (group.numel == 0 || group.length == 1) return false;
    group.rows = group.numel / group.length;
    const bool down = group.reduces == FusedRole::reduce_columns;
    group.row_step = down ? 1 : group.length;
    group.step = down ? group.rows : 1;
    return true;
  }

  const FusedGroup& from_;
  bool has_shape_ = false;
};

}  // namespace

const TensorType& Group::type_of(int32_t operand) const {
  static const TensorType none;
  if (operand == FusedNode::kNone) return none;
  return operand >= 0 ? inputs[static_cast<size_t>(operand)] : nodes[static_cast<size_t>(~operand)].type;
}

std::optional<Group> read_group(const FusedGroup& group) {
  Reader reader(group);
  if (!reader.run()) return {};
  return std::move(reader.group);
}

}  // namespace retrograd::cuda::fusion
