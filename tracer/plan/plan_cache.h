// Plan cache: optimised graphs of recorded functions, kept in a folder across processes. Off until a folder is named,
// by the environment variable RETROGRAD_PLAN_CACHE or by set_folder().
//
// An entry is a file named by the hash of its **question**: the text of the recorded graph, the other inputs of the
// passes (passes switched off, values computed in place, the executor), and the build of the library. It holds a
// checksum, the question itself and the text of the optimised graph (ir/text.h). Numbers that each run reads again
// (learning rates, positions in random streams) are not part of a question.
//
// Nothing in the folder is trusted. The folder must belong to this user and be inaccessible to others, and so must
// each entry file; those made here have modes 0700 and 0600. An entry is valid only if its checksum matches, its
// question is identical, and its graph is well typed and has the inputs and outputs of the recorded one. Any other
// entry is skipped with a warning on stderr, and replaced. Entries appear atomically (written under another name,
// then renamed), so that any number of processes may share a folder. An unusable folder or a full disk causes only a
// warning: the passes run as without a cache.
//
// At most kEntries are kept: least recently used evicted first. Not kept: bindings of a plan to memory of the
// process, and graphs with ops unknown to ops::find_op. A build is identified by size and time of the file that
// contains this code.
// Start reading at find_or_make().
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/graph.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::plan_cache {

inline constexpr const char* kFolderVariable = "RETROGRAD_PLAN_CACHE";
inline constexpr size_t kEntries = 512;

/// Sets the folder for entries; it is created when first needed, its parent must exist. "": none. Overrides the
/// environment variable.
void set_folder(std::string_view folder);
/// Empty when the cache is off.
std::string folder();

/// Since the start of the process.
struct Stats {
  int64_t hits = 0;      // graphs found in the folder
  int64_t misses = 0;    // graphs without an entry
  int64_t rejected = 0;  // graphs with an invalid entry
  int64_t stored = 0;    // entries written
  int64_t failed = 0;    // entries that could not be written, questions that could not be formed
  int64_t skipped = 0;   // graphs that are not kept
};
Stats stats();
/// The last warning, without the line's prefix; empty if there was none.
std::string last_warning();

/// The optimised graph of `recorded`: from the folder, or else from `make`, and then kept. `settings`: all other
/// inputs of `make`, as text.
ir::Graph find_or_make(const ir::Graph& recorded, std::string_view settings,
                       const std::function<ir::Graph()>& make);

}  // namespace retrograd::plan_cache
#pragma GCC visibility pop
