// Making, hashing and dropping tape records; packing and unpacking slots. See engine/tape.h.
#include "engine/tape.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>
#include <xxhash.h>

#include "ir/bookkeeping.h"

namespace retrograd {
namespace {

// ---- sequence numbers ---------------------------------------------------------------------------------------------------------
constexpr uint64_t kSeqBlock = 4096;
constinit std::atomic<uint64_t> next_seq_block{1};

struct SeqRange {
  uint64_t next = 0, end = 0;
};
constinit thread_local SeqRange seq_range;

// Above every number given so far to a producer (`after`) and to this thread.
uint64_t draw_seq(uint64_t after) {
  SeqRange& r = seq_range;
  if (r.next == r.end || r.next <= after) {
    r.next = next_seq_block.fetch_add(kSeqBlock, std::memory_order_relaxed);
    r.end = r.next + kSeqBlock;
  }
  return r.next++;
}

// ---- hashes -------------------------------------------------------------------------------------------------------------------
// Structure: op, attributes without sizes and numbers, dtypes, ranks, which dims are 0 or 1, which operands want a gradient.
// Sizes: everything else that a plan depends on. Numbers (Scalar) are in neither: they are inputs of the captured graph.
struct HashWords {
  uint64_t structure[64], size[64];
  int structures = 0, sizes = 0;
  void add_structure(uint64_t w) {
    if (structures == 64) fold(structure, structures);
    structure[structures++] = w;
  }
  void add_size(uint64_t w) {
    if (sizes == 64) fold(size, sizes);
    size[sizes++] = w;
  }
  static void fold(uint64_t* words, int& n) {
    words[0] = XXH3_64bits(words, static_cast<size_t>(n) * 8);
    n = 1;
  }
  void add_dim(Dim d) {
    add_structure(d.raw() == 0 || d.raw() == 1 ? static_cast<uint64_t>(d.raw()) : 2);
    add_size(static_cast<uint64_t>(d.raw()));
  }
};

class HashVisitor final : public AttrVisitor {
 public:
  explicit HashVisitor(HashWords& words) : w_(words) {}
  void field(std::string_view, bool& v) override { w_.add_structure(v); }
  void field(std::string_view, int64_t& v) override { w_.add_structure(static_cast<uint64_t>(v)); }
  void field(std::string_view, Dim& v) override { w_.add_dim(v); }
  void field(std::string_view, Scalar& v) override { w_.add_structure(static_cast<uint64_t>(v.kind())); }
  void field(std::string_view, Shape& v) override {
    w_.add_structure(static_cast<uint64_t>(v.rank()));
    for (Dim d : v) w_.add_dim(d);
  }
  void field(std::string_view, IntList& v) override {
    w_.add_structure(static_cast<uint64_t>(v.size()));
    for (int64_t i : v) w_.add_structure(static_cast<uint64_t>(i));
  }
  void field(std::string_view, ScalarType& v) override { w_.add_structure(static_cast<uint64_t>(v)); }
  void field(std::string_view, Device& v) override {
    w_.add_structure(static_cast<uint64_t>(v.type) << 8 | static_cast<uint8_t>(v.index));
  }

 private:
  HashWords& w_;
};

// One word per type: dtype, device, rank and two bits a dim.
void hash_type(HashWords& words, const TypeMeta& t, const Dim* dims) {
  uint64_t w = static_cast<uint64_t>(t.dtype) | static_cast<uint64_t>(t.device.type) << 8 |
               static_cast<uint64_t>(static_cast<uint8_t>(t.device.index)) << 16 |
               static_cast<uint64_t>(t.rank) << 24;
  for (int i = 0; i < t.rank; ++i) {
    const int64_t d = dims[t.first_dim + i].raw();
    w |= static_cast<uint64_t>(d == 0 ? 1 : d == 1 ? 2 : 3) << (32 + 2 * i);
    words.add_size(static_cast<uint64_t>(d));
  }
  words.add_structure(w);
}

void hash_record(Record& r, uint64_t wants) {
  HashWords words;
  words.add_structure(reinterpret_cast<uintptr_t>(r.op));
  words.add_structure(wants);
  words.add_structure(uint64_t{r.operands} | uint64_t{r.outputs} << 16);
  for (int i = 0; i < r.operands + r.outputs; ++i) hash_type(words, r.types()[i], r.dims());
  if (r.op->visit_attrs) {
    HashVisitor visitor(words);
    r.op->visit_attrs(r.attrs(), visitor);
  }
  r.structure_hash = XXH3_64bits(words.structure, static_cast<size_t>(words.structures) * 8);
  r.size_hash = XXH3_64bits(words.size, static_cast<size_t>(words.sizes) * 8);
}

// ---- layout of a record's block --------------------------------------------------------------------------------------------------
constexpr size_t align_up(size_t n, size_t a = 16) { return (n + a - 1) / a * a; }

constexpr size_t attrs_offset(size_t operands, size_t slots) {
  return align_up(sizeof(Record) + operands * sizeof(Edge) + slots * sizeof(Slot));
}

int count_dims(const Call& call, const Tensor* results) {
  int n = 0;
  for (TensorImpl* x : call.operands) n += x ? x->rank() : 0;
  for (int i = 0; i < call.outputs; ++i) n += results[i].defined() ? results[i].impl().rank() : 0;
  return n;
}

RefPtr<Record> allocate_record(const Call& call, const Tensor* results, SaveSet saves) {
  const size_t operands = call.operands.size(), outputs = static_cast<size_t>(call.outputs);
  const size_t slots =
      static_cast<size_t>(__builtin_popcountll(saves.operands) + __builtin_popcountll(saves.results));
  const size_t at_attrs = attrs_offset(operands, slots);
  const size_t at_types = align_up(at_attrs + call.op->attrs_size);
  const size_t at_dims = align_up(at_types + (operands + outputs) * sizeof(TypeMeta), alignof(Dim));
  const size_t size = at_dims + static_cast<size_t>(count_dims(call, results)) * sizeof(Dim);
  auto* r = new (pool_allocate(size)) Record;
  r->op = call.op;
  r->block_size = static_cast<uint32_t>(size);
  r->operands = static_cast<uint16_t>(operands);
  r->outputs = static_cast<uint16_t>(outputs);
  r->slots = static_cast<uint16_t>(slots);
  r->saved_operands = saves.operands;
  r->saved_results = saves.results;
  r->at_types = static_cast<uint32_t>(at_types);
  r->at_dims = static_cast<uint32_t>(at_dims);
  for (int i = 0; i < r->operands; ++i) new (&r->edge(i)) Edge;
  for (int i = 0; i < r->slots; ++i) new (&r->slot(i)) Slot;
  if (call.op->attrs_size) std::memcpy(r->attrs(), call.attrs, call.op->attrs_size);
  return RefPtr<Record>::adopt(r);
}

void set_types(Record& r, const Call& call, const Tensor* results) {
  uint32_t next = 0;
  auto set = [&](int i, const TensorImpl* x) {
    r.types()[i] = x ? TypeMeta{x->dtype(), x->device(), static_cast<uint8_t>(x->rank()), next}
                     : TypeMeta{ScalarType::Undefined, {}, 0, next};
    if (x)
      for (Dim d : x->shape()) r.dims()[next++] = d;
  };
  for (int i = 0; i < r.operands; ++i) set(i, call.operands[i]);
  for (int i = 0; i < r.outputs; ++i) set(r.operands + i, results[i].get());
}

// What a slot keeps of a value: the cell itself, or an alias without the link that would make a cycle (its own edge, its base).
RefPtr<TensorImpl> kept_cell(TensorImpl& value, bool is_result) {
  if (!is_result && !value.base) return RefPtr<TensorImpl>(&value);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(value);
  if (!is_result && !value.grad_fn) cell->requires_grad = value.requires_grad;
  copy_tangents(value, *cell);
  return cell;
}

}  // namespace

void copy_tangents(const TensorImpl& from, TensorImpl& to) {
  if (from.meta && !from.meta->tangents.empty()) to.need_meta().tangents = from.meta->tangents;
}

RefPtr<Record> Record::make(const Call& call, const Tensor* results, uint64_t wants) {
  const SaveSet saves = call.op->saves ? call.op->saves(call, wants) : SaveSet{};
  RefPtr<Record> r = allocate_record(call, results, saves);
  uint64_t after = 0;
  for (int i = 0; i < r->operands; ++i) {
    TensorImpl* x = call.operands[i];
    if (!x || !(i >= 64 || wants >> i & 1) || !x->requires_grad) continue;
    r->edge(i) = gradient_edge(*x);
    if (r->edge(i).record()) after = std::max(after, r->edge(i).record()->seq);
  }
  set_types(*r, call, results);
  r->seq = draw_seq(after);
  r->where = call.where;
  hash_record(*r, wants);
  const RefPtr<SavedTensorHooks> hooks = r->slots ? default_saved_tensor_hooks() : RefPtr<SavedTensorHooks>();
  int next = 0;
  auto save = [&](uint64_t set, bool is_result, auto&& value_of) {
    for (int i = 0; set >> i; ++i) {
      if (!(set >> i & 1)) continue;
      Slot& slot = r->slot(next++);
      slot.index = static_cast<uint8_t>(i);
      slot.is_result = is_result;
      if (TensorImpl* value = value_of(i)) pack(slot, *value, *r, hooks);
      if (i == 63) break;
    }
  };
  save(saves.operands, false, [&](int i) { return call.operands[i]; });
  save(saves.results, true, [&](int i) { return results[i].get(); });
  return r;
}

// Dropping a record drops its edges and slots, which may drop further records: these queue up on the thread instead of recursing.
void Record::destroy(Record* record) noexcept {
  static constinit thread_local Record* pending = nullptr;
  static constinit thread_local bool running = false;
  // The queue is linked through `seq`, which a dead record no longer needs.
  record->seq = reinterpret_cast<uint64_t>(pending);
  pending = record;
  if (running) return;
  running = true;
  while (Record* r = pending) {
    pending = reinterpret_cast<Record*>(r->seq);
    const size_t size = r->block_size;
    for (int i = 0; i < r->slots; ++i) r->slot(i).~Slot();
    for (int i = 0; i < r->operands; ++i) r->edge(i).~Edge();
    r->~Record();
    pool_free(r, size);
  }
  running = false;
}

void* Record::attrs() const { return begin() + attrs_offset(operands, slots); }

TensorType Record::type(int i) const {
  const TypeMeta& t = types()[i];
  return {t.dtype, t.device, Shape(std::span<const Dim>(dims() + t.first_dim, t.rank))};
}

RecordHooks& Record::need_hooks() {
  if (!hooks) hooks = std::make_unique<RecordHooks>();
  has_hooks = true;
  return *hooks;
}

void Record::release_slots() {
  for (int i = 0; i < slots; ++i) {
    slot(i).value.reset();
    slot(i).packed.reset();
    slot(i).released = true;
  }
  if (hooks && hooks->saved) hooks->saved->release();
}

bool Record::is_unchanged() const {
  for (int i = 0; i < slots; ++i) {
    const Slot& s = slot(i);
    const Storage* memory = s.packed ? s.packed->aliased.get() : s.value ? s.value->storage().get() : nullptr;
    if (memory && memory->version() != s.version) return false;
  }
  return true;
}

void pack(Slot& slot, TensorImpl& value, Record& owner, const RefPtr<SavedTensorHooks>& hooks) {
  slot.version = value.storage() ? value.storage()->version() : 0;
  if (!hooks) {
    slot.value = kept_cell(value, slot.is_result);
    if (slot.value.get() == &value && !value.was_saved.load(std::memory_order_relaxed))
      value.was_saved.store(true, std::memory_order_relaxed);
    return;
  }
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
    const UnknownLayouts off(false);
    if (Emitter& emitter = Emitter::current(); emitter.values() == Emitter::Values::of_function) {
      TensorImpl* operand = plain.get();
      PackAttrs attrs{hooks.get(), &owner, &slot, &packed->payload};
      emitter.emit({&ops::pack, {&operand, 1}, &attrs, owner.where, 0}, nullptr);
    } else {
      Emitter::Scope eager(eager_emitter());
      packed->payload = hooks->pack(Tensor(plain));
    }
  }
  if (value.storage() && value.storage()->version() != slot.version)
    fail(Category::hook_forbidden, owner.op->name, "a pack hook modified the saved tensor in place",
         owner.where);
  if (const Tensor* payload = std::any_cast<Tensor>(&packed->payload);
      payload && payload->defined() && payload->impl().storage() == value.storage())
    packed->aliased = value.storage();
  slot.packed = std::move(packed);
}

void pack_slot(Record& owner, Slot& slot, const RefPtr<SavedTensorHooks>& hooks) {
  const RefPtr<TensorImpl> value = slot.value;
  if (!value) return;
  const uint32_t version = slot.version;
  pack(slot, *value, owner, hooks);
  slot.value.reset();
  if (slot.packed->aliased) slot.version = version;  // what was written since the save still counts
}

namespace {

std::string slot_text(const Record& r, const Slot& slot) {
  return fmt::format("{} {} of {}", slot.is_result ? "result" : "operand", slot.index, r.op->name);
}

[[noreturn]] void fail_version(const Record& r, const Slot& slot, const Storage& memory,
                               const TensorType& type) {
  const std::string by = memory.written_at() ? " at " + to_string(memory.written_at()) : "";
  fail(Category::version_mismatch, r.op->name,
       fmt::format("a tensor needed for the gradient was modified in place{}: {} {}, saved at {}, is at "
                   "version {}, was saved at version {}. "
                   "Hint: clone it before writing to it",
                   by, slot_text(r, slot), to_string(type), to_string(r.where), memory.version(),
                   slot.version),
       r.where);
}

Tensor unpack_hooked(Record& r, Slot& slot) {
  Packed& packed = *slot.packed;
  if (packed.aliased && packed.aliased->version() != slot.version)
    fail_version(r, slot, *packed.aliased, packed.type);
  Tensor value;
  {
    NoGradGuard no_grad;
    const detail::NoDefaultHooks no_hooks;
    CallScope::Suspend users_own_lines;
    const UnknownLayouts off(false);
    value = packed.hooks->unpack(packed.payload);
  }
  if (!value.defined() || !(value.impl().type() == packed.type))
    fail(Category::hook_bad_result, r.op->name,
         fmt::format("an unpack hook gave {} for {}, which was {}", describe(value), slot_text(r, slot),
                     to_string(packed.type)),
         r.where);
  if (packed.tangents.empty()) return value;
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(value.impl());
  cell->need_meta().tangents = packed.tangents;
  return Tensor(std::move(cell));
}

}  // namespace

Tensor unpack(Record& r, Slot& slot) {
  if (slot.released)
    fail(Category::backward_twice_freed, r.op->name,
         "backward a second time through a graph whose saved values are freed. Hint: pass retain_graph=true "
         "to the first backward",
         r.where);
  if (slot.packed) return unpack_hooked(r, slot);
  if (!slot.value) return {};
  if (slot.value->storage() && slot.value->storage()->version() != slot.version)
    fail_version(r, slot, *slot.value->storage(), slot.value->type());
  return Tensor(slot.value);
}

Tensor unpack_and_release(Record& r, Slot& slot) {
  if (!r.is_unchanged()) return unpack(r, slot);
  Tensor value;
  if (slot.value && !slot.packed) {
    value = Tensor(std::move(slot.value));
  } else {
    value = unpack(r, slot);
    slot.value.reset();
    slot.packed.reset();
  }
  slot.released = true;
  return value;
}

namespace {
void require_record(const RefPtr<Record>& record, std::string_view what) {
  if (!record) fail(Category::hook_forbidden, what, "a leaf has no record. Hint: Tensor::register_hook");
}
}  // namespace

HookHandle Node::register_prehook(std::function<Tensors(const Tensors&)> fn) const {
  require_record(record_, "register_prehook");
  auto hook = RefPtr<Hook>::adopt(new Hook);
  hook->kind = Hook::Kind::pre;
  hook->pre = std::move(fn);
  return record_->need_hooks().pre.add(std::move(hook));
}

HookHandle Node::register_hook(std::function<Tensors(const Tensors&, const Tensors&)> fn) const {
  require_record(record_, "register_hook");
  auto hook = RefPtr<Hook>::adopt(new Hook);
  hook->kind = Hook::Kind::post;
  hook->post = std::move(fn);
  return record_->need_hooks().post.add(std::move(hook));
}

void Node::register_saved_tensor_hooks(int index, RefPtr<SavedTensorHooks> hooks,
                                       SourceLocation where) const {
  if (!record_ || index < 0 || index >= record_->slots)
    fail(Category::hook_forbidden, "register_saved_tensor_hooks",
         fmt::format("there is no saved value {}", index), where);
  Slot& slot = record_->slot(index);
  if (slot.packed)
    fail(Category::hook_forbidden, "register_saved_tensor_hooks",
         "hooks were registered for this saved value before", where);
  if (slot.released)
    fail(Category::hook_forbidden, "register_saved_tensor_hooks", "the saved value is freed", where);
  if (!slot.value)
    fail(Category::hook_forbidden, "register_saved_tensor_hooks", "the saved value is undefined", where);
  ++annotation_changes;
  pack_slot(*record_, slot, hooks);
}

}  // namespace retrograd
