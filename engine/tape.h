// The tape: records, their edges and their slots. A record is data, not a class: printing, hashing, caching and tracing
// are generic over it.
//
//   Record   one forward call whose result wants a gradient: op, attributes, edges to the producers of its operands,
//            slots with what its rule needs, the types of operands and results, hooks, the user's line, and hashes of
//            its own structure and sizes.
//   Edge     the destination of a gradient: result `output_nr` of a record, or a leaf.
//   Slot     a saved value, or what a pack hook returned for it. Remembers the version of the memory it holds.
//
// A record is one contiguous pooled block: header, edges, slots, types, attributes and sizes. It takes two cache lines
// for an elementwise op that saves one value: for a long tape, touching memory costs more than the computation.
// Sequence numbers grow from producer to consumer, also across threads: each thread draws from its own block of numbers
// and takes a new block when an operand's number is higher.
// No cycles: a slot of the record's own result holds an alias cell without the edge; a saved view is held by an alias
// without its base. Dropping a chain of a million records is iterative (Record::destroy).
#pragma once

#include <any>
#include <memory>
#include <vector>

#include "engine/emitter.h"
#include "engine/hook.h"
#include "engine/prefetch.h"
#include "engine/saved_tensor_hooks.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// The destination of a gradient: result `output_nr` of a record, a leaf, or none. Keeps it alive.
/// One word, since a tape has many edges: a user-space address has 48 bits and is even, so the number is stored above
/// it and bit 0 marks a leaf.
class Edge {
 public:
  static constexpr uint32_t kLeaf = ~uint32_t{0};

  Edge() = default;
  /// `output_nr` below 2^16.
  Edge(Record* record, uint32_t output_nr);
  explicit Edge(TensorImpl* leaf);
  Edge(const Edge& o);
  Edge(Edge&& o) noexcept : word_(std::exchange(o.word_, 0)) {}
  Edge& operator=(Edge o) noexcept {
    std::swap(word_, o.word_);
    return *this;
  }
  ~Edge() {
    if (word_) drop();
  }

  Record* record() const { return is_leaf() ? nullptr : reinterpret_cast<Record*>(address()); }
  TensorImpl* leaf() const { return is_leaf() ? reinterpret_cast<TensorImpl*>(address()) : nullptr; }
  /// The destination as an address, for comparisons.
  const void* target() const { return reinterpret_cast<const void*>(address()); }
  /// kLeaf for a leaf.
  uint32_t output_nr() const { return is_leaf() ? kLeaf : static_cast<uint32_t>(word_ >> kAddressBits); }
  bool leads_to(const Record& record, uint32_t output_nr) const { return word_ == word(record, output_nr); }
  bool leads_to(const TensorImpl& leaf) const { return word_ == word(leaf); }
  explicit operator bool() const { return word_; }
  /// Equal edges have equal keys and different edges different ones: for maps.
  uintptr_t key() const { return word_; }
  friend bool operator==(const Edge&, const Edge&) = default;

 private:
  static constexpr int kAddressBits = 48;
  static uintptr_t word(const Record& record, uint32_t output_nr) {
    return reinterpret_cast<uintptr_t>(&record) | uintptr_t{output_nr} << kAddressBits;
  }
  static uintptr_t word(const TensorImpl& leaf) { return reinterpret_cast<uintptr_t>(&leaf) | 1; }
  bool is_leaf() const { return word_ & 1; }
  uintptr_t address() const { return word_ & ((uintptr_t{1} << kAddressBits) - 2); }
  void drop();

  uintptr_t word_ = 0;
};

/// The derivative of a value in forward mode, at one level (engine/dual.h).
struct Tangent {
  uint64_t level;
  Tensor value;
};

/// What a cell of vmap stands for: a tensor with the batch dim of a level in front (engine/batching.h).
struct BatchedValue {
  uint64_t level = 0;
  Tensor value;
};

/// The return value of a pack hook for a saved tensor. Tangents bypass the pair of hooks, as the gradient does.
struct Packed {
  RefPtr<SavedTensorHooks> hooks;
  std::any payload;
  TensorType type;  // of the tensor given to pack
  // The saved memory, if a tensor of the payload shares it: then versions are compared.
  RefPtr<Storage> aliased;
  std::vector<Tangent> tangents;
  // Of a traceable pair in the slot of a record: hashes of the pair and the parts of its payload, not 0, and of the
  // sizes of the tensors among these.
  uint64_t structure = 0, sizes = 0;
};

class Slot {
 public:
  Slot() = default;
  ~Slot() { clear(); }
  Slot(const Slot&) = delete;

  /// Null when packed, released or never given.
  TensorImpl* value() const { return is_packed_ ? nullptr : static_cast<TensorImpl*>(held_); }
  /// What the pack hook gave; null when there was none, or released.
  Packed* packed() const { return is_packed_ ? static_cast<Packed*>(held_) : nullptr; }
  void keep(RefPtr<TensorImpl> value) {
    clear();
    held_ = value.release();
  }
  void keep(std::unique_ptr<Packed> packed) {
    clear();
    held_ = packed.release();
    is_packed_ = true;
  }
  /// Takes the value out of the slot.
  RefPtr<TensorImpl> take() {
    return RefPtr<TensorImpl>::adopt(static_cast<TensorImpl*>(std::exchange(held_, nullptr)));
  }
  /// The memory of what it holds, saved at `version`; null if it holds none, or a payload in memory of its own.
  const Storage* memory() const {
    if (const Packed* p = packed()) return p->aliased.get();
    return held_ ? static_cast<const TensorImpl*>(held_)->storage().get() : nullptr;
  }
  /// Whether that memory was written to since.
  bool is_stale() const {
    const Storage* const m = memory();
    return m && m->version() != version;
  }
  /// Drops what the slot keeps.
  void clear() {
    if (held_) drop();
  }

  uint32_t version = 0;
  uint8_t index = 0;  // of the operand or result
  bool is_result = false;
  bool released = false;

 private:
  void drop();

  bool is_packed_ = false;
  void* held_ = nullptr;
};

/// A cell that outlives tensors: where retain_grad keeps the gradient of a non-leaf.
struct GradBox : RefCounted {
  Tensor grad;
  static void destroy(GradBox* box) noexcept { delete box; }
};

/// What a record has saved outside of its slots.
struct SavedElsewhere {
  virtual ~SavedElsewhere() = default;
  /// Whether the rule runs even when the record has received no gradient: it contains user-defined functions.
  virtual bool has_functions() const { return false; }
  /// The record's rule is about to run. `released`: release() follows it, so each value may be freed after its last
  /// use.
  virtual void begin(bool released) = 0;
  virtual void release() = 0;
};

struct RecordHooks {
  HookList tensor, pre, post;
  std::vector<std::pair<uint32_t, RefPtr<GradBox>>> retained;  // output_nr, and the destination
  std::shared_ptr<void> owned;                                 // of a user-defined function: its context
  std::shared_ptr<SavedElsewhere> saved;                       // told when the slots are released
};

struct TypeMeta {
  ScalarType dtype;
  Device device;
  uint8_t rank;
  uint32_t first_dim;
};
/// The type of an absent operand.
inline constexpr TypeMeta kNoType{ScalarType::Undefined, {}, 0, 0};

// The header is one cache line. With the first edges after it, it is all that the recognition of a graph reads
// (tracer/backward/trail.h). The types of the values follow the slots; when all present values have the same type
// (`alike`), it is stored once. For an op whose only attribute is the number that may replace an operand, a record with
// all operands has no attributes.
struct Record : RefCounted {
  static constexpr int kAbsentBits = 6;

  int line;
  const char* file;
  const OpInfo* op;
  std::unique_ptr<RecordHooks> hooks;
  uint64_t structure_hash, size_hash;
  uint64_t seq;
  uint16_t operands, outputs;
  uint8_t slots;
  uint8_t granules;         // size in granules of the pool; more than the pool has: allocated by the system
  bool was_packed = false;  // a slot was given to a pack hook
  bool alike : 1;
  bool has_attrs : 1;
  uint8_t absent : kAbsentBits;  // bit i: operand i of a record with one type is absent

  /// Links the record to the producers of the operands; there is no list to append it to. `wants`: the operands that
  /// want a gradient.
  static RefPtr<Record> make(const Call& call, const Tensor* results, uint64_t wants);
  static void destroy(Record* record) noexcept;

  SourceLocation where() const { return {file, line}; }
  size_t block_size() const { return granules * kPoolGranule; }
  const Edge* edges() const { return reinterpret_cast<const Edge*>(this + 1); }
  Edge& edge(int i) { return reinterpret_cast<Edge*>(this + 1)[i]; }
  const Edge& edge(int i) const { return edges()[i]; }
  Slot& slot(int i) { return reinterpret_cast<Slot*>(reinterpret_cast<Edge*>(this + 1) + operands)[i]; }
  const Slot& slot(int i) const { return const_cast<Record*>(this)->slot(i); }
  /// The address of the types: one, or as many as there are values.
  TypeMeta* types() const { return reinterpret_cast<TypeMeta*>(const_cast<Slot*>(&slot(slots))); }
  void* attrs() const { return has_attrs ? static_cast<void*>(behind_types()) : &no_number; }
  /// Of the operands, then of the results.
  int type_count() const { return operands + outputs; }
  const TypeMeta& type_meta(int i) const {
    if (!alike) return types()[i];
    return is_absent(i) ? kNoType : types()[0];
  }
  /// Whether operand i is present.
  bool has_operand(int i) const { return alike ? !is_absent(i) : types()[i].dtype != ScalarType::Undefined; }
  /// The sizes that the types refer to. A shape that equals that of the type before is stored once.
  Dim* dims() const {
    const size_t attrs = has_attrs ? (op->attrs_size + sizeof(Dim) - 1) / sizeof(Dim) : 0;
    return reinterpret_cast<Dim*>(behind_types()) + attrs;
  }
  int dim_count() const;

  TensorType operand_type(int i) const { return type(i); }
  TensorType output_type(int i) const { return type(operands + i); }
  /// Number of the slot that keeps operand or result i, -1 when none does.
  int slot_of_operand(int i) const { return slot_of(i, false); }
  int slot_of_result(int i) const { return slot_of(i, true); }
  RecordHooks& need_hooks();
  /// False when a saved value was written to since: the rule fails if it asks for it.
  bool is_unchanged() const;
  /// Drops what the slots hold; a later unpack is an Error(backward_twice_freed).
  void release_slots();

 private:
  static constinit Scalar no_number;

  // For a record with one type.
  bool is_absent(int i) const { return i < kAbsentBits && absent >> i & 1; }
  int slot_of(int i, bool is_result) const {
    for (int n = 0; n < slots; ++n)
      if (slot(n).index == i && slot(n).is_result == is_result) return n;
    return -1;
  }
  TensorType type(int i) const;
  TypeMeta* behind_types() const { return types() + (alike ? 1 : type_count()); }
};
static_assert(sizeof(Edge) == 8 && sizeof(Slot) == 16 && sizeof(TypeMeta) == 8 && sizeof(Record) == 64);

/// Prefetches the part of a record that is usually needed, at an address where a record is, or may be: a long tape does
/// not fit into the caches.
template <bool IsWritten>
[[gnu::always_inline]] inline void prefetch_record(const void* place) {
  if constexpr (IsWritten)
    prefetch_to_write(place, 2 * sizeof(Record));
  else
    prefetch<CacheLevel::first>(place, 2 * sizeof(Record));
}

/// One step of a hash: folds `word` into it.
inline uint64_t fold_hash(uint64_t hash, uint64_t word) {
  const unsigned __int128 product = static_cast<unsigned __int128>(hash ^ word) * 0x9E3779B97F4A7C15u;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline Edge::Edge(Record* record, uint32_t output_nr) {
  if (!record) return;
  record->add_ref();
  word_ = word(*record, output_nr);
}
inline Edge::Edge(TensorImpl* leaf) {
  if (!leaf) return;
  leaf->add_ref();
  word_ = word(*leaf);
}
inline Edge::Edge(const Edge& o) : word_(o.word_) {
  if (Record* r = o.record()) r->add_ref();
  if (TensorImpl* l = o.leaf()) l->add_ref();
}
inline void Edge::drop() {
  if (Record* r = record()) {
    if (r->drop_ref()) Record::destroy(r);
  } else if (leaf()->drop_ref()) {
    TensorImpl::destroy(leaf());
  }
}
inline void Slot::drop() {
  void* const held = std::exchange(held_, nullptr);
  if (std::exchange(is_packed_, false))
    delete static_cast<Packed*>(held);
  else
    RefPtr<TensorImpl>::adopt(static_cast<TensorImpl*>(held)).reset();
}

/// Gives `to` the tangents of `from`.
void copy_tangents(const TensorImpl& from, TensorImpl& to);

/// The edge that a gradient of `tensor` follows: to its record, or to itself as a leaf; none when it wants no gradient.
/// A view whose base was written in place gets a new record first.
Edge gradient_edge(TensorImpl& tensor);

/// Records made on this thread from now on have this number or a higher one; all earlier records have a lower one.
uint64_t begin_sequence();
/// Records made on this thread from now on have this number or a higher one; earlier records of this thread have a
/// lower one.
uint64_t next_sequence();

/// Error(version_mismatch): the memory of the slot, in a value of this type, is at another version than it was
/// `saved_at`.
[[noreturn]] void fail_version(const Record& record, const Slot& slot, const Storage& memory,
                               const TensorType& type, uint32_t saved_at);
/// The value of a slot: the saved cell or what the unpack hook returns. Checks release, version, and the dtype and
/// shape that a hook returns.
Tensor unpack(Record& record, Slot& slot);
/// The same, and releases the slot: an unhooked value is moved out, not copied. The slot is not released when another
/// value of the record was written to since: a rule that fails for that reason leaves its slots unchanged.
Tensor unpack_and_release(Record& record, Slot& slot);
/// Notes the parts of the payload, and whether it shares `saved`, the memory of what was packed.
void note_payload(Packed& packed, const RefPtr<Storage>& saved);
/// The tensors in a payload with a structure, in order; none in another one. They may be undefined.
std::vector<Tensor*> payload_tensors(const Packed& packed);
/// Calls f(cell) for what a slot holds: the saved value, or the tensors of a payload with a structure.
template <class F>
void each_held(const Slot& slot, const F& f) {
  if (slot.value()) f(*slot.value());
  if (!slot.packed()) return;
  for (const Tensor* part : payload_tensors(*slot.packed()))
    if (part->defined()) f(part->impl());
}
/// Calls the unpack hook of a packed slot on `payload` and checks that the value has this type.
Tensor unpack_payload(const Record& record, const Slot& slot, const std::any& payload,
                      const TensorType& type);
/// Tensor `part` of these, with the checks that unpack() makes before it calls the hook. `releases`: the payload drops
/// it, and the slot is released with the last one.
Tensor unpack_part(Record& record, Slot& slot, size_t part, bool releases);
/// Puts `value` into a slot, through the pack hook when there is one.
void pack(Slot& slot, TensorImpl& value, Record& owner, const RefPtr<SavedTensorHooks>& hooks);

/// The same for a slot that was filled without a pair of hooks: its value passes through `hooks`.
void pack_slot(Record& owner, Slot& slot, const RefPtr<SavedTensorHooks>& hooks);

/// The annotations that few tensors have (see engine/tensor_impl.h).
struct AutogradMeta {
  Tensor grad;                                                          // of a leaf
  HookList tensor_hooks, pre_hooks, post_hooks, post_accumulate_hooks;  // of a leaf
  RefPtr<GradBox> retained;                                             // of a non-leaf with retain_grad
  RefPtr<TensorImpl> stands_for;  // of an unpacked leaf: the leaf that receives the gradients
  std::vector<Tangent> tangents;
  BatchedValue batched;
  uint32_t base_epoch = 0;  // of a view: the base's epoch when grad_fn was made
  uint32_t epoch = 0;       // of a base: raised when a write through a view gave it a new grad_fn

  bool has_hooks() const {
    return !tensor_hooks.empty() || !pre_hooks.empty() || !post_hooks.empty() ||
           !post_accumulate_hooks.empty();
  }
};

/// Called before code on this thread replaces .grad of a leaf, while a watcher is open: a run that reads .grad later
/// would not see the change.
class GradWatcher {
 public:
  virtual void before_replaced(const TensorImpl& leaf, SourceLocation where) = 0;
  static inline constinit thread_local GradWatcher* current = nullptr;

  class Scope {
   public:
    explicit Scope(GradWatcher& watcher) : outer_(std::exchange(current, &watcher)) {}
    ~Scope() { current = outer_; }
    Scope(const Scope&) = delete;

   private:
    GradWatcher* const outer_;
  };

 protected:
  ~GradWatcher() = default;
};

}  // namespace retrograd
#pragma GCC visibility pop
