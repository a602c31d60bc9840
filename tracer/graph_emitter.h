// GraphEmitter: what recorders have in common. A call becomes a node whose results are cells that are names in the graph: TensorImpl::graph is
// the recorder's number, value_id the value. Which input a tensor from outside becomes, and what bookkeeping ops mean, is the recorder's.
#pragma once

#include <optional>

#include "engine/tape.h"
#include "ir/graph.h"

namespace retrograd {

class GraphEmitter : public Emitter {
 public:
  Tensors own_backward(const BackwardRequest& request, Walk& walk) override;
  void cannot_record(std::string_view op, std::string_view why, SourceLocation where) override;
  /// The value of a tensor; one from outside becomes an input. kNoValue for an undefined one.
  virtual ir::ValueId value_of(const Tensor& tensor) = 0;

 protected:
  /// `of_backward`: what is recorded is a backward, in which code of the user's accumulates into no leaf from outside.
  /// `where`: the call that is recorded.
  GraphEmitter(ir::Graph& graph, bool of_backward, SourceLocation where);

  /// Whether a backward runs that code of the user's has started while the backward at hand was recorded: over records of its own.
  bool is_nested() const { return of_backward_ && position_.depth > 0; }
  /// Error that names the call that is being recorded.
  [[noreturn]] void refuse(Category category, std::string_view text) const;
  /// Whether the record was made while this recorded: it is part of what is recorded, as all that its slots hold.
  bool is_own(const Record& record) const { return record.seq >= first_seq_; }

  /// Makes the results, by the op's type rule; then appends the node whose results they are.
  void infer(const Call& call, Tensor* results);
  ir::Node& append_node(const Call& call, Tensor* results);
  ir::Node& append(const Call& call, std::span<const TensorType> results);
  Tensor make(const TensorType& type, ir::ValueId value);
  /// Told of each cell that is made for a value.
  virtual void made(const Tensor&) {}

  /// No symbols are made any more.
  void end() { scope_.reset(); }

  ir::Graph& graph_;
  const uint64_t id_;  // what TensorImpl::graph of its values is
  const bool of_backward_;
  const SourceLocation where_;
  const uint64_t first_seq_;  // of the records that are made from the beginning on
  // Where the recording is; put back when a backward that recorded code has started is over.
  struct Position {
    int32_t origin = -1;              // of the nodes
    const Record* running = nullptr;  // the record whose rule and hooks run
    bool at_leaf = false;
    int depth = 0;               // of backwards that recorded code has started
    const Walk* walk = nullptr;  // of the innermost
    std::string_view op = {};    // that is being appended,
    SourceLocation where = {};   // and the user's line
  };
  Position position_;
  bool has_written_ = false;  // memory was given another value: cells on it may be out of date

 private:
  void check_own(const BackwardRequest& request, const Walk& walk) const;

  std::optional<SymbolTable::Scope> scope_;
  std::vector<ir::ValueId> operands_;
};

}  // namespace retrograd
