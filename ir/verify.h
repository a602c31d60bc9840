// verify(graph): whether a graph has the properties stated in ir/graph.h. For graphs that the library makes itself,
// after recording and after anything that changes them; the parser checks its own input.
//
// It checks: ids in range, every value given by one input or node and used after it, handles, numbers of operands and
// results, attributes, symbols, outputs, and the types of all results by the rules of the ops (ir/type_check.h). A rule
// that compares symbols in a way that no guard of the graph covers is an error: the graph would accept sizes that it is
// not made for.
//
// One pass, on a copy of the symbol table: the graph is not changed, and may be in use elsewhere. It takes about 20 ns
// per node, and a few hundred where rules compute with symbols.
//
// Not checked: whether the order of effects is that of the driver.
#pragma once

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

/// InternalError("graph backward, node 3 (mm): ...") if something is wrong.
void verify(const Graph& graph);

}  // namespace retrograd::ir
