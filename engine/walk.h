// Walk: the one marking walk of a backward. From the roots it finds every record that is reached, in the order in which
// they will run, and every leaf with its place in that order. The driver runs along it, and the tracer folds the cache
// key along it.
//
// Order: sequence numbers grow from producer to consumer, so among the reached records the highest number is always
// ready: no dependency counts and no heap. A leaf accumulates directly after its lowest *reached* consumer (numbering
// leaves at recording would let unreached consumers and older retained graphs delay them); of several leaves of one
// record, the later operand's comes first.
// The state of a run is here, not in the records: concurrent and nested backwards share nothing.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/tape.h"

namespace retrograd::inline v0 {

/// A map from sequence number to a word, for descending access: pages of a thousand entries, with the last one cached.
class SeqMap {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};
  /// The entry of `seq`, kNone when it was never set.
  uint64_t& at(uint64_t seq) {
    if (seq >> kBits != last_key_) [[unlikely]]
      turn_to(seq >> kBits);
    return last_->entry[seq & ((1 << kBits) - 1)];
  }
  /// Moves `seq` down to the next entry that is set and below it; false at the end.
  bool next_below(uint64_t& seq) {
    uint64_t s = seq - 1;
    for (; s >> kBits == last_key_; --s)  // nearly always it is on the page of the last access
      if (last_->entry[s & ((1 << kBits) - 1)] != kNone) {
        seq = s;
        return true;
      }
    seq = s + 1;
    return next_on_other_page(seq);
  }

 private:
  static constexpr int kBits = 10;
  struct Page {
    uint64_t entry[1 << kBits];
  };
  void turn_to(uint64_t key);
  bool next_on_other_page(uint64_t& seq);

  std::map<uint64_t, std::unique_ptr<Page>> pages_;
  uint64_t last_key_ = ~uint64_t{0};
  Page* last_ = nullptr;
};

/// The records and leaves that a backward reaches, in the order of its walk: a captured graph is bound to them.
struct Reached {
  std::vector<Record*> records;
  std::vector<TensorImpl*> leaves;
  std::vector<Region*> regions;  // see find_packed_slots (tracer/backward/packed_slots.h)
  uint64_t sizes = 0;            // hash over the size hashes of the records, in order

  void add_size(uint64_t size_hash) { sizes = fold_hash(sizes, size_hash); }
};

/// What a backward reaches; used by multi-grad hooks.
class Reach {
 public:
  /// Whether it reaches the record with this number, or this leaf, and wants the gradient there. As in PyTorch, the
  /// only root of a backward to all leaves does not count.
  virtual bool reaches(uint64_t seq) = 0;
  virtual bool reaches(const TensorImpl* leaf) = 0;

 protected:
  ~Reach() = default;
};

class Walk final : public Reach {
 public:
  static constexpr int32_t kBeforeAll = -1;

  struct Item {
    Record* record;
    uint32_t first_grad;    // index of the gradient of its first result
    bool runs = true;       // its rule is needed
    bool captured = false;  // a result is among `inputs`
  };
  struct Leaf {
    TensorImpl* leaf;
    uint32_t grad;  // index of its gradient
    int32_t after;  // position of its last consumer in the order, or kBeforeAll
    uint32_t rank;  // among those with the same `after`
    bool wanted = true;
  };

  enum class AtInputs : uint8_t {
    go_on,  // a record whose result is an input runs if it leads to another input
    run,    // it runs in any case, as in PyTorch when gradients are accumulated
    end,    // no path goes through it
  };
  /// From the edges of the roots. `inputs` null: every leaf is wanted.
  Walk(std::span<const Edge> roots, const std::vector<Edge>* inputs, AtInputs at_inputs = AtInputs::go_on);

  const std::vector<Item>& order() const { return order_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }  // in order of accumulation
  uint32_t grad_count() const { return grads_; }
  /// Index of the gradient that `edge` leads to; SeqMap::kNone when the walk did not reach it or it is not wanted.
  uint32_t target(const Edge& edge) { return edge.record() ? record_target(edge) : leaf_target(edge.leaf()); }
  /// Position of the edge's destination in the order, or among the leaves, wanted or not; SeqMap::kNone when it was not
  /// reached.
  uint32_t place(const Edge& edge);
  Reached reached() const;
  bool reaches(uint64_t seq) override;
  bool reaches(const TensorImpl* leaf) override;

 private:
  uint32_t record_target(const Edge& edge) {
    const uint64_t at = index_.at(edge.record()->seq);
    if (at == SeqMap::kNone || !(order_[at].runs || order_[at].captured)) return SeqMap::kNone;
    return order_[at].first_grad + edge.output_nr();
  }
  uint32_t leaf_target(const TensorImpl* leaf) const;
  void touch(const Edge& edge, int32_t from);
  void touch_leaf(TensorImpl* leaf, int32_t from);
  void mark_wanted(const std::vector<Edge>& inputs, AtInputs at_inputs);
  void visit_lone_root(std::span<const Edge> roots);

  std::vector<Item> order_;
  std::vector<Leaf> leaves_;
  SeqMap index_;  // of records, in order_; for those that are not in it yet, their address
  std::unordered_map<const TensorImpl*, uint32_t> leaf_index_;
  std::vector<Edge> roots_;  // keeps the graph alive
  Edge lone_root_;           // an only root, which reaches() does not count
  uint32_t grads_ = 0, rank_ = 0;
};

}  // namespace retrograd
