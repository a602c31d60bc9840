// See tracer/backward/backward_cache.h; start reading at prepare.
#include "tracer/backward/backward_cache.h"

#include <algorithm>

#include <fmt/format.h>

#include "tracer/backward/packed_slots.h"
#include "tracer/observe/log.h"

namespace retrograd::inline v0 {

std::shared_ptr<BackwardCache::Structure> BackwardCache::newest() const {
  std::lock_guard lock(mutex_);
  return structures_.empty() ? nullptr : structures_.front();
}

std::shared_ptr<BackwardCache::Structure> BackwardCache::find(const Key& key) {
  std::lock_guard lock(mutex_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  structures_.splice(structures_.begin(), structures_, it->second);
  return structures_.front();
}

std::shared_ptr<BackwardCache::Structure> BackwardCache::add(const Key& key, const BackwardRequest& request,
                                                             Walk& walk, uint64_t packed) {
  auto structure = std::make_shared<Structure>(Structure{key, Trail(request, walk, packed), {}});
  std::lock_guard lock(mutex_);
  if (const auto it = by_key_.find(key); it != by_key_.end())
    return *it->second;  // another thread was faster
  structures_.push_front(structure);
  by_key_[key] = structures_.begin();
  if (structures_.size() > CompiledBackward::kStructures) {
    by_key_.erase(structures_.back()->key);
    structures_.pop_back();
    ++stats_.evictions;
  }
  return structure;
}

// Finds an existing plan. Requires mutex_.
bool BackwardCache::find_plan(const std::shared_ptr<Structure>& structure, const Key& sizes,
                              const Reached& reached, Found& found) {
  for (const auto& capture : structure->captures) {
    found = {structure, capture, capture->find(sizes), {}};
    if (!found.entry) continue;
    if (!capture->has_numbers()) return true;
    found.numbers = found.entry->values;
    if (capture->read_numbers(reached, found.numbers)) return true;
  }
  return false;
}

// Finds a graph and a plan of the structure that fit this call, or makes a new plan for a graph that fits.
bool BackwardCache::look_up(const std::shared_ptr<Structure>& structure, const BackwardRequest& request,
                            const Reached& reached, Found& found, std::string& misfit) {
  const Key sizes = sizes_key(request, reached);
  std::vector<std::shared_ptr<Capture>> captures;
  {
    std::lock_guard lock(mutex_);
    if (find_plan(structure, sizes, reached, found)) {
      ++stats_.hits;
      ++structure->runs;
      return true;
    }
    captures = structure->captures;
  }
  for (const auto& capture : captures) {
    std::vector<Number> values = capture->values(request, reached, misfit);
    if (values.empty()) continue;
    found = {structure, capture, capture->make_plan(sizes, std::move(values)), {}};
    std::lock_guard lock(mutex_);
    stats_.evictions += capture->keep(found.entry);
    ++stats_.plans;
    ++stats_.hits;
    ++structure->runs;
    return true;
  }
  return false;
}

BackwardCache::Found BackwardCache::capture(const std::shared_ptr<Structure>& structure,
                                            const BackwardRequest& request, Walk& walk,
                                            const Reached& reached) {
  std::string misfit;
  std::shared_ptr<Capture> capture = Capture::record(request, walk, reached);
  std::vector<Number> values = capture->values(request, reached, misfit);
  RG_ASSERT(!values.empty());
  Found found{structure, capture, capture->make_plan(sizes_key(request, reached), std::move(values)), {}};
  std::lock_guard lock(mutex_);
  capture->keep(found.entry);
  structure->captures.push_back(std::move(capture));
  if (structure->captures.size() > CompiledBackward::kGraphs) {
    structure->captures.erase(structure->captures.begin());
    ++stats_.evictions;
  }
  ++structure->runs;
  ++stats_.captures;
  ++stats_.plans;
  return found;
}

BackwardCache::Found BackwardCache::look_up_or_capture(const BackwardRequest& request, Reached& reached) {
  Found found;
  std::string misfit;
  const std::shared_ptr<Structure> recent = newest();
  if (recent && recent->trail.matches(request, reached) && look_up(recent, request, reached, found, misfit))
    return found;
  Walk walk = request.walk();
  reached = walk.reached();
  const uint64_t packed = find_packed_slots(reached);
  const Key key = structure_key(request, walk, packed);
  std::shared_ptr<Structure> structure = find(key);
  if (structure && structure != recent && look_up(structure, request, reached, found, misfit)) return found;
  if (!structure) {
    misfit = recent ? recent->trail.difference(request, walk) : "first call";
    structure = add(key, request, walk, packed);
  }
  {
    std::lock_guard lock(mutex_);
    ++stats_.misses;
    reason_ = misfit;
  }
  found = capture(structure, request, walk, reached);
  found.captured = true;
  if (found.capture->recorded().has_parts() && logging::wants(logging::Topic::trace))
    logging::write(logging::Topic::trace,
                   "before the unpacks of traceable pairs are inlined:\n" +
                       Capture::record(request, walk, reached, false)->graph().print());
  logging::captured(found.capture->graph(), misfit);
  return found;
}

bool BackwardCache::knows(const BackwardRequest& request, Reached& reached) {
  std::shared_ptr<Structure> structure = newest();
  if (!structure || !structure->trail.matches(request, reached)) {
    Walk walk = request.walk();
    reached = walk.reached();
    structure = find(structure_key(request, walk, find_packed_slots(reached)));
  }
  if (!structure) return false;
  const Key sizes = sizes_key(request, reached);
  Found found;
  std::string misfit;
  std::lock_guard lock(mutex_);
  return find_plan(structure, sizes, reached, found) ||
         std::ranges::any_of(structure->captures, [&](const auto& capture) {
           return !capture->values(request, reached, misfit).empty();
         });
}

BackwardCache::Found BackwardCache::prepare(const BackwardRequest& request, Reached& reached) {
  Found found = look_up_or_capture(request, reached);
  std::lock_guard lock(mutex_);
  last_ = found.capture;
  stats_.nodes = static_cast<int64_t>(found.capture->graph().nodes().size());
  stats_.unpacks += found.capture->unpack_count();
  return found;
}

void BackwardCache::count_left() {
  std::lock_guard lock(mutex_);
  ++stats_.left;
}

// ---- what is told -------------------------------------------------------------------------------------------------

CompiledBackward::Stats BackwardCache::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

std::shared_ptr<Capture> BackwardCache::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

std::string BackwardCache::reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

std::string BackwardCache::explain() const {
  std::lock_guard lock(mutex_);
  const CompiledBackward::Stats& s = stats_;
  std::string text = fmt::format(
      "{} structures, {} captures, {} plans; {} hits, {} misses, {} evictions; {} runs left their graph\n",
      structures_.size(), s.captures, s.plans, s.hits, s.misses, s.evictions, s.left);
  for (const auto& structure : structures_) {
    text += fmt::format("structure of {} records, ran {} times\n", structure->trail.size(), structure->runs);
    for (const auto& capture : structure->captures) {
      const ir::Graph& g = capture->graph();
      text +=
          fmt::format("  graph of {} nodes: {} inputs, {} of them slots; {} symbols, {} guards; {} plans\n",
                      g.nodes().size(), g.inputs().size(), capture->unpack_count(), g.symbols.symbol_count(),
                      g.symbols.guards().size(), capture->plan_count());
    }
  }
  if (!reason_.empty()) text += fmt::format("the last capture was needed because: {}\n", reason_);
  return text;
}

void BackwardCache::reset() {
  std::lock_guard lock(mutex_);
  structures_.clear();
  by_key_.clear();
  last_.reset();
  reason_.clear();
  stats_ = {};
}

}  // namespace retrograd
