// Recorder: the emitter that records a backward. It infers the results of each call and appends a node; nothing is
// computed.
//
// The recorder keeps a Source for every input of the graph, which tells in terms of the walk how each run binds it:
// "slot 1 of record 3", "leaf 0", "pre-hook 2 of record 5". A run with other tensors, hooks and sizes of the same
// structure binds its own.
// Sizes and numbers that a rule reads become symbols. Sizes that are equal at capture share a symbol; sizes 0 and 1
// stay constants. Every place where a size or number was read is kept (SymbolUse), so that a later run can check that
// the equalities still hold. A concrete tensor that is used with recorded values (captured by a traceable hook)
// becomes an input at first use, bound to itself.
#pragma once

#include <unordered_map>

#include "engine/bookkeeping.h"
#include "tracer/backward/binder.h"
#include "tracer/backward/drive_log.h"
#include "tracer/backward/graph_emitter.h"

namespace retrograd::inline v0 {

/// One place where a symbol (or a constant 0 or 1) was read.
struct SymbolUse {
  enum class Kind : uint8_t { root_dim, type_dim, payload_dim, attr_dim, attr_number };
  Kind kind = Kind::root_dim;
  bool of_region = false;  // type: of an input; attr: of its calls
  uint32_t place = 0;      // root or ordinal of the record or region
  uint32_t index = 0;      // type: operand, then outputs; attr: offset in the attributes, in bytes
  uint32_t part = 0;       // payload: number of the tensor
  uint32_t dim = 0;
  Dim size = 0;         // its replacement: a symbol, or the constant
  int32_t number = -1;  // attr_number: expression id
};

/// Numbers that each run reads again, and their first symbol.
struct LiveUse {
  LiveNumbers numbers;
  int32_t first;
  int count;

  /// Reads them again, into the values of all symbols of the graph.
  void read(std::span<Number> values) const {
    numbers.read_into(values.subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
  }
};

/// A record whose rule was recorded. After it, a run that does not retain the graph no longer needs the record's
/// slots.
struct RuleRun {
  uint32_t place;     // in the walk
  uint32_t end_node;  // number of the first node after it
  uint32_t unpacks;   // number of its slots that were unpacked
  bool leaves_slots;  // some were not, or it also saves elsewhere
};

class Recorder final : public GraphEmitter, public DriverObserver {
 public:
  /// Records a backward without create_graph, or that of `request`, whose pair packs the values that an op may save.
  /// `regions`: those that it recomputes, by number.
  Recorder(ir::Graph& graph, Walk& walk, const BackwardRequest* request = nullptr,
           std::span<Region* const> regions = {});

  void emit(const Call& call, Tensor* results) override;
  std::string name() const override { return "Recorder"; }
  Values values() const override { return Values::of_backward; }
  const void* attrs_of(const Record& record) override;
  TensorType type_of(const Record& record, int i) override;
  const void* attrs_of(const Region& region, size_t call) override;
  void at(const Origin& origin) override;
  void live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) override;

  void record_begins(uint32_t place) override;
  void rule_gave(uint32_t place, std::span<const Tensor> grads, std::span<const Tensor> given) override;
  void leaf_begins(uint32_t index) override;
  void arrived(uint32_t grad, const Tensor& sum) override;
  void captured(uint32_t input, const Tensor& grad) override;

  /// A tensor input standing for the cotangent of root i.
  Tensor root(uint32_t i, const TensorType& type);
  ir::ValueId value_of(const Tensor& tensor) override;

  /// Whether unpacks of traceable pairs are recorded; else they are called. A replay into a Taper calls them: the value
  /// gets its place in the tape there.
  bool inlines_pairs = false;

  std::vector<Source> sources;  // parallel to graph.inputs()
  std::vector<SymbolUse> uses;
  std::vector<LiveUse> lives;
  std::vector<uint32_t> recomputed;  // regions whose calls are in the graph,
  int64_t calls_recomputed = 0;      // and how many
  std::vector<RuleRun> rules;        // the records that ran, in order
  DriveLog log;
  // Traceable hooks, and pairs without a key: the key has their addresses, so they must live as long as the graph.
  std::vector<RefPtr<Hook>> inlined;
  std::vector<RefPtr<SavedTensorHooks>> inlined_pairs;

 private:
  void emit_nested(const Call& call, Tensor* results);
  void emit_bookkeeping(const Call& call, Tensor* results);
  void emit_hook(const Call& call, Tensor* results);
  void emit_function(const Call& call, Tensor* results);
  void emit_unpack(const Call& call, Tensor* results);
  Tensor unpack_traceable(const Call& call, const Slot& slot);
  void emit_region_input(const Call& call, Tensor* results);
  void symbolise_attrs(const OpInfo& op, std::byte* attrs, SymbolUse use);
  void emit_pack(const Call& call, const ir::Node& node);
  void detach_results(const Call& call, Tensor* results);
  void note(DriveLog::Kind kind, uint32_t index, int32_t value = 0, size_t count = 0);
  int32_t handle(ir::Input::Kind kind, const TensorType& type, Source source, const void* key);
  Dim symbolise(Dim size, SymbolUse use);
  TensorType symbolise(TensorType type, SymbolUse use);
  void append_unpack(const Call& call, const TensorType& type, Source source, Tensor* results);
  uint32_t live_index(const HookList& hooks, const Hook* hook);
  Source hook_source(const HookAttrs& attrs);
  void follow(const Record& record);

  Walk& walk_;
  std::unordered_map<const Region*, uint32_t> regions_;  // their numbers
  Origin origin_;
  std::unordered_map<int64_t, Dim> by_size_;                // symbol of a size at capture
  std::unordered_map<const void*, ir::ValueId> constants_;  // concrete tensors by cell
  std::unordered_map<const void*, int32_t> handles_;        // leaves, hooks, boxes by address
  Tensors kept_;                                            // keeps the cells alive whose addresses are keys
  bool keeps_log_;                                          // the backward may call user code
  bool user_ran_ = false;  // user code has run since this record or leaf began
  const SavedTensorHooks* const pair_;
  const bool is_differentiable_;  // create_graph
  // The hook requested last.
  struct HookPlace {
    const HookList* list = nullptr;
    size_t at = 0;       // in all()
    uint32_t index = 0;  // among the live ones
    uint64_t changes = 0;
  } last_hook_;
  const Record* record_ = nullptr;  // whose attributes and types are cached
  std::vector<std::byte> attrs_, region_attrs_;
  bool attrs_ready_ = false;
  std::vector<TensorType> types_;
};

}  // namespace retrograd
