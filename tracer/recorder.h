// Recorder: the emitter that records. It infers the results of each call and appends a node; nothing is computed.
//
// What a graph must be given at each run is remembered as a Source beside every input, in terms of the walk: "slot 1 of record 3", "leaf 0",
// "pre-hook 2 of record 5". A run with other tensors, hooks and sizes of the same structure binds them anew.
// Sizes and numbers that a rule asks for become symbols. Sizes that are equal at capture share a symbol; sizes 0 and 1 stay constants. Every
// place where a size or number was taken from is remembered (SymbolUse), so that a later run can check that the equalities still hold.
// A concrete tensor that meets recorded values (captured by a traceable hook) becomes an input at first use, bound to itself.
#pragma once

#include <unordered_map>

#include "engine/driver.h"
#include "ir/bookkeeping.h"
#include "tracer/graph_emitter.h"

namespace retrograd {

/// Where an input of a recorded backward comes from.
struct Source {
  enum class Kind : uint8_t { root, slot, leaf, record_hook, leaf_hook, box, function, pair, constant };
  enum class List : uint8_t { tensor, pre, post, post_accumulate };
  Kind kind;
  uint32_t place = 0;  // root; or ordinal of the record; or index of the leaf in the walk
  uint32_t index = 0;  // slot; or place among the live hooks of the list; or retained box
  List list = List::tensor;
  uint32_t offset = 0;  // slot: in bytes, from the record
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

/// One place where a symbol (or a constant 0 or 1) was read.
struct SymbolUse {
  enum class Kind : uint8_t { root_dim, type_dim, attr_dim, attr_number };
  Kind kind;
  uint32_t place = 0;  // root or ordinal of the record
  uint32_t index = 0;  // type: operand, then outputs; attr: where in the attributes, in bytes
  uint32_t dim = 0;
  Dim size = 0;         // what it was replaced by: a symbol, or the constant
  int32_t number = -1;  // attr_number: expression id
};

/// A record whose rule was recorded: from its end on, a run that does not retain the graph has no use for its slots.
struct RuleRun {
  uint32_t place;     // in the walk
  uint32_t end_node;  // number of the first node after it
  uint32_t unpacks;   // how many of its slots were unpacked
  bool leaves_slots;  // some were not, or it saves elsewhere, too
};

/// What the driver did, between which nodes: from it a run that leaves the graph finds out where the backward stands.
struct DriveLog {
  enum class Kind : uint8_t {
    record,  // index: place; value: its first gradient's number, count: how many
    gave,  // index: place; the rule is done. Where code of the user's ran: value, count: the gradients and what it gave, in `lists`
    leaf,  // index: of the leaf; value: its gradient's number
    arrived,  // index: the gradient's number; value
    captured  // index: of the input; value
  };
  struct Event {
    Kind kind;
    uint32_t count;
    uint32_t node;  // the number of the next node
    uint32_t index;
    int32_t value;
  };
  /// The values among it.
  std::vector<ir::ValueId> values() const;
  std::vector<Event> events;
  std::vector<int32_t> lists;  // value ids
  bool may_leave = false;      // the graph calls code of the user's: only then it is kept
};

class Recorder final : public GraphEmitter, public DriverObserver {
 public:
  /// Of a backward without create_graph, or of `request`, whose pair packs what an op may save.
  Recorder(ir::Graph& graph, Walk& walk, const BackwardRequest* request = nullptr);

  void emit(const Call& call, Tensor* results) override;
  std::string name() const override { return "Recorder"; }
  Values values() const override { return Values::of_backward; }
  const void* attrs_of(const Record& record) override;
  TensorType type_of(const Record& record, int i) override;
  void at(const Origin& origin) override;

  void record_begins(uint32_t place) override;
  void rule_gave(uint32_t place, std::span<const Tensor> grads, std::span<const Tensor> given) override;
  void leaf_begins(uint32_t index) override;
  void arrived(uint32_t grad, const Tensor& sum) override;
  void captured(uint32_t input, const Tensor& grad) override;

  /// A tensor input standing for the cotangent of root i.
  Tensor root(uint32_t i, const TensorType& type);
  ir::ValueId value_of(const Tensor& tensor) override;

  std::vector<Source> sources;  // parallel to graph.inputs()
  std::vector<SymbolUse> uses;
  std::vector<RuleRun> rules;  // the records that ran, in order
  DriveLog log;
  std::vector<RefPtr<Hook>>
      inlined;  // traceable hooks: the key has their addresses, so they must live as long as the graph

 private:
  void emit_nested(const Call& call, Tensor* results);
  void emit_bookkeeping(const Call& call, Tensor* results);
  void emit_hook(const Call& call, Tensor* results);
  void emit_function(const Call& call, Tensor* results);
  void emit_unpack(const Call& call, Tensor* results);
  void emit_pack(const Call& call, const ir::Node& node);
  void detach_results(const Call& call, Tensor* results);
  void note(DriveLog::Kind kind, uint32_t index, int32_t value = 0, size_t count = 0);
  int32_t handle(ir::Input::Kind kind, const TensorType& type, Source source, const void* key);
  Dim symbolise(Dim size, SymbolUse use);
  uint32_t live_index(const HookList& hooks, const Hook* hook);
  Source hook_source(const HookAttrs& attrs);
  void follow(const Record& record);

  Walk& walk_;
  Origin origin_;
  std::unordered_map<int64_t, Dim> by_size_;                // symbol of a size at capture
  std::unordered_map<const void*, ir::ValueId> constants_;  // concrete tensors by cell
  std::unordered_map<const void*, int32_t> handles_;        // leaves, hooks, boxes by address
  Tensors kept_;                                            // keeps the cells alive whose addresses are keys
  bool keeps_log_;                                          // there is code of the user's on the way
  bool user_ran_ = false;  // code of the user's, since this record or leaf began
  const SavedTensorHooks* const pair_;
  const bool is_differentiable_;  // create_graph
  // The hook that was asked for last.
  struct HookPlace {
    const HookList* list = nullptr;
    size_t at = 0;       // in all()
    uint32_t index = 0;  // among the live ones
    uint64_t changes = 0;
  } last_hook_;
  const Record* record_ = nullptr;  // whose attributes and types are at hand
  std::vector<std::byte> attrs_;
  bool attrs_ready_ = false;
  std::vector<TensorType> types_;
};

}  // namespace retrograd
