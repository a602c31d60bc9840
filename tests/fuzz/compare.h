// The comparison of executors.
//
// A program runs eagerly, and with one CompiledBackward: traced twice, the second time from what the first
// captured; then at other sizes and with one change, each against an eager run of the same; then once more as
// it was, and node by node (ir::replay in place of plans). All lines must be the same, and in the end no
// tensor may be left. So the cache is asked, too, whether it tells programs apart.
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
