// A fused group for tests of fusion on devices: nodes are added one by one and run immediately on the CPU. It provides
// the group in the form for an executor, on cuda:0, and its tensors there.
#pragma once

#include <retrograd/retrograd.h>

#include <cstring>

#include "cuda/fusion/arguments.h"
#include "engine/runner.h"

namespace retrograd {

class FusedCase {
 public:
  static constexpr int32_t kNone = FusedNode::kNone;

  explicit FusedCase(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  /// An operand: input or node. Of any layout.
  int32_t input(const Tensor& x) {
    inputs_.push_back(x);
    return static_cast<int32_t>(inputs_.size()) - 1;
  }
  int32_t node(const OpInfo& op, std::vector<int32_t> operands, const void* attrs = nullptr) {
    NoGradGuard no_grad;
    Node n{&op, std::move(operands), std::vector<std::byte>(op.attrs_size), {}};
    if (op.attrs_size) std::memcpy(n.attrs.data(), attrs, op.attrs_size);
    std::vector<TensorImpl*> cells;
    for (int32_t k : n.operands) cells.push_back(k == kNone ? nullptr : value(k).get());
    eager_runner().emit({&op, cells, n.attrs.data(), {}, 1}, &n.result);
    nodes_.push_back(std::move(n));
    return ~(static_cast<int32_t>(nodes_.size()) - 1);
  }
  template <class Op>
  int32_t node(std::vector<int32_t> operands, typename Op::Attrs attrs = {}) {
    return node(ops::info<Op>, std::move(operands), &attrs);
  }
  /// An op of two operands with a number in place of the second.
  template <class Op>
  int32_t with_number(int32_t x, double number) {
    typename Op::Attrs attrs;
    attrs.scalar = number;
    return node<Op>({x, kNone}, attrs);
  }
  void output(int32_t node) { outputs_.push_back(~node); }

  /// The result on the CPU.
  const Tensor& value(int32_t operand) const {
    return operand >= 0 ? inputs_[static_cast<size_t>(operand)]
                        : nodes_[static_cast<size_t>(~operand)].result;
  }
  const Tensors& inputs() const { return inputs_; }
  size_t nodes() const { return nodes_.size(); }
  size_t outputs() const { return outputs_.size(); }
  const Tensor& output_value(size_t o) const { return nodes_[static_cast<size_t>(outputs_[o])].result; }
  std::vector<const void*> attrs() const {
    std::vector<const void*> list;
    for (const Node& n : nodes_) list.push_back(n.attrs.data());
    return list;
  }

  /// The outputs for inputs on a device, node by node.
  Tensors run_singly(const Tensors& inputs) const {
    NoGradGuard no_grad;
    Tensors results, found;
    for (const Node& n : nodes_) {
      std::vector<TensorImpl*> cells;
      for (int32_t k : n.operands)
        cells.push_back(k == kNone ? nullptr
                        : k >= 0   ? inputs[static_cast<size_t>(k)].get()
                                   : results[static_cast<size_t>(~k)].get());
      std::vector<std::byte> attrs = n.attrs;
      Tensor& result = results.emplace_back();
      if (cells.empty())
        result = n.result.to(inputs[0].device());  // a constant
      else
        eager_runner().emit({n.op, cells, attrs.data(), {}, 1}, &result);
    }
    for (int32_t n : outputs_) found.push_back(results[static_cast<size_t>(n)]);
    return found;
  }

  /// Calls f with the group as it is on cuda:0.
  template <class F>
  auto with_group(F f) const {
    std::vector<TensorType> types;
    for (const Tensor& x : inputs_) types.push_back(there(x));
    std::vector<FusedNode> list;
    for (const Node& n : nodes_) list.push_back({n.op, n.operands, n.attrs.data(), there(n.result)});
    return f(FusedGroup{types, list, outputs_});
  }
  std::optional<cuda::fusion::Group> group() const {
    return with_group([](const FusedGroup& g) { return cuda::fusion::read_group(g); });
  }
  /// The text for inputs in these layouts, or the one for all layouts.
  cuda::fusion::Source source(bool any_layout = false) const {
    const cuda::fusion::Group g = group().value();
    std::vector<TensorImpl*> in, out;
    for (const Tensor& x : inputs_) in.push_back(x.get());
    for (size_t o = 0; o < outputs(); ++o) out.push_back(output_value(o).get());
    cuda::fusion::Placement placement(g, in.data(), out.data());
    if (any_layout) placement.generalize();
    return cuda::fusion::write_source(g, placement.variant());
  }
  /// Whether tests have the kernel for all layouts.
  bool serves_all_layouts() const { return name_.ends_with("7x33"); }

 private:
  struct Node {
    const OpInfo* op;
    std::vector<int32_t> operands;
    std::vector<std::byte> attrs;
    Tensor result;
  };

  static TensorType there(const Tensor& x) {
    TensorType type = x.impl().type();
    type.device = Device(kCUDA, 0);
    return type;
  }

  const std::string name_;
  Tensors inputs_;
  std::vector<Node> nodes_;
  std::vector<int32_t> outputs_;
};

/// Chains of random ops that together have every elementwise op in every dtype that it is defined for. The
/// same in every process.
std::vector<FusedCase> every_op();
/// Realistic groups of training: activations and their gradients, losses, residuals, normalisation, with sums over rows
/// and columns. In various layouts and sizes.
std::vector<FusedCase> training_groups();

}  // namespace retrograd
