// Sample: a call of an op as its example specifies it, checked by the parser of graphs.
//
// The example of an entry becomes the text of a graph with one node, so the op's type rule checks it. The sample
// provides operands for the call: tensors of ones; zeros for integers, as indices; but a list of int32 is a
// permutation, 0, 1, 2, ... The values of results are never read.
#pragma once

#include "ir/graph.h"
#include "tools/ops_table/entry.h"

namespace ops_table {

class Sample {
 public:
  /// Error(bad_argument) for a missing or wrong example.
  explicit Sample(const Entry& entry);

  const Entry& entry() const { return *entry_; }
  const rg::OpInfo& op() const { return *entry_->op; }
  int operands() const { return static_cast<int>(types_.size()); }
  /// Type of an operand; dtype Undefined where it is a number or missing.
  const rg::TensorType& type(int i) const { return types_[static_cast<size_t>(i)]; }
  /// Its name; a list of operands without names of their own counts from 0.
  std::string name(int i) const;
  int results() const { return graph_.nodes()[0].results; }
  const rg::TensorType& result_type(int i) const { return graph_.type(graph_.nodes()[0].first_result + i); }
  const void* attrs() const { return graph_.nodes()[0].attrs; }

  /// The dtype that stands for all accepted ones: that of the first floating operand, of the first operand, or of the
  /// result.
  rg::ScalarType dtype() const;
  /// Whether operand i is of that dtype.
  bool varies(int i) const { return type(i).dtype == dtype(); }

  /// New operands of these dtypes, null for absent ones.
  rg::Tensors make(const std::vector<rg::ScalarType>& dtypes) const;
  /// The dtypes of the example.
  std::vector<rg::ScalarType> dtypes() const;
  /// Emits the call into the current emitter, with another dtype in those attributes that are dtype().
  rg::Tensors emit(const rg::Tensors& operands, rg::ScalarType dtype) const;

 private:
  const Entry* entry_;
  std::vector<rg::TensorType> types_;
  rg::ir::Graph graph_;
};

}  // namespace ops_table
