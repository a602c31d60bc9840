// FunctionRecorder: the emitter that records a function of the user's, or a whole training step: forward, backward and optimizer.
//
// A differentiable function has a second graph, its backward: the driver runs over the recorded tape into a second recorder, whose `forward`
// is the first. A value of the forward that it meets is **saved**: an output there, an input here. So what is saved is what the rules ask for.
// It stands under a Taper, so the function's own backward() is recorded by the ordinary driver, rules, hooks and unpacks in their places.
// Sizes, strides and numbers are those of the call that is recorded; numbers that the host gives anew (Emitter::live_numbers: learning rates,
// counts of steps, places in random streams) are symbols, read before each run.
//
// Memory. The graph is functional. Each storage has a **root**: the cell that first showed it, and the value that it holds now. A write gives
// the root a new value; a cell whose geometry is the root's has that value, another one that of a view of it (as_strided). So views,
// detached tensors and their bases agree, whatever was written through which. A computed result has a storage without memory, whose version
// counts writes, as eager's does: version errors are those of eager.
//
// Arguments have **stand-ins**, which share memory and have bases as they do. A leaf has a leaf; another tensor with a gradient has an alias of
// a hidden leaf, so that it can be written to. A base that is no argument has a stand-in too; it becomes an input when it is written.
//
// Outside. A tensor that the function did not make is **captured**: an input, bound to itself at each run. What was written to it is written
// back when the run is over; gradients of leaves that were replaced or accumulated become outputs. While recording nothing outside
// changes: finish(), or the destructor, puts .grad of all leaves back.
// An input that is not row-major, or that is seen beyond its ends, is written as a row: all of its memory.
//
// Code of the user's that is not recorded becomes nodes that run on the host (tracer/host_node.h): packs and unpacks of opaque pairs, opaque
// functions and hooks. Before each of them stand nodes that put outside what was written so far (publish), so that it finds there
// what it would eagerly, and so that it is there when that code throws.
// Limits: a captured tensor has no history of its own; traceable hooks that look at data fail.
// Start reading at emit, then value_of and write; host code is in tracer/function_host.cc, function_grads.cc and function_opaque.cc; what it
// finds of the backward that runs in function_reach.cc, whether it has written to what was saved in function_versions.cc.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "engine/driver.h"
#include "engine/function.h"
#include "ir/bookkeeping.h"
#include "tracer/graph_emitter.h"
#include "tracer/host_node.h"

namespace retrograd {

/// A recorded function: the graph, and what binds it to a run.
struct RecordedFunction {
  /// Parallel to graph.inputs().
  struct Input {
    int argument = -1;                // number of the argument, of a backward: of the cotangent; or:
    int base_of = -1;                 // number of the argument whose base it is
    int saved = -1;                   // of a backward: which saved value of the forward
    Tensor captured = {};             // always this tensor
    RefPtr<TensorImpl> grad_of = {};  // the gradient that this leaf has,
    int grad_of_argument = -1;        // or this argument
    RefPtr<Hook> hook = {};           // always this hook,
    RefPtr<TensorImpl> leaf = {};     // which may belong to a leaf
  };
  struct Numbers {
    Emitter::LiveNumbers live;
    int32_t first;  // symbol
    int count;

    size_t effects;  // nodes with effects that were recorded before they were read

    /// `values`: of the symbols.
    void settle(std::span<const Number> values, bool was_used) const {
      if (live.settle)
        live.settle(values.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), was_used);
    }
  };
  /// How a tensor lies in memory, that of another one.
  struct Layout {
    TensorType type = {};
    IntList strides = {};
    int64_t offset = 0;  // from the first element of the other

    static Layout of(const TensorImpl& x, int64_t begin);
    /// A cell of its own in that memory; whether `x` lies there so.
    Tensor in(const TensorImpl& memory) const;
    bool is(const TensorImpl& x, const TensorImpl& memory) const;
  };
  /// Where a result, a gradient or a saved value lies: in memory that the run computes, or in that of an input.
  struct Place : Layout {
    int32_t output = -1, input = -1;
    bool defined() const { return output >= 0 || input >= 0; }
  };
  /// What becomes of .grad of a leaf.
  struct Grad {
    enum class End : uint8_t { computed, none, kept };
    RefPtr<TensorImpl> leaf;  // or of an argument:
    int argument;
    bool is_dropped_first;  // before anything looked at it: it can go when the run begins; else it must be
    bool was_defined;       // as at capture
    size_t last_read;       // how many nodes with effects had been recorded when the function read it last
    End end;           // a new tensor, undefined, or the same as before, or as code of the user's left it
    Place place = {};  // of a new one

    AutogradMeta& meta(const Tensors& arguments) const {
      return (argument >= 0 ? arguments[static_cast<size_t>(argument)].impl() : *leaf).need_meta();
    }
  };
  struct Write {
    int32_t input, output;  // what input is bound to gets the value of the output; -1: a node has written it
    bool all_memory;        // the output is all of its memory, as a row
    bool was_written = false;  // by a node, before that
    /// Whether the value may be computed in the memory of the input.
    bool may_lie_there() const { return !all_memory && !was_written; }
  };

  /// The values that the symbols of a graph had when it was recorded.
  static std::vector<Number> hints(const ir::Graph& graph);
  /// Of numbers that were read for a recording which nobody will run.
  static void settle_unused(std::span<const Numbers> numbers, const ir::Graph& graph) noexcept;
  /// How many of the first nodes of a graph have effects: passes keep these, in their order.
  static size_t effects_among(const ir::Graph& graph, size_t nodes);

  /// State of an object that decided what was recorded.
  struct Dependency {
    std::function<bool()> holds;
    std::string_view what;
  };

  /// A call of a traceable function of the user's: what its forward did is nodes without gradients. In a replay that is to be differentiated
  /// its results get a record of the function, as it was made at the recording.
  struct TraceableCall {
    size_t node;  // the first one behind it
    const OpInfo* op;
    FunctionCall::Attrs attrs;
    SourceLocation where;
    std::vector<ir::ValueId> operands, results;
    Tensors made = {};                         // while recording: the results
    std::vector<bool> is_differentiable = {};  // of the results
    std::shared_ptr<void> context = {};        // that the attributes name
  };

  ir::Graph graph;  // outputs: results, gradients, writes
  std::vector<Dependency> dependencies;
  std::vector<TraceableCall> traceable_calls;  // in order
  std::vector<Input> inputs;
  std::vector<Numbers> numbers;
  std::vector<Grad> grads;
  std::vector<std::pair<size_t, Place>> result_grads;  // results that are leaves, and where their .grad lies
  std::vector<Write> writes;
  std::vector<std::pair<int32_t, int32_t>>
      forward_numbers;  // of a backward: symbol of the forward, symbol here
  struct Saved {
    int32_t output;  // the value
    Place place;     // defined where the memory of a written input holds it when the run is over
  };
  std::vector<Saved> saved;   // what a backward needs
  std::vector<bool> no_grad;  // by node: recorded while gradient mode was off
  /// A written value was read where its history is another one than that of what was written: replayed, it would have the wrong gradient.
  bool has_two_histories = false;
  std::vector<Place> results;
  /// The records whose slots a backward has unpacked, and by saved value, which of them it is for.
  std::vector<const Record*> unpacked;
  /// Of a backward: inputs of the forward that are tensors from outside, which records have saved: they must be as that run has left them.
  std::vector<int32_t> saved_outside;
  std::vector<std::pair<int32_t, const Record*>> users;
  std::vector<RefPtr<HostCode>> host;  // of its nodes
  /// Of a backward: a value that an unpack hook gave, and the value of the forward that was packed, whose gradient it has.
  std::vector<std::pair<ir::ValueId, ir::ValueId>> straight;
};

/// Whether f holds of each hook that the leaf has, asked in the order of its lists until it does not.
template <class F>
bool all_hooks(const TensorImpl& leaf, const F& f) {
  if (!leaf.meta || !leaf.meta->has_hooks()) return true;
  const AutogradMeta& meta = *leaf.meta;
  for (const HookList* list :
       {&meta.tensor_hooks, &meta.pre_hooks, &meta.post_hooks, &meta.post_accumulate_hooks})
    for (const RefPtr<Hook>& h : list->all())
      if (h->is_live() && !f(h)) return false;
  return true;
}

/// Those that it has, in the order of its lists.
inline std::vector<RefPtr<Hook>> live_hooks(const TensorImpl& leaf) {
  std::vector<RefPtr<Hook>> live;
  all_hooks(leaf, [&](const RefPtr<Hook>& h) {
    live.push_back(h);
    return true;
  });
  return live;
}

class PostAccumulateCode;

/// Thrown where an opaque function is called of which nothing is known: the function around it is to be run as it is first.
class RehearsalNeeded : public Error {
 public:
  RehearsalNeeded() : Error(Category::unsupported, "what its opaque functions give is not known yet") {}
};

/// Thrown by what cannot be recorded: the function around it is to be run as it is, each time.
class NotRecordable : public Error {
 public:
  explicit NotRecordable(const std::string& why) : Error(Category::unsupported, why) {}
};

class FunctionRecorder final : public GraphEmitter, public FunctionCall::Observer {
 public:
  /// A call of an opaque function, as it was when it was made before.
  struct KnownCall {
    FunctionCall::Signature signature;
    std::shared_ptr<std::atomic<uint64_t>> missing;  // gradients that its backward did not give
  };
  using KnownCalls = std::vector<KnownCall>;

  /// `known`: of the opaque functions that the function calls, in order.
  explicit FunctionRecorder(ir::Graph& graph, SourceLocation where = {}, const KnownCalls* known = nullptr)
      : GraphEmitter(graph, false, where), forward_(nullptr), known_(known) {}
  /// Of the backward of what `forward` has recorded.
  FunctionRecorder(ir::Graph& graph, FunctionRecorder& forward)
      : GraphEmitter(graph, true, forward.where_), forward_(&forward), known_(nullptr) {}
  ~FunctionRecorder();
  FunctionRecorder(const FunctionRecorder&) = delete;

  /// A stand-in, and for what: an argument, or the base of one.
  struct StandIn {
    TensorImpl* stands_for;
    Tensor tensor;
    Tensor leaf;  // that gradients go to
    int argument, base_of;
    int32_t input;           // of an argument: its number
    RefPtr<Record> history;  // before the function ran
  };
  /// All of them, in the order in which they were made, and found by each of their tensors: null where it is none.
  class StandIns {
   public:
    const StandIn* of_tensor(const TensorImpl* x) const { return find(tensors_, x); }
    const StandIn* of_leaf(const TensorImpl* x) const { return find(leaves_, x); }
    const StandIn* standing_for(const TensorImpl* x) const { return find(originals_, x); }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }

    void add(StandIn made) {
      const size_t number = all_.size();
      originals_.emplace(made.stands_for, number);
      tensors_.emplace(made.tensor.get(), number);
      if (made.leaf.defined()) leaves_.emplace(made.leaf.get(), number);
      all_.push_back(std::move(made));
    }

   private:
    using Numbers = std::unordered_map<const TensorImpl*, size_t>;
    const StandIn* find(const Numbers& in, const TensorImpl* x) const {
      const auto it = in.find(x);
      return it == in.end() ? nullptr : &all_[it->second];
    }
    std::vector<StandIn> all_;
    Numbers originals_, tensors_, leaves_;
  };
  /// Of a forward: what backwards have asked for so far, in the order in which it is saved.
  std::vector<ir::ValueId> saved_values() const;
  /// Stand-ins for the arguments; one for an argument that is given twice.
  Tensors arguments(const Tensors& given);
  /// Of the arguments and their bases.
  const StandIns& stand_ins() const { return stand_ins_; }
  /// The number of the input that a stand-in is, made now for a base.
  int32_t input_of(const Tensor& stand_in);
  /// Whether runs must find the arguments where they lie now, relative to each other and to their bases.
  bool depends_on_places() const;
  /// Of a backward: the gradient of result i of the forward.
  Tensor cotangent(const TensorType& type, int result);
  /// Records the backward of a forward.
  Tensors backward_of_function(const BackwardRequest& request, Walk& walk);
  /// A leaf whose gradient came to it in a backward of the function's own, the hooks that it had, and how many nodes with effects
  /// had been recorded before.
  struct BegunLeaf {
    RefPtr<TensorImpl> leaf;
    std::vector<RefPtr<Hook>> hooks;
    size_t effects;
  };
  const std::vector<BegunLeaf>& begun_leaves() const { return begun_leaves_; }
  /// The leaves from outside that want a gradient, and the number of the input of each.
  std::vector<std::pair<Tensor, int32_t>> captured_leaves() const;
  /// The leaf whose .grad this is now; null where there is none that the function has looked at.
  RefPtr<TensorImpl> leaf_with_grad(const Tensor& tensor) const;
  /// Memory from outside that was written to.
  const std::unordered_set<const Storage*>& outside_writes() const { return outside_writes_; }
  /// Cells that were made for values of the forward, and those that the recorder holds, once for each time.
  const std::vector<RefPtr<TensorImpl>>& cells() const { return cells_; }
  void forget_cells() { cells_.clear(); }
  template <class F>
  void each_held(const F& f) const {
    for (const StandIn& s : stand_ins_) f(s.tensor.get()), f(s.leaf.get());
    for (const BegunLeaf& b : begun_leaves_) f(b.leaf.get());
    for (const auto& [context, call] : opaque_calls_) f(call.parcel.get());
    for (const Epoch& e : epochs_) f(e.versions.get());
    for (const TensorImpl* cell : held_by_code_) f(cell);
    for (const auto& call : traceable_calls_)
      for (const Tensor& t : call.made) f(t.get());
    for (const auto& [storage, root] : roots_) {
      f(root.cell.get()), f(root.as_input.get()), f(root.history.get());
      for (const auto& [cell, value] : root.views) f(cell.get());
    }
  }
  /// Whether a run calls code of the user's, in the forward or in a backward that has been recorded.
  bool calls_code() const { return calls_code_; }
  /// Throws RehearsalNeeded or NotRecordable if the function met one, even if it caught that.
  void check_recorded() const {
    if (!not_recordable_.empty()) throw NotRecordable(not_recordable_);
    if (needs_rehearsal_ || (known_ && functions_seen_ != known_->size())) throw RehearsalNeeded();
  }
  /// Throws NotRecordable where a result lies in memory that is seen elsewhere, by way of an opaque function that gave it: a run makes a copy.
  void check_shown(const Tensors& results) const;
  /// After the function, and after its first backward: outputs and all else of `out` but the graph, into which it was recorded.
  void finish(const Tensors& results, RecordedFunction& out);

  void emit(const Call& call, Tensor* results) override;
  std::string name() const override { return "FunctionRecorder"; }
  Values values() const override { return Values::of_function; }
  const void* attrs_of(const Record& record) override;
  void at(const Origin& origin) override;
  Tensors own_backward(const BackwardRequest& request, Walk& walk) override;
  void live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) override;
  void cannot_record(std::string_view op, std::string_view why, SourceLocation where) override;
  void depends_on(std::function<bool()> holds, std::string_view what) override {
    dependencies_.push_back({std::move(holds), what});
  }
  Tensor present_value(TensorImpl& self) override;
  void write(TensorImpl& self, const Tensor& result, SourceLocation where) override;
  void grad_is_replaced(TensorImpl& leaf) override;
  void grad_is_read(TensorImpl& leaf) override;
  void hook_is_added(const TensorImpl& leaf, SourceLocation where) override;
  ir::ValueId value_of(const Tensor& tensor) override;

  const FunctionCall::Signature& expected(const FunctionCall::Of& function,
                                          const std::vector<TensorType>& arguments) override;
  Tensors record(const FunctionCall::Of& function, const std::vector<const Tensor*>& arguments,
                 const FunctionCall::ForwardOf& forward, const FunctionCall::Signature& signature,
                 const AutogradContext& context) override;

 private:
  struct Root {
    RefPtr<Storage> storage;
    RefPtr<TensorImpl> cell;  // how it lies; null: row-major, not asked for yet
    ir::ValueId value = ir::kNoValue;
    bool is_written = false;
    RefPtr<TensorImpl> history;  // once written: the base whose history the value has; null: none
    int32_t input = -1;          // memory from outside: the input that it came in by
    bool is_gradient = false;    // that of a leaf: whichever tensor that has in a run
    int32_t base_of = -1;        // the argument whose base this is; an input once it is needed
    int32_t seen = -1;           // the same, or an argument that lies there; -1 of a computed value
    int64_t seen_offset = 0;     // where that begins
    int arguments = 0;           // that lie there
    bool is_flat = false;        // value and cell are all of the memory, as a row
    bool is_outside = false;     // the value has been written where host code sees it
    bool was_outside = false;    // it, or one before
    int32_t output = -1;         // that holds the value, once asked for
    const Storage* outside = nullptr;
    RefPtr<TensorImpl> as_input;                                    // how the input lies
    std::vector<std::pair<RefPtr<TensorImpl>, ir::ValueId>> views;  // of the present value
  };
  struct LeafGrad {
    RefPtr<TensorImpl> leaf;
    Tensor before;
    bool is_dropped_first;
    size_t last_read = 0;                         // the same as in Grad
    ir::ValueId outside = ir::kNoValue;           // what host code finds there; kNoValue: `before`, or none
    bool is_dropped_outside = false;              // none
    std::vector<PostAccumulateCode*> hooks = {};  // that ran when it had been accumulated
  };

  struct OpaqueCall {
    Tensor parcel;
    std::shared_ptr<std::atomic<uint64_t>> missing;  // arguments that backward gives no gradient for
  };

  // As if it had so many bytes: a recorded value has it for its version, and for who shares it.
  static RefPtr<Storage> memory_without_data(int64_t bytes) {
    return Storage::wrap(nullptr, bytes, nullptr, nullptr);
  }
  void made(const Tensor& value) override {
    if (!forward_) cells_.push_back(value.ref());
  }
  Root& root_of(TensorImpl& cell);
  Root& capture(TensorImpl& cell);
  int32_t saved_index(const Tensor& tensor, const Record* user);
  bool is_gradient(const TensorImpl& cell) const;
  ir::ValueId read(const Tensor& tensor, bool has_history);
  Root& new_root(TensorImpl& cell, ir::ValueId value);
  RefPtr<TensorImpl> present_geometry(const TensorImpl& cell) const;
  Tensor stand_in(TensorImpl& like, int argument, int base_of);
  void link_stand_in(StandIn& made);
  void need_input(Root& root);
  void flatten(Root& root);
  RecordedFunction::Place place(const Tensor& tensor);
  ir::ValueId input_value(const Root& root) const {
    return graph_.inputs()[static_cast<size_t>(root.input)].value;
  }
  void check_alone(const Root& root) const;
  ir::ValueId emit_geometry(const OpInfo& op, const TensorImpl& cell, ir::ValueId value,
                            const TensorImpl& part, const Tensor& with, int64_t bytes);
  ir::ValueId relate(const OpInfo& op, Root& root, const TensorImpl& cell, const Tensor& with);
  Tensor computed(const TensorType& type, ir::ValueId value);
  void lay_out(TensorImpl& cell);
  LeafGrad& leaf_grad(TensorImpl& leaf, bool is_dropped);
  LeafGrad* known_grad(const TensorImpl& leaf);
  void note_leaf(TensorImpl& leaf);
  int argument_of(const TensorImpl& cell) const;
  void check_one_leaf(const TensorImpl& leaf) const;
  void emit_call(const Call& call, Tensor* results);
  void emit_bookkeeping(const Call& call, Tensor* results);
  void emit_pack(const Call& call);
  void emit_unpack(const Call& call, Tensor* results);
  void unpack_recorded(const Call& call, Slot& slot, Tensor* results);
  void note_saved(const Storage& memory);
  uint32_t version_at_end(const Storage& memory) const;
  void emit_hook(const Call& call, Tensor* results);
  void emit_post_accumulate(const HookAttrs& attrs, SourceLocation where);
  void emit_function_backward(const Call& call, Tensor* results);
  void emit_traceable(const Call& call, Tensor* results);
  void finish_traceable(RecordedFunction& out);
  const OpaqueCall* opaque_call(const Record& record) const;
  ir::ValueId emit_host(const OpInfo& op, std::span<const ir::ValueId> operands, RefPtr<HostCode> code,
                        SourceLocation where = {});
  Tensor without_layout(const TensorType& type, ir::ValueId value) { return make(type, value); }
  // A backward that is being recorded: tracer/function_reach.cc.
  struct OpenBackward {
    Walk* walk;
    Tensor value;  // any
    Tensor begun;  // the parcel; undefined until code of the user's comes
  };
  void begin_backwards();
  void begin_backward(OpenBackward& open);
  template <class Run>
  Tensors within_backward(const BackwardRequest& request, Walk& walk, const Run& run);
  void before_code();
  void before_pair(const SavedTensorHooks& pair);
  // A stretch of the recording between two calls of code of the user's: tracer/function_versions.cc.
  struct Epoch {
    uint64_t end;                                        // records that were made in it have lower numbers
    bool code_follows;                                   // it is over
    std::unordered_map<const Storage*, size_t> numbers;  // of the memory among
    Tensor versions;                                     // the parcel
  };
  void note_saves(const Call& call);
  void note_versions(const std::vector<std::pair<const Storage*, ir::ValueId>>& inputs, bool code_follows);
  void note_versions(const Walk& walk);
  bool is_input(const Storage& memory) const;
  const Epoch* epoch_of(const Record& record, const Storage& memory) const;
  void check_version(Record& record, const Slot& slot);
  void publish();
  void publish_write(Root& root);
  void publish_grad(LeafGrad& grad);
  void lies_outside(const Tensor& tensor, ir::ValueId value);
  // A leaf as host code finds it: one from outside, or the argument that is bound to the input with this value.
  struct LeafOfRun {
    RefPtr<TensorImpl> outside;
    ir::ValueId argument;
  };
  LeafOfRun leaf_of_run(TensorImpl& leaf);
  void accumulate(TensorImpl& leaf, const Tensor& grad);
  std::vector<bool> borrowed_values() const;
  std::vector<ir::ValueId> shown_values() const;
  void finish_saved(RecordedFunction& out);
  ir::ValueId shown(Root& root, const TensorImpl& cell);
  ir::ValueId detached(ir::ValueId value);
  void note_read(const Root& root, const TensorImpl& cell);
  bool have_histories() const;
  void finish_grads(const Tensors& results, RecordedFunction& out);
  int32_t output(ir::ValueId value, bool must_own);
  int32_t output_of(Root& root);
  RecordedFunction::Place place_of_grad(const Tensor& grad);
  Tensor new_grad(const Tensor& grad, const TensorImpl& leaf);
  // The value that stands for the memory of .grad, and how it lies there, unless it is that value.
  struct GradMemory {
    ir::ValueId value;
    std::optional<RecordedFunction::Layout> layout = {};
  };
  GradMemory memory_of_grad(const Tensor& grad);
  void restore();

  // What was packed: by its slot.
  struct PackedSlot {
    ir::ValueId value;
    RefPtr<Storage> memory;
    uint32_t version;
  };
  const PackedSlot* packed(const Slot& slot) const;

  FunctionRecorder* forward_;
  const RefPtr<SavedTensorHooks> pair_ =
      default_saved_tensor_hooks();  // that each run has one of its own for
  std::unordered_map<const Slot*, PackedSlot> packed_;
  const KnownCalls* known_;
  size_t functions_seen_ = 0;
  bool needs_rehearsal_ = false;
  bool calls_code_ = false;
  std::vector<RefPtr<TensorImpl>> cells_;
  std::string not_recordable_;  // why
  std::vector<RecordedFunction::Dependency> dependencies_;
  std::vector<RecordedFunction::TraceableCall> traceable_calls_;
  std::unordered_map<const AutogradContext*, OpaqueCall> opaque_calls_;
  std::unordered_map<const Storage*, const Storage*>
      shown_by_opaque_;  // of a result: of the argument that it lies in
  std::vector<RefPtr<HostCode>> host_;
  std::vector<OpenBackward> open_backwards_;
  std::vector<const TensorImpl*> held_by_code_;         // cells of which host code has a reference
  std::vector<Epoch> epochs_;                           // in order
  std::unordered_set<const Storage*> read_since_code_;  // by what may have saved it
  std::vector<std::pair<ir::ValueId, ir::ValueId>> straight_;
  std::unordered_set<const Storage*> outside_writes_;
  std::unordered_map<const Storage*, uint32_t>
      versions_;                                    // of memory from outside, when the recording was over
  size_t effects_ = 0;                              // nodes with effects so far
  std::unordered_map<ir::ValueId, int32_t> saved_;  // values that a backward has asked for
  std::vector<RecordedFunction::Place> saved_places_;
  bool is_finished_ = false;
  bool has_two_histories_ = false;
  std::unordered_map<ir::ValueId, ir::ValueId> detached_;
  std::vector<ir::ValueId> without_history_;               // written values that were read without a gradient
  std::unordered_map<int32_t, ir::ValueId> saved_inputs_;  // of a backward
  std::unordered_map<int32_t, int32_t> forward_numbers_;   // of a backward: symbols
  std::vector<std::byte> attrs_;                           // of the record at hand
  std::vector<bool> no_grad_;
  std::unordered_map<const Storage*, Root> roots_;
  std::vector<Root*> root_order_;
  std::unordered_map<const Storage*, int> roots_outside_;  // how many roots have begun as this memory
  std::vector<LeafGrad> grads_;
  std::unordered_map<const TensorImpl*, size_t> grad_numbers_;  // by the leaf
  StandIns stand_ins_;
  std::vector<BegunLeaf> begun_leaves_;
  std::unordered_map<const Storage*, RefPtr<Storage>> argument_memory_;  // by the arguments' own
  std::vector<const Record*> unpacked_;
  std::vector<int32_t> saved_outside_;
  std::unordered_set<int32_t> read_outside_;  // the same
  std::vector<std::pair<int32_t, const Record*>> users_;
  bool shares_memory_ = false;
  std::vector<RecordedFunction::Input> inputs_;
  std::vector<RecordedFunction::Numbers> numbers_;
  std::vector<ir::ValueId> outputs_;
  std::unordered_set<ir::ValueId> output_values_;
  std::vector<bool> borrowed_;
};

}  // namespace retrograd
