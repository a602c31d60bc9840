// TypeChecker: does a node fit its op? It checks the number of operands and results, attributes, the kind of input that
// a bookkeeping op acts on, and the types: those of the results must be the ones that the op's type rule gives for
// those of the operands.
//
// Rules run on cells that have a type and nothing else, one for each distinct type of the graph, under the symbol table
// in scope: a comparison of symbols is answered there, and adds a guard there. Types are compared as by same_type:
// symbols by id. The checker may live while its graph grows.
//
// Operands must name values of the graph (verify() checks that).
//
// Limits: properties that a rule does not read are not checked.
#pragma once

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

/// The types of a call's results in a graph: by the op's rule, with each size that turns out as 0 or 1 as that number,
/// with a guard. Rules test for these numbers, since sizes of 0 and 1 are never symbols.
void infer_types(const Call& call, TensorImpl* const* results);

class TypeChecker {
 public:
  explicit TypeChecker(const Graph& graph);

  /// The problem of the node as text; empty if there is none.
  std::string problem(const Node& node);

 private:
  std::string form_problem(const Node& node) const;
  std::string handle_problem(const Node& node) const;
  std::string rule_problem(const Node& node);
  TensorImpl* cell(ValueId value);

  const Graph& graph_;
  std::vector<RefPtr<TensorImpl>> cells_;    // by type index
  std::vector<RefPtr<TensorImpl>> results_;  // as many as a node has had at most
  std::vector<TensorImpl*> result_cells_;
  std::vector<TensorImpl*> operands_;
};

}  // namespace retrograd::ir
