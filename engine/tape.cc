// Making, hashing and dropping tape records. See engine/tape.h; what goes into slots and out again is in
// engine/slots.cc.
#include "engine/tape.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <new>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "engine/hash.h"
#include "engine/region.h"

namespace retrograd::inline v0 {
namespace {

// ---- sequence numbers -----------------------------------------------------------------------------------------------
constexpr uint64_t kSeqBlock = 4096;
constinit std::atomic<uint64_t> next_seq_block{1};

struct SeqRange {
  uint64_t next = 0, end = 0;
};
constinit thread_local SeqRange seq_range;

// A number above that of a producer (`after`) and above every number that this thread has given so far.
uint64_t draw_seq(uint64_t after) {
  SeqRange& r = seq_range;
  if (r.next == r.end || r.next <= after) {
    r.next = next_seq_block.fetch_add(kSeqBlock, std::memory_order_relaxed);
    r.end = r.next + kSeqBlock;
  }
  return r.next++;
}

}  // namespace

uint64_t next_sequence() { return seq_range.next; }

uint64_t begin_sequence() {
  SeqRange& r = seq_range;
  r.next = next_seq_block.fetch_add(kSeqBlock, std::memory_order_relaxed);
  r.end = r.next + kSeqBlock;
  return r.next;
}

namespace {

// ---- types of a call's values ---------------------------------------------------------------------------------------
// Operands, then results.
const TensorImpl* value_of(const Call& call, const Tensor* results, size_t i) {
  return i < call.operands.size() ? call.operands[i] : results[i - call.operands.size()].get();
}

// Common properties of the types of a call's values.
struct ValueTypes {
  uint64_t absent = 0;  // bit i: operand i is absent; only where alike
  // Bit i: the shape of value i differs from that of the value before it. Values 63 and above always count as
  // different.
  uint64_t new_shapes = 0;
  size_t dims = 0;  // of these shapes
  bool alike;       // all values have one type, except that some of the first operands may be absent

  ValueTypes(const Call& call, const Tensor* results) : alike(are_alike(call, results)) {
    if (alike) {
      new_shapes = ~absent & (absent + 1);
      dims = static_cast<size_t>(results[0].get()->rank());
    } else {
      find_new_shapes(call, results);
    }
  }
  bool has_new_shape(size_t i) const { return i >= 63 || new_shapes >> i & 1; }

 private:
  bool are_alike(const Call& call, const Tensor* results) {
    const TensorImpl* result = results[0].get();
    if (!result || call.outputs != 1) return false;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const TensorImpl* x = call.operands[i];
      if (!x && i < size_t{Record::kAbsentBits})
        absent |= uint64_t{1} << i;
      else if (!x || x->dtype() != result->dtype() || !(x->device() == result->device()) ||
               !x->shape().is_same(result->shape()))
        return false;
    }
    return true;
  }
  void find_new_shapes(const Call& call, const Tensor* results) {
    const Shape* before = nullptr;
    for (size_t i = 0; i < call.operands.size() + static_cast<size_t>(call.outputs); ++i) {
      const TensorImpl* x = value_of(call, results, i);
      if (!x || (before && i < 63 && before->is_same(x->shape()))) continue;
      before = &x->shape();
      dims += static_cast<size_t>(before->rank());
      if (i < 63) new_shapes |= uint64_t{1} << i;
    }
  }
};

// ---- hashes (engine/hash.h) -----------------------------------------------------------------------------------------
class HashVisitor final : public AttrVisitor {
 public:
  explicit HashVisitor(Hashes& hashes) : hashes_(hashes) {}
  void field(std::string_view, bool& v) override { fold(v); }
  void field(std::string_view, int64_t& v) override { fold(static_cast<uint64_t>(v)); }
  void field(std::string_view, Dim& v) override { hashes_.add_dim(v); }
  void field(std::string_view, Scalar& v) override { fold(static_cast<uint64_t>(v.kind())); }
  void field(std::string_view, Shape& v) override {
    fold(static_cast<uint64_t>(v.rank()));
    for (Dim d : v) hashes_.add_dim(d);
  }
  void field(std::string_view, IntList& v) override {
    fold(static_cast<uint64_t>(v.size()));
    for (int64_t i : v) fold(static_cast<uint64_t>(i));
  }
  void field(std::string_view, ScalarType& v) override { fold(static_cast<uint64_t>(v)); }
  void field(std::string_view, Device& v) override {
    fold(static_cast<uint64_t>(v.type()) << 8 | static_cast<uint8_t>(v.index()));
  }

 private:
  void fold(uint64_t word) { hashes_.structure = fold_hash(hashes_.structure, word); }

  Hashes& hashes_;
};

// One word per type: dtype, device, rank and two bits a dim.
uint64_t type_word(const TypeMeta& t, const Dim* dims) {
  uint64_t word = static_cast<uint64_t>(t.dtype) | static_cast<uint64_t>(t.device.type()) << 8 |
                  static_cast<uint64_t>(static_cast<uint8_t>(t.device.index())) << 16 |
                  static_cast<uint64_t>(t.rank) << 24;
  for (int k = 0; k < t.rank; ++k) {
    const int64_t d = dims[t.first_dim + static_cast<uint32_t>(k)].raw();
    word |= static_cast<uint64_t>(d == 0 ? 1 : d == 1 ? 2 : 3) << (32 + 2 * k);
  }
  return word;
}

void hash_record(Record& r, uint64_t wants, const ValueTypes& values) {
  const TypeMeta* types = r.types();
  const Dim* dims = r.dims();
  uint64_t structure = reinterpret_cast<uintptr_t>(r.op), size = values.new_shapes;
  structure = fold_hash(structure, wants);
  structure = fold_hash(structure, uint64_t{r.operands} | uint64_t{r.outputs} << 16);
  if (r.alike) {
    const uint64_t word = type_word(types[0], dims), none = type_word(kNoType, dims);
    for (int i = 0; i < r.operands; ++i)
      structure = fold_hash(structure, i < Record::kAbsentBits && r.absent >> i & 1 ? none : word);
    structure = fold_hash(structure, word);
  } else {
    for (int i = 0; i < r.type_count(); ++i) structure = fold_hash(structure, type_word(types[i], dims));
  }
  for (size_t k = 0; k < values.dims; ++k) size = fold_hash(size, static_cast<uint64_t>(dims[k].raw()));
  Hashes hashes{structure, size};
  if (r.has_attrs) hashes.add_attrs(*r.op, r.attrs());
  r.structure_hash = hashes.structure;
  r.size_hash = hashes.sizes;
}

// ---- a record's block -----------------------------------------------------------------------------------------------
// Few bits are set: counting them one by one is faster than the library call that replaces a popcount instruction.
size_t slot_count(const SaveSet& saves) {
  size_t n = 0;
  for (uint64_t set : {saves.operands, saves.results})
    for (; set; set &= set - 1) ++n;
  return n;
}

// Some ops have the number that may replace an operand as their only attribute, which is unused when all operands are
// present.
bool has_attrs(const Call& call) {
  if (!call.op->has_scalar_operand || call.op->attrs_size != sizeof(Scalar)) return call.op->attrs_size > 0;
  return std::find(call.operands.begin(), call.operands.end(), nullptr) != call.operands.end();
}

// Still without edges and slots.
RefPtr<Record> allocate_record(const Call& call, size_t slots, const ValueTypes& values) {
  const size_t operands = call.operands.size(), outputs = static_cast<size_t>(call.outputs);
  check_counts(call.op->name, operands, outputs, call.where);
  const size_t types = values.alike ? 1 : operands + outputs;
  const bool keeps_attrs = has_attrs(call);
  const size_t attrs = keeps_attrs ? (call.op->attrs_size + sizeof(Dim) - 1) / sizeof(Dim) : 0;
  const size_t size = sizeof(Record) + operands * sizeof(Edge) + slots * sizeof(Slot) +
                      types * sizeof(TypeMeta) + (attrs + values.dims) * sizeof(Dim);
  auto* r = new (pool_allocate(size)) Record;
  r->line = call.where.line;
  r->file = call.where.file;
  r->op = call.op;
  r->operands = 0;
  r->outputs = static_cast<uint16_t>(outputs);
  r->slots = 0;
  r->granules = static_cast<uint8_t>(std::min(detail::pool_class(size), kPoolClasses));
  r->alike = values.alike;
  r->absent = values.absent & ((1 << Record::kAbsentBits) - 1);
  r->has_attrs = keeps_attrs;
  return RefPtr<Record>::adopt(r);
}

// Returns the highest number of a producer. When a view cannot be brought up to date, the record is dropped with the
// edges it has so far.
uint64_t add_edges(Record& r, const Call& call, uint64_t wants) {
  uint64_t highest = 0;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    TensorImpl* x = call.operands[i];
    const bool is_wanted = x && x->requires_grad && wants >> std::min<size_t>(i, 63) & 1;
    const auto* edge = new (&r.edge(static_cast<int>(i))) Edge(is_wanted ? gradient_edge(*x) : Edge());
    r.operands = static_cast<uint16_t>(i + 1);
    if (const Record* producer = edge->record()) highest = std::max(highest, producer->seq);
  }
  return highest;
}

void add_slots(Record& r, size_t count) {
  for (size_t i = 0; i < count; ++i) new (&r.slot(static_cast<int>(i))) Slot;
  r.slots = static_cast<uint8_t>(count);
}

void set_types(Record& r, const Call& call, const Tensor* results, const ValueTypes& values) {
  TypeMeta* type = r.types();
  Dim* dims = r.dims();
  uint32_t first = 0, next = 0;
  const auto add = [&](const TensorImpl& x, bool has_new_shape) {
    if (has_new_shape) {
      first = next;
      for (Dim d : x.shape()) dims[next++] = d;
    }
    *type++ = {x.dtype(), x.device(), static_cast<uint8_t>(x.rank()), first};
  };
  if (values.alike) return add(results[0].impl(), true);
  for (size_t i = 0; i < static_cast<size_t>(r.type_count()); ++i) {
    if (const TensorImpl* x = value_of(call, results, i))
      add(*x, values.has_new_shape(i));
    else
      *type++ = kNoType;
  }
}

}  // namespace

void Hashes::add_dim(Dim d) {
  structure = fold_hash(structure, static_cast<uint64_t>(d.raw() == 0 || d.raw() == 1 ? d.raw() : 2));
  sizes = fold_hash(sizes, static_cast<uint64_t>(d.raw()));
}

void Hashes::add_attrs(const OpInfo& op, void* attrs) {
  if (!op.visit_attrs) return;
  HashVisitor visitor(*this);
  op.visit_attrs(attrs, visitor);
}

void Hashes::add(const TensorType& type) {
  const TypeMeta meta{type.dtype, type.device, static_cast<uint8_t>(type.shape.rank()), 0};
  structure = fold_hash(structure, type_word(meta, type.shape.begin()));
  for (Dim d : type.shape) sizes = fold_hash(sizes, static_cast<uint64_t>(d.raw()));
}

constinit Scalar Record::no_number{};

void copy_tangents(const TensorImpl& from, TensorImpl& to) {
  if (from.meta && !from.meta->tangents.empty()) to.need_meta().tangents = from.meta->tangents;
}

RefPtr<Record> Record::make(const Call& call, const Tensor* results, uint64_t wants) {
  const SaveSet saves = call.op->saves ? call.op->saves(call, wants) : SaveSet{};
  const size_t slots = slot_count(saves);
  const ValueTypes values(call, results);
  RefPtr<Record> r = allocate_record(call, slots, values);
  r->seq = draw_seq(add_edges(*r, call, wants));
  add_slots(*r, slots);
  if (r->has_attrs) std::memcpy(r->attrs(), call.attrs, call.op->attrs_size);
  set_types(*r, call, results, values);
  hash_record(*r, wants, values);
  if (!slots) return r;
  const RefPtr<SavedTensorHooks> hooks = default_saved_tensor_hooks();
  Slot* slot = &r->slot(0);
  const auto save = [&](int i, bool is_result, TensorImpl* value) {
    slot->index = static_cast<uint8_t>(i);
    slot->is_result = is_result;
    if (value) pack(*slot, *value, *r, hooks);
    ++slot;
  };
  for (uint64_t set = saves.operands; set; set &= set - 1)
    save(std::countr_zero(set), false, call.operands[static_cast<size_t>(std::countr_zero(set))]);
  for (uint64_t set = saves.results; set; set &= set - 1)
    save(std::countr_zero(set), true, results[std::countr_zero(set)].get());
  return r;
}

int Record::dim_count() const {
  uint32_t end = 0;
  for (int i = 0; i < type_count(); ++i) end = std::max(end, type_meta(i).first_dim + type_meta(i).rank);
  return static_cast<int>(end);
}

namespace {

// A record that was made a little earlier is usually a little lower in memory. The next record of a chain is known only
// when the present one has been loaded, which costs a memory latency each. This guess saves a third of the time for a
// chain of a million.
void prefetch_made_before(const Record& record) {
  constexpr size_t kRecords = 16;
  const uintptr_t guess = reinterpret_cast<uintptr_t>(&record) - kRecords * record.block_size();
  prefetch_record<true>(reinterpret_cast<const void*>(guess));
}

}  // namespace

// Dropping a record drops its edges and slots, which may drop further records: these queue up on the thread instead of
// recursing.
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
    const size_t size = r->block_size();
    prefetch_made_before(*r);
    for (int i = 0; i < r->slots; ++i) r->slot(i).~Slot();
    for (int i = 0; i < r->operands; ++i) r->edge(i).~Edge();
    r->~Record();
    pool_free(r, size);
  }
  running = false;
}

TensorType Record::type(int i) const {
  const TypeMeta& t = type_meta(i);
  return {t.dtype, t.device, Shape(std::span<const Dim>(dims() + t.first_dim, t.rank))};
}

RecordHooks& Record::need_hooks() {
  if (!hooks) hooks = std::make_unique<RecordHooks>();
  return *hooks;
}

void Record::release_slots() {
  for (Slot& s : std::span(&slot(0), slots)) {
    s.clear();
    s.released = true;
  }
  if (hooks && hooks->saved) hooks->saved->release();
}

bool Record::is_unchanged() const {
  for (int i = 0; i < slots; ++i)
    if (slot(i).is_stale()) return false;
  return true;
}

}  // namespace retrograd
