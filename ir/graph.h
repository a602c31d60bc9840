// Graph: the IR. SSA over typed values, in program order, which is the order of eager execution.
//
// Semantics. Values are immutable: in-place and view writes became values when they were recorded. A node is {op,
// operands, attributes, results, location, origin}. A pure node depends on nothing but its operands and attributes: it
// may be moved, merged or dropped. Effect nodes (hooks, unpack, accumulate_grad, ...) keep their relative order.
// Handles are not values: inputs of kinds such as `slot`, `leaf`, `hook` and `code` stand for live objects that are
// bound at each run, and a bookkeeping node names one of them.
// A dim is a constant or a symbol of `symbols` (engine/symbols.h); so are numbers in attributes.
//
// Data: nodes hold ranges of one pool of operand ids; values hold an index into the interned types; attributes are in
// an arena that never moves. Nodes are made only through append(), which gets the result types that the op's type rule
// has found: an ill-typed node cannot exist.
// Start with Node and Input. ir/text.h prints and parses; ir/replay.h runs a graph into any emitter.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ir {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

/// What a run must be given. The prefix character in the text form is in brackets.
struct Input {
  enum class Kind : uint8_t {
    tensor,    // [%] a value
    slot,      // [!] unpack's: the saved value, or its hook and payload
    leaf,      // [@] accumulate_grad's
    hook,      // [$]
    box,       // [&] retain_grad's
    function,  // [^] function_backward's
    pair,      // [*] pack's: saved-tensor hooks
    code       // [~] HostCode, which a recorded function runs (engine/host_code.h)
  };
  Kind kind = Kind::tensor;
  ValueId value = kNoValue;  // kind tensor
  int32_t type = -1;         // of the tensor, slot or leaf: into types()
  std::string_view name;     // the name in the parsed text; see Graph::name_of
};

/// The origin of a node, for readers: record `ordinal` of the backward, made by `op`, and the part of its run.
struct Origin {
  std::string_view op;
  uint32_t ordinal = 0;
  std::string_view part;
};

struct Node {
  const OpInfo* op;
  uint32_t first_operand;  // into the operand pool
  uint16_t operands;
  uint16_t results;
  ValueId first_result;   // results are numbered consecutively
  int32_t handle = -1;    // bookkeeping: index of the input it acts on
  void* attrs = nullptr;  // in the graph's arena
  SourceLocation where;   // the forward call that caused the node
  int32_t origin = -1;    // index into origins(), -1: unknown
  // Neighbours with the same number may run as one step (ir/passes/fuse.h); numbers ascend; -1: none.
  int32_t group = -1;
};

/// A node that gives one value, or a step of an optimizer, may be in a group.
inline bool may_be_in_group(const Node& node) {
  return node.op->is(Trait::pure) && (node.results == 1 || node.op->is(Trait::updates));
}

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  /// Reserves memory for this many nodes.
  void reserve(size_t nodes);
  ValueId add_tensor_input(const TensorType& type, std::string_view name = {});
  int32_t add_handle(Input::Kind kind, const TensorType& type, std::string_view name = {});
  /// Appends a node; its results get the next ids. `attrs` is copied.
  Node& append(const OpInfo& op, std::span<const ValueId> operands, const void* attrs,
               std::span<const TensorType> results);
  void set_group(size_t node, int32_t group) { nodes_[node].group = group; }
  void set_outputs(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }
  int32_t add_origin(Origin origin);
  /// A copy of `text` that lives as long as the graph.
  std::string_view keep(std::string_view text);
  /// Copies texts of one graph into another that may outlive it: texts that `from` owns become owned by `to`; all other
  /// texts outlive every graph.
  class Texts {
   public:
    Texts(Graph& to, const Graph& from);
    std::string_view operator()(std::string_view text) const;

   private:
    std::unordered_map<const char*, std::string_view> kept_;
  };

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  std::span<const ValueId> operands(const Node& n) const {
    return {pool_.data() + n.first_operand, n.operands};
  }
  const TensorType& type(ValueId value) const {
    return types_[static_cast<size_t>(value_types_[static_cast<size_t>(value)])];
  }
  /// Undefined for a hook, a function, a pair and code.
  const TensorType& type(const Input& input) const;
  /// The number of a value in the text form: inputs first, then results, though an input may have been met in the
  /// middle of a recording.
  int32_t number_of(ValueId value) const;
  /// The name in the text form, without the prefix character: its own name, or the number of the value or input.
  std::string name_of(const Input& input) const;
  /// Index of the value's type among the distinct types.
  int32_t type_index(ValueId value) const { return value_types_[static_cast<size_t>(value)]; }
  const std::vector<TensorType>& types() const { return types_; }
  int32_t value_count() const { return static_cast<int32_t>(value_types_.size()); }
  const Origin& origin(int32_t index) const { return origins_[static_cast<size_t>(index)]; }

  /// A copy of the graph, with texts and attributes of its own.
  Graph copy() const;
  /// A copy for one set of sizes, which are the first `sizes` symbols: numbers take the place of all sizes, and of
  /// numbers in attributes that follow from them. `values`: of all expressions. If the graph has no other symbols, the
  /// copy has none.
  Graph at_sizes(std::span<const Number> values, int32_t sizes) const;
  /// The table of that copy.
  SymbolTable symbols_at(std::span<const Number> values, int32_t sizes) const;

  SymbolTable symbols;
  std::string name = "backward";

  /// The text form (ir/text.h).
  std::string print() const;
  /// Graphviz.
  std::string dot() const;

 private:
  friend class Rewriter;  // ir/rewriter.h
  int32_t intern(const TensorType& type);
  ValueId new_value(const TensorType& type);
  void* copy_attrs(const OpInfo& op, const void* attrs);

  std::vector<Node> nodes_;
  std::vector<ValueId> pool_, outputs_;
  std::vector<int32_t> value_types_;
  std::vector<TensorType> types_;
  std::unordered_map<uint64_t, std::vector<int32_t>> type_index_;
  int32_t last_type_ = -1;
  std::vector<Input> inputs_;
  std::vector<ValueId> input_values_;  // of the tensors among them; ascending
  std::vector<Origin> origins_;
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<std::unique_ptr<std::byte[]>> arena_;
  size_t arena_left_ = 0;
  std::byte* arena_next_ = nullptr;
};

/// Compares types with their sizes as text: symbols by id, without adding guards.
bool same_type(const TensorType& a, const TensorType& b);

}  // namespace retrograd::ir
#pragma GCC visibility pop
