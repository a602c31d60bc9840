// The comparison of executors.
//
// A program runs eagerly, and with one CompiledBackward: traced twice, the second time from the captures of the first;
// then at other sizes and with one change, each compared with an eager run of the same; then again unchanged, and node
// by node (ir::replay in place of plans). All lines must be the same, and in the end no tensor may be left. This also
// tests whether the cache distinguishes programs.
#pragma once

#include <optional>
#include <string>

#include "tests/fuzz/machine.h"

namespace fuzz {

struct Options {
  bool check_graphs = false;  // each captured graph is printed, parsed and verified
  Coverage* coverage = nullptr;
};

/// What differs; nothing when all is alike. The words up to the first comma or colon name the kind of
/// difference: "as made", "at other sizes", "with one change", "as made again", "node by node", "leak".
std::optional<std::string> difference(const Program& program, const Options& options = {});

}  // namespace fuzz
