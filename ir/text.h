// The text form of a graph: docs/ir.md has the grammar. parse(print(g)) prints as g does, and a parsed graph runs.
#pragma once

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

/// "dim=1, keepdim=true".
std::string attrs_text(const OpInfo& op, const void* attrs);

/// Finds an op by its name, or null.
using OpLookup = const OpInfo* (*)(std::string_view name);

/// Reads the text form. Error(bad_argument) names the line and what was expected there.
Graph parse(std::string_view text, OpLookup lookup);
/// The same for a text about the symbols of `symbols`: they keep their present values, whatever the text says, and
/// existing expressions keep their ids.
Graph parse(std::string_view text, OpLookup lookup, const SymbolTable& symbols);

/// One node as print() shows it, without the annotation.
std::string to_string(const Graph& graph, const Node& node);

}  // namespace retrograd::ir
