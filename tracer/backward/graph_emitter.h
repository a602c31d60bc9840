// GraphEmitter: the common part of the recorders. A call becomes a node whose results are cells that are names in the
// graph: TensorImpl::graph is the recorder's number, value_id the value. The derived recorder decides which input a
// tensor from outside becomes, and the meaning of bookkeeping ops.
#pragma once

#include <optional>

#include "engine/recording.h"
#include "engine/tape.h"
#include "ir/graph.h"

namespace retrograd::inline v0 {

class GraphEmitter : public Emitter, public Recording {
 public:
  Recording* recording() final { return this; }
  Tensors own_backward(const BackwardRequest& request, Walk& walk) override;
  void cannot_record(std::string_view op, std::string_view why, SourceLocation where) override;
  /// The value of a tensor; one from outside becomes an input. kNoValue for an undefined one.
  virtual ir::ValueId value_of(const Tensor& tensor) = 0;

 protected:
  /// `of_backward`: the recording is of a backward, in which user code accumulates into no leaf from outside.
  /// `where`: the call that is recorded.
  GraphEmitter(ir::Graph& graph, bool of_backward, SourceLocation where);

  /// Whether user code has started a nested backward, over its own records, while the current backward is recorded.
  bool is_nested() const { return of_backward_ && position_.depth > 0; }
  /// Error that names the call that is being recorded.
  [[noreturn]] void refuse(Category category, std::string_view text) const;
  /// Whether the record was made during this recording: then the record and the values in its slots are part of the
  /// recording.
  bool is_own(const Record& record) const { return record.seq >= first_seq_; }

  /// Makes the results by the op's type rule, then appends the node.
  void infer(const Call& call, Tensor* results);
  ir::Node& append_node(const Call& call, Tensor* results);
  ir::Node& append(const Call& call, std::span<const TensorType> results);
  Tensor make(const TensorType& type, ir::ValueId value);
  /// Called for each cell that is made for a value.
  virtual void made(const Tensor&) {}

  /// No further symbols are made.
  void end() { scope_.reset(); }

  ir::Graph& graph_;
  const uint64_t id_;  // TensorImpl::graph of its values
  const bool of_backward_;
  const SourceLocation where_;
  const uint64_t first_seq_;  // of the first record made in this recording
  // The position of the recording; restored after a backward started by recorded code.
  struct Position {
    int32_t origin = -1;              // of the nodes
    const Record* running = nullptr;  // the record whose rule and hooks run
    bool at_leaf = false;
    int depth = 0;               // of backwards that recorded code has started
    const Walk* walk = nullptr;  // of the innermost
    std::string_view op = {};    // that is being appended,
    SourceLocation where = {};   // and the line in user code
  };
  Position position_;
  bool has_written_ = false;  // memory was given another value: cells on it may be out of date

 private:
  void check_own(const BackwardRequest& request, const Walk& walk) const;

  std::optional<SymbolTable::Scope> scope_;
  std::vector<ir::ValueId> operands_;
};

}  // namespace retrograd
