// See engine/walk.h.
#include "engine/walk.h"

#include <algorithm>
#include <unordered_set>

namespace retrograd::inline v0 {

void SeqMap::turn_to(uint64_t key) {
  std::unique_ptr<Page>& page = pages_[key];
  if (!page) {
    page = std::make_unique_for_overwrite<Page>();
    std::fill(std::begin(page->entry), std::end(page->entry), kNone);
  }
  last_key_ = key;
  last_ = page.get();
}

bool SeqMap::next_on_other_page(uint64_t& seq) {
  if (seq == 0) return false;
  auto it = pages_.upper_bound((seq - 1) >> kBits);
  while (it != pages_.begin()) {
    --it;
    const uint64_t base = it->first << kBits;
    for (uint64_t s = std::min(seq, base + (1 << kBits)); s-- > base;)
      if (it->second->entry[s - base] != kNone) {
        seq = s;
        last_key_ = it->first;
        last_ = it->second.get();
        return true;
      }
  }
  return false;
}

void Walk::touch_leaf(TensorImpl* leaf, int32_t from) {
  auto [it, fresh] = leaf_index_.try_emplace(leaf, static_cast<uint32_t>(leaves_.size()));
  if (fresh) leaves_.push_back({leaf, grads_++, from, rank_++});
  Leaf& reached = leaves_[it->second];
  reached.after = from;
  reached.rank = rank_++;
}

inline void Walk::touch(const Edge& edge, int32_t from) {
  if (Record* record = edge.record()) {
    uint64_t& entry = index_.at(record->seq);
    if (entry == SeqMap::kNone) entry = reinterpret_cast<uintptr_t>(record);
  } else if (edge.leaf()) {
    touch_leaf(edge.leaf(), from);
  }
}

Walk::Walk(std::span<const Edge> roots, const std::vector<Edge>* inputs, AtInputs at_inputs)
    : roots_(roots.begin(), roots.end()) {
  std::unordered_set<const Record*> ends;
  if (inputs && at_inputs == AtInputs::end)
    for (const Edge& edge : *inputs) ends.insert(edge.record());
  uint64_t seq = 0;
  for (const Edge& edge : roots_) {
    if (edge.record()) seq = std::max(seq, edge.record()->seq + 1);
    touch(edge, kBeforeAll);
  }
  while (index_.next_below(seq)) {
    uint64_t& entry = index_.at(seq);
    Record& record = *reinterpret_cast<Record*>(entry);
    entry = order_.size();
    const auto place = static_cast<int32_t>(order_.size());
    order_.push_back({&record, grads_});
    grads_ += record.outputs;
    const bool is_end = !ends.empty() && ends.contains(&record);
    for (int i = is_end ? 0 : record.operands; i-- > 0;) touch(record.edge(i), place);
  }
  if (roots.size() == 1 && !inputs) lone_root_ = roots[0];
  if (inputs) {
    mark_wanted(*inputs, at_inputs);
    visit_lone_root(roots);
  }
  std::sort(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) {
    return a.after != b.after ? a.after < b.after : a.rank < b.rank;
  });
  for (uint32_t i = 0; i < leaves_.size(); ++i) leaf_index_[leaves_[i].leaf] = i;
}

// Only records that lead to an input run. Producers come later in the order, so one backward pass over it decides for
// all.
void Walk::mark_wanted(const std::vector<Edge>& inputs, AtInputs at_inputs) {
  for (Leaf& leaf : leaves_) leaf.wanted = false;
  for (Item& item : order_) item.runs = false;
  for (const Edge& edge : inputs) {
    if (edge.record()) {
      const uint64_t at = index_.at(edge.record()->seq);
      if (at != SeqMap::kNone) (at_inputs == AtInputs::run ? order_[at].runs : order_[at].captured) = true;
    } else if (auto it = leaf_index_.find(edge.leaf()); edge.leaf() && it != leaf_index_.end()) {
      leaves_[it->second].wanted = true;
    }
  }
  for (size_t k = order_.size(); k-- > 0;) {
    if (at_inputs == AtInputs::end && order_[k].captured) continue;
    const Record& record = *order_[k].record;
    for (int i = 0; i < record.operands && !order_[k].runs; ++i) {
      const Edge& edge = record.edge(i);
      if (edge.record()) {
        const Item& producer = order_[index_.at(edge.record()->seq)];
        order_[k].runs = producer.runs || producer.captured;
      } else if (edge.leaf()) {
        order_[k].runs = leaves_[leaf_index_.at(edge.leaf())].wanted;
      }
    }
  }
}

// As in PyTorch, the hooks of an only root run even when no requested gradient depends on it.
void Walk::visit_lone_root(std::span<const Edge> roots) {
  const Edge edge = roots.size() == 1 ? roots[0] : Edge{};
  if (!edge.record()) return;
  Item& root = order_[index_.at(edge.record()->seq)];
  if (root.runs || root.captured) return;
  root.captured = true;
  lone_root_ = edge;
}

uint32_t Walk::leaf_target(const TensorImpl* leaf) const {
  auto it = leaf_index_.find(leaf);
  return it == leaf_index_.end() || !leaves_[it->second].wanted ? SeqMap::kNone : leaves_[it->second].grad;
}

uint32_t Walk::place(const Edge& edge) {
  if (edge.record()) return static_cast<uint32_t>(index_.at(edge.record()->seq));
  const auto it = leaf_index_.find(edge.leaf());
  return it == leaf_index_.end() ? SeqMap::kNone : it->second;
}

Reached Walk::reached() const {
  Reached reached;
  reached.records.reserve(order_.size());
  for (const Item& item : order_) {
    reached.records.push_back(item.record);
    reached.add_size(item.record->size_hash);
  }
  for (const Leaf& leaf : leaves_) reached.leaves.push_back(leaf.leaf);
  return reached;
}

bool Walk::reaches(uint64_t seq) {
  const uint64_t at = index_.at(seq);
  return at != SeqMap::kNone && (order_[at].runs || order_[at].captured) &&
         lone_root_.record() != order_[at].record;
}

bool Walk::reaches(const TensorImpl* leaf) {
  return leaf_target(leaf) != SeqMap::kNone && lone_root_.leaf() != leaf;
}

}  // namespace retrograd
