// GraphEmitter: what recorders have in common. A call becomes a node whose results are cells that are names in the graph: TensorImpl::graph is
// the recorder's number, value_id the value. Which input a tensor from outside becomes, and what bookkeeping ops mean, is the recorder's.
#pragma once

#include <optional>

#include "engine/emitter.h"
#include "ir/graph.h"

namespace retrograd {

class GraphEmitter : public Emitter {
 public:
  /// The value of a tensor; one from outside becomes an input. kNoValue for an undefined one.
  virtual ir::ValueId value_of(const Tensor& tensor) = 0;

 protected:
  explicit GraphEmitter(ir::Graph& graph);

  /// Makes the results, by the op's type rule; then appends the node whose results they are.
  void infer(const Call& call, Tensor* results) const;
  ir::Node& append_node(const Call& call, Tensor* results);
  ir::Node& append(const Call& call, std::span<const TensorType> results);
  Tensor make(const TensorType& type, ir::ValueId value) const;

  /// No symbols are made any more.
  void end() { scope_.reset(); }

  ir::Graph& graph_;
  const uint64_t id_;  // what TensorImpl::graph of its values is
  int32_t origin_index_ = -1;
  bool has_written_ = false;  // memory was given another value: cells on it may be out of date

 private:
  std::optional<SymbolTable::Scope> scope_;
  std::vector<ir::ValueId> operands_;
};

}  // namespace retrograd
