// A captured graph as a web page: one file that needs nothing else, no script or font from anywhere.
//
// Nodes stand in the order in which they run. Pointing at a value shows who makes it and who uses it,
// pointing at a node shows its producers and consumers; a click keeps that shown and goes there. Unpacks,
// hooks and what reaches a leaf are marked.
//
// With a profile that has runs of the graph (the same object, as CompiledBackward::graph() gives it), each
// node has its time, the mean of these runs, and the live bytes of the last run are drawn over its time.
//
// Limits: meant for graphs that a person reads; 10,000 nodes are a page of some megabytes.
#pragma once

#include <string>

#include "tracer/profile.h"

namespace retrograd {

std::string html_page(const ir::Graph& graph, const Profile* profile = nullptr);

}  // namespace retrograd
