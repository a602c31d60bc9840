// The slots of tape records: keeping, packing and unpacking what is saved. See engine/tape.h; start reading at pack() and
// unpack().
#include <algorithm>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/batching.h"
#include "engine/bookkeeping.h"
#include "engine/hash.h"
#include "engine/region.h"
#include "engine/tape.h"

namespace retrograd::inline v0 {
namespace {

// The cell that a slot keeps for a value: the value's own cell, or an alias without the link that would make a cycle
// (its own edge, its base).
RefPtr<TensorImpl> kept_cell(TensorImpl& value, bool is_result) {
  if (!is_result && !value.base) return RefPtr<TensorImpl>(&value);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(value);
  if (!is_result && !value.grad_fn) cell->requires_grad = value.requires_grad;
  copy_tangents(value, *cell);
  return cell;
}

void keep(Slot& slot, TensorImpl& value) {
  slot.version = value.storage() ? value.storage()->version() : 0;
  RefPtr<TensorImpl> cell = kept_cell(value, slot.is_result);
  if (cell.get() == &value && !value.was_saved.load(std::memory_order_relaxed))
    value.was_saved.store(true, std::memory_order_relaxed);
  slot.keep(std::move(cell));
}

// A payload keeps no base of a view beyond its memory.
Tensor without_base(const TensorImpl& view) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(view);
  return Tensor(std::move(cell));
}

// Describes the payload of a traceable pair.
class PayloadHash final : public PayloadVisitor {
 public:
  PayloadHash(Packed& packed, const RefPtr<Storage>& saved) : packed_(packed), saved_(saved) {
    constant(packed.hooks->identity());
  }
  void tensor(Tensor& tensor) override {
    Hashes hashes;
    if (tensor.defined()) {
      hashes.add(tensor.impl().type());
      if (tensor.impl().base) tensor = without_base(tensor.impl());
      if (tensor.impl().storage() == saved_) packed_.aliased = saved_;
    }
    constant(hashes.structure);
    packed_.sizes = fold_hash(packed_.sizes, hashes.sizes);
  }
  void constant(uint64_t word) override { packed_.structure = fold_hash(packed_.structure, word); }

 private:
  Packed& packed_;
  const RefPtr<Storage>& saved_;
};

void pack_hooked(Slot& slot, TensorImpl& value, Record& owner, const RefPtr<SavedTensorHooks>& hooks) {
  slot.version = value.storage() ? value.storage()->version() : 0;
  RefPtr<TensorImpl> plain = TensorImpl::make();
  plain->alias(value);
  auto packed = std::make_unique<Packed>();
  if (!owner.was_packed) owner.was_packed = true;  // runs of a recorded function share its records
  packed->hooks = hooks;
  packed->type = value.type();
  if (value.meta) packed->tangents = value.meta->tangents;
  {
    NoGradGuard no_grad;
    const detail::NoDefaultHooks no_hooks;
    CallScope::Suspend users_own_lines;
    const detail::AutocastOff no_casts;
    const UnknownLayouts off(false);
    if (Region* const region = hooks->region()) {
      packed->payload = region->save(value, &owner);
    } else if (Emitter& emitter = Emitter::current(); emitter.values() == Emitter::Values::of_function) {
      TensorImpl* operand = plain.get();
      PackAttrs attrs{{}, hooks.get(), &owner, &slot, &packed->payload};
      emitter.emit({&ops::pack, {&operand, 1}, &attrs, owner.where(), 0}, nullptr);
      if (!packed->payload.has_value()) return keep(slot, value);
    } else {
      Emitter::Scope plainly(emitter.is_symbolic() ? emitter : plain_emitter());
      packed->payload = hooks->pack(Tensor(plain));
    }
  }
  if (value.storage() && value.storage()->version() != slot.version)
    fail(Category::hook_forbidden, owner.op->name, "a pack hook modified the saved tensor in place",
         owner.where());
  note_payload(*packed, value.storage());
  slot.keep(std::move(packed));
}

}  // namespace

void note_payload(Packed& packed, const RefPtr<Storage>& saved) {
  if (packed.hooks->traceable) {
    PayloadHash hash(packed, saved);
    packed.hooks->visit(packed.payload, hash);
    packed.structure |= 1;
  } else if (const Tensor* payload = std::any_cast<Tensor>(&packed.payload);
             payload && payload->defined() && payload->impl().storage() == saved) {
    packed.aliased = saved;
  }
}

void pack(Slot& slot, TensorImpl& value, Record& owner, const RefPtr<SavedTensorHooks>& hooks) {
  if (value.storage() && value.storage()->is_inference()) [[unlikely]]
    fail(Category::bad_argument, owner.op->name,
         fmt::format(
             "a tensor of inference mode cannot be saved for a backward: {}. Hint: clone it outside of the "
             "mode",
             to_string(value.type())),
         owner.where());
  hooks ? pack_hooked(slot, value, owner, hooks) : keep(slot, value);
}

void pack_slot(Record& owner, Slot& slot, const RefPtr<SavedTensorHooks>& hooks) {
  const RefPtr<TensorImpl> value(slot.value());
  if (!value) return;
  const uint32_t version = slot.version;
  pack(slot, *value, owner, hooks);
  if (!slot.packed() || slot.packed()->aliased) slot.version = version;  // writes since the save still count
}

namespace {

std::string slot_text(const Record& r, const Slot& slot) {
  return fmt::format("{} {} of {}", slot.is_result ? "result" : "operand", slot.index, r.op->name);
}

}  // namespace

void fail_version(const Record& r, const Slot& slot, const Storage& memory, const TensorType& type,
                  uint32_t saved_at) {
  const std::string by = memory.written_at() ? " at " + to_string(memory.written_at()) : "";
  fail(Category::version_mismatch, r.op->name,
       fmt::format("a tensor needed for the gradient was modified in place{}: {} {}, saved at {}, is at "
                   "version {}, was saved at version {}. "
                   "Hint: clone it before writing to it",
                   by, slot_text(r, slot), to_string(type), to_string(r.where()), memory.version(), saved_at),
       r.where());
}

namespace {

[[noreturn]] void fail_released(const Record& r) {
  fail(Category::backward_twice_freed, r.op->name,
       "backward a second time through a graph whose saved values are freed. Hint: pass retain_graph=true "
       "to the first backward",
       r.where());
}

[[noreturn]] void fail_version(const Record& r, const Slot& slot) {
  retrograd::fail_version(r, slot, *slot.memory(), slot.packed() ? slot.packed()->type : slot.value()->type(),
                          slot.version);
}

// What unpack() checks before it calls a hook.
void check_usable(const Record& r, const Slot& slot) {
  if (slot.released) [[unlikely]]
    fail_released(r);
  if (slot.is_stale()) [[unlikely]]
    fail_version(r, slot);
}

Tensor unpack_hooked(const Record& r, const Slot& slot) {
  const Packed& packed = *slot.packed();
  const Tensor value = unpack_payload(r, slot, packed.payload, packed.type);
  if (packed.tangents.empty()) return value;
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(value.impl());
  cell->need_meta().tangents = packed.tangents;
  return Tensor(std::move(cell));
}

}  // namespace

Tensor unpack(Record& r, Slot& slot) {
  check_usable(r, slot);
  if (slot.packed()) [[unlikely]]
    return unpack_hooked(r, slot);
  return Tensor(RefPtr<TensorImpl>(slot.value()));
}

Tensor unpack_payload(const Record& r, const Slot& slot, const std::any& payload, const TensorType& type) {
  SavedTensorHooks& hooks = *slot.packed()->hooks;
  Tensor value;
  {
    NoGradGuard no_grad;
    const detail::NoDefaultHooks no_hooks;
    CallScope::Suspend users_own_lines;
    const detail::AutocastOff no_casts;
    const UnknownLayouts as_when_recorded(hooks.traceable);
    value = hooks.unpack(payload);
  }
  if (!value.defined() || !(value.impl().type() == type))
    fail(Category::hook_bad_result, r.op->name,
         fmt::format("an unpack hook gave {} for {}, which was {}", describe(value), slot_text(r, slot),
                     to_string(type)),
         r.where());
  return value;
}

std::vector<Tensor*> payload_tensors(const Packed& packed) {
  struct Collect final : PayloadVisitor {
    void tensor(Tensor& tensor) override { found.push_back(&tensor); }
    void constant(uint64_t) override {}
    std::vector<Tensor*> found;
  } collect;
  if (packed.structure) packed.hooks->visit(const_cast<std::any&>(packed.payload), collect);
  return std::move(collect.found);
}

Tensor unpack_part(Record& r, Slot& slot, size_t part, bool releases) {
  check_usable(r, slot);
  const std::vector<Tensor*> tensors = payload_tensors(*slot.packed());
  if (!releases || !r.is_unchanged()) return *tensors[part];
  Tensor value = std::exchange(*tensors[part], Tensor());
  RefPtr<Storage>& aliased = slot.packed()->aliased;
  const auto shares = [&](const Tensor* t) { return t->defined() && t->impl().storage() == aliased; };
  if (std::ranges::none_of(tensors, shares)) aliased.reset();
  if (std::ranges::none_of(tensors, [](const Tensor* t) { return t->defined(); })) {
    slot.clear();
    slot.released = true;
  }
  return value;
}

Tensor unpack_and_release(Record& r, Slot& slot) {
  if (!r.is_unchanged()) return unpack(r, slot);
  Tensor value;
  if (slot.value()) {
    value = Tensor(slot.take());
  } else {
    value = unpack(r, slot);
    slot.clear();
  }
  slot.released = true;
  return value;
}

}  // namespace retrograd
