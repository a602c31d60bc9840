// See ir/passes/gated_derivatives.h.
#include "ir/passes/gated_derivatives.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ir/passes/lifetimes.h"
#include "ir/passes/pass.h"

namespace retrograd::inline v0::ir {
namespace {

bool same_attributes(const Node& a, const Node& b, size_t bytes) {
  return bytes == 0 || std::memcmp(a.attrs, b.attrs, bytes) == 0;
}

class GatedDerivatives {
 public:
  GatedDerivatives(const Graph& graph, std::span<const GatedOps> gated)
      : graph_(graph), gated_(gated), classes_(graph), uses_(static_cast<size_t>(graph.value_count())) {
    find_uses();
    for (size_t i = 0; i < graph.nodes().size(); ++i)
      if (is_split(i)) split_.push_back(i);
  }
  bool any() const { return !split_.empty(); }
  /// In bytes. A fused group keeps it in the caches.
  int64_t largest_gate(const PassInput& input) const {
    const Lifetimes found = lifetimes_of(graph_, input);
    int64_t most = 0;
    for (const size_t i : split_)
      if (const int32_t b = found.block_of[static_cast<size_t>(graph_.nodes()[i].first_result)]; b >= 0)
        most = std::max(most, found.blocks[static_cast<size_t>(b)].bytes);
    return most;
  }

  Remap apply(Graph& graph) {
    Rewriter rewriter(graph);
    auto next = split_.begin();
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      if (next != split_.end() && *next == i) {
        split(rewriter, node);
        ++next;
      } else if (const Uses* of = slope_for(node)) {
        put_product(rewriter, node, *of, rewriter.now(operand(node, 0)), of->slope);
      } else {
        rewriter.keep(i);
      }
    }
    return rewriter.finish();
  }

 private:
  // The uses of a value that an activation is computed from.
  struct Uses {
    size_t last_backward = 0;          // 0: none, since no backward is the first node
    size_t last_other = 0;             // of nodes; outputs come after all
    const Node* activation = nullptr;  // the activation that is split, with
    const GatedOps* ops = nullptr;
    ValueId slope = kNoValue;  // the derivative, a new value
  };

  ValueId operand(const Node& node, size_t i) const { return graph_.operands(node)[i]; }
  Uses& uses(ValueId v) { return uses_[static_cast<size_t>(v)]; }

  const GatedOps* ops_of_activation(const Node& node) const {
    const auto is_its = [&](const GatedOps& g) { return node.op == &g.activation; };
    const auto found = std::ranges::find_if(gated_, is_its);
    return found == gated_.end() ? nullptr : &*found;
  }
  bool is_backward(const Node& node) const {
    return std::ranges::any_of(gated_, [&](const GatedOps& g) { return node.op == &g.backward; });
  }

  void find_uses() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      const bool backward = is_backward(node);
      for (size_t k = 0; k < node.operands; ++k) {
        if (operand(node, k) == kNoValue) continue;
        Uses& of = uses(operand(node, k));
        (backward && k == 1 ? of.last_backward : of.last_other) = i;
      }
    }
    for (ValueId v : graph_.outputs())
      if (v != kNoValue) uses(v).last_other = std::numeric_limits<size_t>::max();
  }

  // Whether node i is an activation whose operand is only used by backwards afterwards.
  bool is_split(size_t i) {
    const Node& node = graph_.nodes()[i];
    const GatedOps* ops = ops_of_activation(node);
    if (!ops) return false;
    const ValueId x = operand(node, 0);
    const TensorType& type = graph_.type(x);
    if ((type.dtype != kFloat32 && type.dtype != kFloat64) || type.device != kCPU) return false;
    Uses& of = uses(x);
    if (of.last_other != i || of.last_backward < i || !classes_.is_private(x)) return false;
    of.activation = &node;
    of.ops = ops;
    return true;
  }

  void split(Rewriter& rewriter, const Node& node) {
    Uses& of = uses(operand(node, 0));
    const ValueId x = rewriter.now(operand(node, 0));
    const std::span<const TensorType> type{&graph_.type(node.first_result), 1};
    const ValueId gate = rewriter.append(of.ops->gate, {&x, 1}, node.attrs, type, node).first_result;
    const ValueId both[] = {x, gate};
    of.slope = rewriter.append(of.ops->slope, both, node.attrs, type, node).first_result;
    put_product(rewriter, node, of, x, gate);
  }

  // The replacement of x when `node` is a backward of a split activation.
  const Uses* slope_for(const Node& node) {
    if (node.operands != 2 || operand(node, 1) == kNoValue) return nullptr;
    const Uses& of = uses(operand(node, 1));
    const bool serves = of.slope != kNoValue && node.op == &of.ops->backward &&
                        same_attributes(node, *of.activation, node.op->attrs_size);
    return serves ? &of : nullptr;
  }

  void put_product(Rewriter& rewriter, const Node& node, const Uses& of, ValueId a, ValueId b) {
    const ValueId both[] = {a, b};
    const Node& made = rewriter.append(of.ops->product, both, of.ops->product_attrs,
                                       {&graph_.type(node.first_result), 1}, node);
    rewriter.replace(node.first_result, made.first_result);
  }

  const Graph& graph_;
  std::span<const GatedOps> gated_;
  MemoryClasses classes_;
  std::vector<Uses> uses_;     // of each value
  std::vector<size_t> split_;  // activations, by number
};

}  // namespace

bool gated_derivatives(Graph& graph, const PassInput& input, Remap& remap) {
  GatedDerivatives derivatives(graph, input.gated);
  if (!derivatives.any()) return false;
  Graph made = graph.copy();
  Remap through = derivatives.apply(made);
  const int64_t peak = peak_of(made, input);
  if (peak > input.most_bytes || peak - derivatives.largest_gate(input) > peak_of(graph, input)) return false;
  graph = std::move(made);
  remap = std::move(through);
  return true;
}

}  // namespace retrograd::ir
