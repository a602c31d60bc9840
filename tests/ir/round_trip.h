// Whether the text of a graph represents it: it parses, verifies and prints as the same text.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace ir_test {

/// The problem of the text of a graph; "" if there is none.
std::string fault_of_text(std::string_view text);
/// The same, and problems of the graph itself.
std::string fault_of(const retrograd::ir::Graph& graph);

}  // namespace ir_test
