// See tracer/backward/binder.h.
#include "tracer/backward/binder.h"

#include "engine/region.h"

namespace retrograd::inline v0 {

Hook* Binder::live_hook(const HookList& hooks, uint32_t index) {
  if (list_ != &hooks || index < index_) list_ = &hooks, at_ = 0, index_ = 0;
  while (at_ < hooks.all().size()) {
    Hook* const hook = hooks.all()[at_++].get();
    if (hook->is_live() && index_++ == index) return hook;
  }
  RG_ASSERT(false);
  return nullptr;
}

Hook* Binder::hook_of(const Source& s) {
  return live_hook(s.kind == Source::Kind::record_hook ? hook_list(*reached_.records[s.place]->hooks, s.list)
                                                       : hook_list(*reached_.leaves[s.place]->meta, s.list),
                   s.index);
}

ir::Binding Binder::operator()(const Source& s) {
  ir::Binding b;
  switch (s.kind) {
    case Source::Kind::root: b.tensor = request_.cotangents[s.place]; break;
    case Source::Kind::slot:
      RG_ASSERT(s.part < 0);  // only plans have parts
      b.record = reached_.records[s.place];
      b.slot = static_cast<int>(s.index);
      break;
    case Source::Kind::region: b.tensor = reached_.regions[s.place]->kept(s.index); break;
    case Source::Kind::leaf: b.leaf = reached_.leaves[s.place]; break;
    case Source::Kind::pair: b.pair = request_.pair; break;
    case Source::Kind::function: b.record = reached_.records[s.place]; break;
    case Source::Kind::record_hook: b.hook = RefPtr<Hook>(hook_of(s)); break;
    case Source::Kind::leaf_hook:
      b.hook = RefPtr<Hook>(hook_of(s));
      b.leaf = reached_.leaves[s.place];
      break;
    case Source::Kind::box: b.box = reached_.records[s.place]->hooks->retained[s.index].second; break;
    case Source::Kind::constant: b.tensor = s.constant; break;
  }
  return b;
}

}  // namespace retrograd
