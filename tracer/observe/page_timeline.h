// The timeline of a page (tracer/observe/page.h): live bytes over the time of a run, by what they are held for
// (tracer/observe/held_memory.h), and below them the time of each node.
#pragma once

#include "tracer/observe/profile.h"

namespace retrograd::inline v0::page_parts {

/// An HTML figure. Rectangles of nodes have their numbers as data-n; areas have the names of kHeldFor as classes.
std::string timeline(const Profile::Run& run);

/// unpack, hook, leaf or op: the classes of nodes on a page.
std::string_view kind_of(const ir::Node& node);

std::string time_text(double ns);

}  // namespace retrograd::page_parts
