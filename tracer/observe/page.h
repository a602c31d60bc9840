// A captured graph as a web page: one self-contained file, without external scripts or fonts.
//
// Nodes are in the order in which they run. Pointing at a value highlights its producer and its users, pointing at a
// node its producers and consumers; a click keeps the highlight and jumps there. Unpacks, hooks and accumulations
// into leaves are marked.
//
// With a profile that has runs of the graph (the same object, as returned by CompiledBackward::graph()), each node
// has its time, the mean of these runs, and the live bytes of the last run are drawn over its time. With a report of a
// memory budget (f.memory()) the plans that it chose from are drawn, too: memory against estimated time.
//
// Limits: meant for graphs that a person reads; 10,000 nodes are a page of some megabytes.
#pragma once

#include <string>

#include "tracer/observe/memory_report.h"
#include "tracer/observe/profile.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

std::string html_page(const ir::Graph& graph, const Profile* profile = nullptr,
                      const MemoryReport* memory = nullptr);

}  // namespace retrograd
#pragma GCC visibility pop
