// The derivative of an op as a formula: its rule is recorded, as a traced backward is, and the graph is
// written as expressions.
//
// Nothing is computed: the forward runs on the executor that only notes what it is told. `grad` is the
// gradient of the result (grad0, grad1 of several), operands go by their names, `result` is the saved
// result. Attributes that are the op's own, by name and value, and sizes are left out; numbers that are
// attributes go by their names.
#pragma once

#include "tools/ops_table/sample.h"

namespace ops_table {

struct Rule {
  std::vector<std::string> saved;                             // names of what the record keeps
  std::vector<std::pair<std::string, std::string>> formulas;  // operand and its gradient: "0" for zeros
};

/// Of an op with a derivative.
Rule rule_of(const Sample& sample);

}  // namespace ops_table
