// See tracer/backward/trail.h.
#include "tracer/backward/trail.h"

#include <algorithm>

#include "tracer/backward/packed_slots.h"

namespace retrograd::inline v0 {
namespace {

constexpr intptr_t kAhead = 8;

// No two of `leaves` are the same: an open-addressed set.
bool all_distinct(const std::vector<TensorImpl*>& leaves) {
  if (leaves.size() < 2) return true;
  const int bits = std::bit_width(leaves.size() * 2);
  const size_t mask = (size_t{1} << bits) - 1;
  std::vector<const TensorImpl*> seen(mask + 1);
  for (const TensorImpl* leaf : leaves) {
    size_t at = (reinterpret_cast<uintptr_t>(leaf) * 0x9E3779B97F4A7C15u) >> (64 - bits);
    for (; seen[at]; at = (at + 1) & mask)
      if (seen[at] == leaf) return false;
    seen[at] = leaf;
  }
  return true;
}

bool is_reached(const Edge& edge, const Reached& reached) {
  if (edge.leaf()) return std::ranges::find(reached.leaves, edge.leaf()) != reached.leaves.end();
  const auto at = std::ranges::lower_bound(reached.records, edge.record()->seq, std::greater(), &Record::seq);
  return at != reached.records.end() && *at == edge.record();
}

}  // namespace

Trail::Target Trail::target_of(const Edge& edge, Walk& walk) {
  const uint32_t place = edge ? walk.place(edge) : kNowhere;
  return place == kNowhere ? Target{} : Target{place, edge.output_nr()};
}

Trail::Trail(const BackwardRequest& request, Walk& walk, uint64_t packed)
    : accumulate_(request.accumulate),
      create_graph_(request.create_graph),
      packs_(request.pair),
      to_inputs_(request.to_inputs),
      cotangents_(cotangent_types(request)),
      packed_(packed) {
  for (const Edge& root : request.root_edges) roots_.push_back(target_of(root, walk));
  for (const Edge& input : request.input_edges) inputs_.push_back(target_of(input, walk));
  steps_.reserve(walk.order().size());
  portraits_.reserve(walk.order().size());
  for (const Walk::Item& item : walk.order()) {
    const Record& r = *item.record;
    steps_.push_back({r.structure_hash, annotations_of(r), r.operands});
    for (int i = r.operands; i-- > 0;) targets_.push_back(target_of(r.edge(i), walk));
    add_portrait(r);
  }
  for (const Walk::Leaf& leaf : walk.leaves()) leaf_annotations_.push_back(annotations_of(*leaf.leaf));
  for (const Tensor& c : request.cotangents) cotangent_types_.push_back(c.impl().type());
  for (size_t k = 0; k < steps_.size(); ++k)
    if (steps_[k].annotations) annotation_texts_[k] = annotation_text(*walk.order()[k].record);
  for (size_t i = 0; i < leaf_annotations_.size(); ++i)
    if (leaf_annotations_[i]) leaf_annotation_texts_[i] = annotation_text(*walk.leaves()[i].leaf);
}

void Trail::add_portrait(const Record& r) {
  portraits_.push_back({r.op, static_cast<uint32_t>(types_.size()), static_cast<uint32_t>(dims_.size()),
                        static_cast<uint32_t>(attrs_.size()), r.operands});
  for (int i = 0; i < r.type_count(); ++i) types_.push_back(r.type_meta(i));
  dims_.insert(dims_.end(), r.dims(), r.dims() + r.dim_count());
  const auto* attrs = static_cast<const std::byte*>(r.attrs());
  attrs_.insert(attrs_.end(), attrs, attrs + r.op->attrs_size);
  attrs_.resize((attrs_.size() + 15) / 16 * 16);
}

bool Trail::same_question(const BackwardRequest& request) const {
  return request.accumulate == accumulate_ && request.create_graph == create_graph_ &&
         static_cast<bool>(request.pair) == packs_ && request.to_inputs == to_inputs_ &&
         request.root_edges.size() == roots_.size() && request.input_edges.size() == inputs_.size() &&
         cotangent_types(request) == cotangents_;
}

bool Trail::matches(const BackwardRequest& request, Reached& reached) const {
  if (!same_question(request)) return false;
  reached.records.assign(steps_.size(), nullptr);
  reached.leaves.assign(leaf_annotations_.size(), nullptr);
  reached.regions.clear();
  Record** const records = reached.records.data();  // avoids reading it again after each write
  TensorImpl** const leaves = reached.leaves.data();
  const auto leads_to = [records, leaves](const Edge& edge, const Target& target) {
    if (target.place == kNowhere) return !edge;
    if (target.output_nr == Edge::kLeaf) {
      TensorImpl*& at = leaves[target.place];
      if (!at) at = edge.leaf();
      return at && edge.leads_to(*at);
    }
    Record*& at = records[target.place];
    if (!at) at = edge.record();
    return at && edge.leads_to(*at, target.output_nr);
  };
  for (size_t i = 0; i < roots_.size(); ++i)
    if (!leads_to(request.root_edges[i], roots_[i])) return false;
  const Target* target = targets_.data();
  Record* const* record = records;
  uint64_t above = ~uint64_t{0}, sizes = 0;
  intptr_t last = 0;
  for (const Step& step : steps_) {
    const Record& r = **record++;
    // Records made in sequence are mostly at a fixed distance: prefetching at the guessed addresses hides memory
    // latency.
    const auto address = reinterpret_cast<intptr_t>(&r);
    const auto* guess =
        reinterpret_cast<const char*>(address + (address - std::exchange(last, address)) * kAhead);
    __builtin_prefetch(guess);
    __builtin_prefetch(guess + sizeof(Record));  // the edges
    if (r.structure_hash != step.structure || r.seq >= above) return false;
    if ((r.hooks || r.was_packed ? annotations_of(r) : 0) != step.annotations) return false;
    above = r.seq;
    sizes = fold_hash(sizes, r.size_hash);
    // The step knows the number of edges: reading it from the record first would lengthen the dependency chain from
    // record to record, which determines the time of a match.
    const Edge* const edges = r.edges();
    for (const Edge* edge = edges + step.operands; edge != edges;)
      if (!leads_to(*--edge, *target++)) return false;
  }
  reached.sizes = sizes;
  for (size_t i = 0; i < reached.leaves.size(); ++i)
    if (annotations_of(*reached.leaves[i]) != leaf_annotations_[i]) return false;
  // Without such slots, no structure mentions one.
  if (packed_ && find_packed_slots(reached) != packed_) return false;
  return all_distinct(reached.leaves) && inputs_match(request, reached);
}

bool Trail::inputs_match(const BackwardRequest& request, const Reached& reached) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Edge& edge = request.input_edges[i];
    const auto [place, output_nr] = inputs_[i];
    if (place == kNowhere) {
      if (is_reached(edge, reached)) return false;
    } else if (output_nr == Edge::kLeaf) {
      if (reached.leaves[place] != edge.leaf()) return false;
    } else if (reached.records[place] != edge.record() || edge.output_nr() != output_nr) {
      return false;
    }
  }
  return true;
}

}  // namespace retrograd
