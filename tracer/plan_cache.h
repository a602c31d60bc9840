// Plan cache: what the passes make of a recorded function, kept in a folder from one process to the next. Off until a folder is named, by
// the environment variable RETROGRAD_PLAN_CACHE or by set_folder().
//
// An entry is a file named by the hash of its **question**: the text of the recorded graph, what else the passes depend on (which are off,
// what is computed in place, the executor), and the build of the library. It holds the question itself and the text of the optimised graph
// (ir/text.h), behind a checksum. Numbers that each run reads anew (learning rates, places in random streams) are not part of a question.
//
// Nothing in the folder is trusted. The folder must be a folder of this user that no one else may read or write, and so must each entry be a
// file; made here they have modes 0700 and 0600. An entry counts only if its checksum holds, its question is this one to the letter, its
// graph is well typed and has the inputs and outputs of the recorded one. Anything else is passed over with a warning, a line on stderr, and
// replaced. Entries appear whole or not at all (a file of another name, renamed), so that any number of processes may share a folder.
// A folder that cannot be used, or a disk that is full, costs a warning: the passes run as without a cache.
//
// At most kEntries are kept: the least recently used go first. Not kept: what a plan binds to memory of the process, and graphs with ops
// that ops::find_op does not know. A build is told by the size and time of the file that has this code.
// Start reading at find_or_make().
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace retrograd::plan_cache {

inline constexpr const char* kFolderVariable = "RETROGRAD_PLAN_CACHE";
inline constexpr size_t kEntries = 512;

/// Where entries are kept from now on; the folder is made when it is first needed, its parent must be there. "": nowhere. Overrides the
/// environment variable.
void set_folder(std::string_view folder);
/// Empty when the cache is off.
std::string folder();

/// Since the start of the process.
struct Stats {
  int64_t hits = 0;      // graphs that came from the folder
  int64_t misses = 0;    // that had no entry
  int64_t rejected = 0;  // that had one which does not count
  int64_t stored = 0;    // entries written
  int64_t failed = 0;    // entries that could not be written, questions that could not be asked
  int64_t skipped = 0;   // graphs that are not kept
};
Stats stats();
/// The last warning, without the line's beginning; empty when there was none.
std::string last_warning();

/// The optimised graph of `recorded`: from the folder, or else from `make`, and kept. `settings`: in words, what `make` depends on besides.
ir::Graph find_or_make(const ir::Graph& recorded, std::string_view settings,
                       const std::function<ir::Graph()>& make);

}  // namespace retrograd::plan_cache
