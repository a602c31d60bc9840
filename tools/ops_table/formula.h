// The derivative of an op as a formula: its rule is recorded, like a traced backward, and the graph is written as
// expressions.
//
// Nothing is computed: the forward runs on an executor that does not launch kernels. `grad` is the gradient of the
// result (grad0, grad1 for several), operands have their names, `result` is the saved result. Attributes that equal the
// op's own, by name and value, and sizes are omitted; numbers that are attributes have their names.
#pragma once

#include "tools/ops_table/sample.h"

namespace ops_table {

struct Rule {
  std::vector<std::string> saved;                             // names of the values that the record keeps
  std::vector<std::pair<std::string, std::string>> formulas;  // operand and its gradient: "0" for zeros
};

/// The rule of an op with a derivative.
Rule rule_of(const Sample& sample);

}  // namespace ops_table
