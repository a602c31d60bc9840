// Which dtypes an op takes, and what it gives for them: found out by trying.
#pragma once

#include "tools/ops_table/sample.h"

namespace ops_table {

/// "floating, int64, bool as float32": the dtypes of the operands that the example has in f32 (or whatever
/// Sample::dtype() is). Of an elementwise op: those that its public function takes and computes in; of
/// others: those that the CPU executor runs the op in. Where the result's dtype changes in another way than
/// in the example, it is said.
std::string dtypes_text(const Sample& sample);

}  // namespace ops_table
