// The dtypes that an op accepts, and the resulting dtypes: determined by trying.
#pragma once

#include "tools/ops_table/sample.h"

namespace ops_table {

/// "floating, int64, bool as float32": the dtypes of the operands that are f32 in the example (or whatever
/// Sample::dtype() is). For an elementwise op: those that its public function accepts and computes in; for others:
/// those in which the CPU executor runs the op. If the result's dtype changes in another way than in the example, this
/// is noted.
std::string dtypes_text(const Sample& sample);

}  // namespace ops_table
