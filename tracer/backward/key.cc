// See tracer/backward/key.h.
#include "tracer/backward/key.h"

#include <xxhash.h>

namespace retrograd::inline v0 {
namespace {

// Words that are hashed together at the end.
class Fold {
 public:
  explicit Fold(size_t expected = 0) { words_.reserve(expected); }
  void add(uint64_t w) { words_.push_back(w); }
  void add_hooks(const HookList& hooks) {
    uint64_t live = 0;
    for (const RefPtr<Hook>& h : hooks.all()) {
      if (!h->is_live()) continue;
      ++live;
      add(h->traceable ? reinterpret_cast<uintptr_t>(h.get()) : h->output_nr);
    }
    add(live);
  }
  Key key() const {
    const XXH128_hash_t h = XXH3_128bits(words_.data(), words_.size() * 8);
    return {h.low64, h.high64};
  }
  uint64_t word() const { return XXH3_64bits(words_.data(), words_.size() * 8); }

 private:
  std::vector<uint64_t> words_;
};

// Bit i: slot i is packed; in a second word, its unpack is part of the graph.
uint64_t packed_slots(const Record& record) {
  uint64_t packed = 0, recorded = 0;
  for (int i = 0; i < record.slots; ++i) {
    const Packed* const slot = record.slot(i).packed();
    packed |= uint64_t{slot != nullptr} << i;
    recorded |= uint64_t{slot && (slot->structure || slot->hooks->region())} << i;
  }
  return recorded ? fold_hash(packed, recorded) : packed;
}

void fold_record(Fold& fold, Walk& walk, const Walk::Item& item) {
  const Record& r = *item.record;
  fold.add(r.structure_hash);
  fold.add(annotations_of(r));
  // The numbering of gradients is part of the wiring.
  fold.add(uint64_t{item.first_grad} << 2 | uint64_t{item.runs} << 1 | uint64_t{item.captured});
  for (int i = 0; i < r.operands; ++i)
    if (r.edge(i))
      fold.add(static_cast<uint64_t>(i) << 40 | uint64_t{walk.target(r.edge(i))} << 1 |
               uint64_t{r.edge(i).leaf() != nullptr});
}

}  // namespace

uint64_t annotations_of(const Record& r) {
  const uint64_t packed = r.was_packed ? packed_slots(r) : 0;
  if (!r.hooks) return packed;
  Fold fold;
  fold.add(packed);
  fold.add_hooks(r.hooks->tensor);
  fold.add_hooks(r.hooks->pre);
  fold.add_hooks(r.hooks->post);
  for (const auto& [output_nr, box] : r.hooks->retained) fold.add(output_nr);
  fold.add(r.hooks->retained.size());
  return fold.word();
}

uint64_t annotations_of(const TensorImpl& leaf) {
  const AutogradMeta* meta = leaf.meta.get();
  if (!meta || !meta->has_hooks()) return 0;
  Fold fold;
  for (const HookList* hooks :
       {&meta->tensor_hooks, &meta->pre_hooks, &meta->post_hooks, &meta->post_accumulate_hooks})
    fold.add_hooks(*hooks);
  return fold.word();
}

uint64_t cotangent_types(const BackwardRequest& request) {
  Fold fold;
  for (const Tensor& cotangent : request.cotangents) {
    const TensorImpl& c = cotangent.impl();
    fold.add(static_cast<uint64_t>(c.dtype()) | static_cast<uint64_t>(c.device().type()) << 8 |
             static_cast<uint64_t>(c.rank()) << 16);
    for (Dim d : c.shape()) fold.add(d.raw() == 0 || d.raw() == 1 ? static_cast<uint64_t>(d.raw()) : 2);
  }
  return fold.word();
}

Key structure_key(const BackwardRequest& request, Walk& walk, uint64_t packed) {
  Fold fold(walk.order().size() * 5 + 64);
  fold.add(uint64_t{request.accumulate} | uint64_t{request.create_graph} << 1 |
           uint64_t{request.pair ? 1u : 0u} << 2 | static_cast<uint64_t>(get_default_dtype()) << 8);
  fold.add(packed);
  for (const Edge& root : request.root_edges) fold.add(walk.target(root));
  fold.add(cotangent_types(request));
  for (const Edge& input : request.input_edges) fold.add(walk.target(input));
  for (const Walk::Item& item : walk.order()) fold_record(fold, walk, item);
  for (const Walk::Leaf& leaf : walk.leaves()) {
    fold.add(static_cast<uint64_t>(leaf.after + 1) << 33 | uint64_t{leaf.grad} << 1 | uint64_t{leaf.wanted});
    fold.add(annotations_of(*leaf.leaf));
  }
  return fold.key();
}

Key sizes_key(const BackwardRequest& request, const Reached& reached) {
  Fold fold;
  for (const Tensor& cotangent : request.cotangents)
    for (Dim d : cotangent.impl().shape()) fold.add(static_cast<uint64_t>(d.raw()));
  fold.add(reached.sizes);
  return fold.key();
}

}  // namespace retrograd
