// See tracer/key.h.
#include "tracer/key.h"

#include <xxhash.h>

namespace retrograd {
namespace {

// The words of one walk, hashed at the end in one go.
class Fold {
 public:
  explicit Fold(size_t records) {
    structure_.reserve(records * 4 + 64);
    sizes_.reserve(records + 64);
  }
  void add(uint64_t w) { structure_.push_back(w); }
  void add_size(uint64_t w) { sizes_.push_back(w); }
  void add_dim(Dim d) {
    add(d.raw() == 0 || d.raw() == 1 ? static_cast<uint64_t>(d.raw()) : 2);
    add_size(static_cast<uint64_t>(d.raw()));
  }
  void add_type(const TensorType& t) {
    add(static_cast<uint64_t>(t.dtype) | static_cast<uint64_t>(t.device.type) << 8 | static_cast<uint64_t>(t.shape.rank()) << 16);
    for (Dim d : t.shape) add_dim(d);
  }
  void add_hooks(const HookList& hooks) {
    uint64_t live = 0;
    for (const RefPtr<Hook>& h : hooks.all()) {
      if (!h->is_live()) continue;
      ++live;
      add(h->traceable ? reinterpret_cast<uintptr_t>(h.get()) : h->output_nr);
    }
    add(live);
  }
  BackwardKey key() const { return {hash(structure_), hash(sizes_)}; }

 private:
  static std::array<uint64_t, 2> hash(const std::vector<uint64_t>& words) {
    const XXH128_hash_t h = XXH3_128bits(words.data(), words.size() * 8);
    return {h.low64, h.high64};
  }
  std::vector<uint64_t> structure_, sizes_;
};

void fold_record(Fold& fold, Walk& walk, const Walk::Item& item) {
  const Record& r = *item.record;
  uint64_t packed = 0;
  for (int i = 0; i < r.slots; ++i) {
    const Slot& slot = r.slot[i];
    if (!slot.packed) continue;
    packed |= uint64_t{1} << i;
    if (slot.packed->hooks->traceable) fold.add(reinterpret_cast<uintptr_t>(slot.packed->hooks.get()));
  }
  fold.add(r.structure_hash);
  fold.add(packed << 3 | uint64_t{r.hooks != nullptr} << 2 | uint64_t{item.runs} << 1 | uint64_t{item.captured});
  fold.add_size(r.size_hash);
  for (int i = 0; i < r.operands; ++i)
    if (r.edges[i]) fold.add(static_cast<uint64_t>(i) << 40 | uint64_t{walk.target(r.edges[i])} << 1 | uint64_t{r.edges[i].leaf.get() != nullptr});
  if (!r.hooks) return;
  fold.add_hooks(r.hooks->tensor);
  fold.add_hooks(r.hooks->pre);
  fold.add_hooks(r.hooks->post);
  for (const auto& [output_nr, box] : r.hooks->retained) fold.add(output_nr);
  fold.add(r.hooks->retained.size());
}

}  // namespace

BackwardKey make_key(const BackwardRequest& request, Walk& walk) {
  Fold fold(walk.order().size());
  fold.add(uint64_t{request.accumulate} | uint64_t{request.create_graph} << 1);
  for (size_t i = 0; i < request.roots.size(); ++i) {
    fold.add(walk.target(gradient_edge(request.roots[i].impl())));
    fold.add_type(request.cotangents[i].impl().type());
  }
  if (request.inputs)
    for (const Tensor& input : *request.inputs) fold.add(walk.target(gradient_edge(input.impl())));
  for (const Walk::Item& item : walk.order()) fold_record(fold, walk, item);
  for (const Walk::Leaf& leaf : walk.leaves()) {
    const AutogradMeta* meta = leaf.leaf->meta.get();
    fold.add(static_cast<uint64_t>(leaf.after + 1) << 2 | uint64_t{leaf.wanted} << 1 | uint64_t{meta != nullptr && !meta->tensor_hooks.empty()});
    if (!meta) continue;
    for (const HookList* hooks : {&meta->tensor_hooks, &meta->pre_hooks, &meta->post_hooks, &meta->post_accumulate_hooks})
      if (!hooks->empty()) fold.add_hooks(*hooks);
  }
  return fold.key();
}

}  // namespace retrograd
