// The bindings of the inputs of a captured backward in a run.
//
//   Source   origin of an input, in terms of the walk: "slot 1 of record 3", "tensor 0 of the payload in that slot",
//            "leaf 0", "pre-hook 2 of record 5"
//   Binder   returns the binding of a source in one run
#pragma once

#include "engine/driver.h"
#include "ir/replay.h"

namespace retrograd::inline v0 {

/// The origin of an input of a recorded backward.
struct Source {
  enum class Kind : uint8_t {
    root,
    slot,
    region,
    leaf,
    record_hook,
    leaf_hook,
    box,
    function,
    pair,
    constant
  };
  enum class List : uint8_t { tensor, pre, post, post_accumulate };
  Kind kind;
  uint32_t place = 0;  // root; or ordinal of the record or region; or index of the leaf in the walk
  uint32_t index =
      0;  // slot; or input of the region; or place among the live hooks of the list; or retained box
  List list = List::tensor;
  uint32_t offset = 0;  // slot: in bytes, from the record
  int32_t part = -1;    // slot: a tensor of its payload; -1: the unpacked value
  Tensor constant = {};
};

/// The list of a record's hooks, or a leaf's, that a source of kind record_hook or leaf_hook names.
inline const HookList& hook_list(const RecordHooks& hooks, Source::List list) {
  return list == Source::List::tensor ? hooks.tensor : list == Source::List::pre ? hooks.pre : hooks.post;
}
inline const HookList& hook_list(const AutogradMeta& leaf, Source::List list) {
  switch (list) {
    case Source::List::tensor: return leaf.tensor_hooks;
    case Source::List::pre: return leaf.pre_hooks;
    case Source::List::post: return leaf.post_hooks;
    case Source::List::post_accumulate: break;
  }
  return leaf.post_accumulate_hooks;
}

class Binder {
 public:
  Binder(const BackwardRequest& request, const Reached& reached) : request_(request), reached_(reached) {}
  ir::Binding operator()(const Source& source);

 private:
  Hook* hook_of(const Source& source);
  Hook* live_hook(const HookList& hooks, uint32_t index);

  const BackwardRequest& request_;
  const Reached& reached_;
  // The last hook found: usually the next one follows it.
  const HookList* list_ = nullptr;
  size_t at_ = 0;       // in all(), after it
  uint32_t index_ = 0;  // among the live ones, after it
};

}  // namespace retrograd
