// A run of a plan, for tracer/plan*.cc only.
//   Frame   the registers of one run, leased from the plan.
//   Run     what the run was given, and where it is: the loop and its steps in plan_run.cc, launches in plan_launch.cc, graphs of launches in
//           plan_graphs.cc, leaving the graph in plan_leave.cc.
#pragma once

#include <functional>
#include <limits>

#include "tracer/peak_watch.h"
#include "tracer/plan.h"
#include "tracer/prefetch.h"

namespace retrograd {

inline constexpr int kMaxSpanOperands = 3;

/// For cells of which only the layout is asked: views of any extent fit in.
inline RefPtr<Storage> storage_without_memory() {
  return Storage::wrap(nullptr, std::numeric_limits<int64_t>::max(), nullptr, nullptr);
}

// `own` are the prepared cells; `at` what a register holds now: its own cell, or a foreign one that `foreign` keeps alive. The first registers
// are those of the arena, whose cells have their memory as long as the run holds it.
struct Plan::Frame {
  std::vector<RefPtr<TensorImpl>> own;
  std::vector<TensorImpl*> at;
  std::vector<RefPtr<TensorImpl>> foreign;
  std::vector<std::byte> patched;  // attributes with the numbers of the run
  RefPtr<Storage> arena;
  const void* arena_data = nullptr;        // where the cells of the arena lie
  std::unique_ptr<Recordings> recordings;  // of a plan whose launches are recorded

  Frame();
  ~Frame();
  bool is_in_arena(const TensorImpl& x) const {
    const auto* begin = static_cast<const std::byte*>(arena_data);
    const auto* data = static_cast<const std::byte*>(x.storage()->data());
    return arena && data >= begin && data < begin + arena->nbytes();
  }
  /// Takes memory for the arena.
  void take_arena(const Plan& plan);

  void set_foreign(int32_t r, RefPtr<TensorImpl> value) {
    at[static_cast<size_t>(r)] = value.get();
    foreign[static_cast<size_t>(r)] = std::move(value);
  }
  void drop(int32_t r) {
    const auto i = static_cast<size_t>(r);
    if (foreign[i])
      foreign[i].reset();
    else if (at[i])
      own[i]->set_storage({});
    at[i] = nullptr;
  }
  // Whatever a run that was broken off has left; and the arena.
  void clear(size_t in_arena) {
    if (!recordings) arena.reset();
    for (size_t i = in_arena; i < at.size(); ++i) {
      at[i] = nullptr;
      foreign[i].reset();
      if (own[i]->storage()) own[i]->set_storage({});
    }
  }
  // The value as a tensor of its own, its memory handed over when the register is done with it.
  Tensor give(int32_t r) {
    const auto i = static_cast<size_t>(r);
    if (r < 0 || !at[i]) return {};
    if (foreign[i]) return Tensor(foreign[i]);
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(*own[i]);
    return Tensor(std::move(cell));
  }
};

// What a run brings back ahead of its use (tracer/plan_prefetch.cc).
class Plan::Early {
 public:
  /// Null where no pair asks for it.
  static std::unique_ptr<Early> of(const Run& run);
  ~Early();
  bool is_due(size_t step) const { return step >= due_; }
  /// Begins what is to be begun before a step.
  void before(size_t step);

 private:
  struct Waiting {
    UnpackStep at;
    size_t last;  // that needs its memory
  };
  // A slot outside of a tape lives as long as its parcel.
  struct Payload {
    Slot* slot;
    std::weak_ptr<Slot> parcel;
    Packed* packed() const;
  };
  struct Beginning {
    size_t step;
    Payload payload;
  };
  Early(const Run& run, std::vector<UnpackStep> unpacks);
  static Payload payload_of(const Run& run, const UnpackStep& unpack);
  static Prefetcher* prefetcher_of(const Run& run, const UnpackStep& unpack);
  std::span<const Waiting> next_batch() const;
  void plan_next();
  void find_due();

  const Run& run_;
  std::vector<Waiting> waiting_;  // in order of steps
  size_t planned_ = 0;            // of them
  PrefetchSchedule schedule_;
  std::vector<Beginning> beginnings_;  // in order of steps
  size_t begun_ = 0;                   // of them
  size_t due_ = 0;
};

// One run: what it was given, and the frame that it leased.
struct Plan::Run {
  const Plan& plan;
  const BackwardRequest& request;
  const Reached& reached;
  const Trail* trail;                   // of a function: null
  FunctionRun* function_run = nullptr;  // null of a captured backward
  std::vector<ir::Binding> bindings;
  std::unique_ptr<Frame> frame;
  size_t next = 0;  // the step that runs
  uint64_t seen_changes = annotation_changes;
  size_t leave_at = kStay;  // event of the log at which the graph is left
  Tensors function_gave;    // what a function gave, if that is why
  bool one_by_one;          // what span steps do is looked at after each
  std::unique_ptr<Early> early;
  std::vector<bool>
      groups_one_by_one;  // of plan.fused_, as the forecast has taken them; empty: there is none
  size_t stop;            // the step before which all() ends

  /// `bindings`: of the inputs in plan.bound_.
  Run(const Plan& plan, const BackwardRequest& request, const Reached& reached, const Trail* trail,
      std::vector<ir::Binding> bindings, std::span<const Number> numbers);
  ~Run();
  /// Runs to `stop`, or to where the graph must be left: then false.
  bool all();
  /// Runs to the end, segments as graphs where they can be.
  bool with_graphs();
  /// The most bytes that will be live during the run, and during each step, what code of the user's allocates and the values of `unpacks`
  /// aside; of each of these, the last step that needs its memory.
  struct Outlook {
    int64_t most;
    std::vector<int64_t> live;
    std::vector<size_t> last;
    std::vector<bool>
        lies_over;  // parallel to registers_: a result that will lie on its operand; the operand that a leaf will take over
    std::vector<bool> groups_one_by_one;  // of plan.fused_: their kernels are not there yet
  };
  Outlook outlook(std::span<const UnpackStep> unpacks = {}) const;
  const int32_t* registers(const Step& s) const { return plan.registers_.data() + s.first_register; }
  Tensors outputs();
  Recordings* recording = nullptr;  // while launches are recorded
  /// Goes on eagerly from there.
  Tensors leave();

 private:
  static constexpr size_t kStay = ~size_t{0};
  void look_ahead();
  std::vector<int32_t> arrived_values(size_t count, BackwardState& state) const;
  void set_place(const Walk& walk, BackwardState& state) const;
  void set_given(const Walk::Item& item, BackwardState& state);
  Tensor value(int32_t id) const;
  void function(const Step& s);
  void step(const Step& s, void* attrs);
  void drop_dying(const Step& s);
  std::span<std::byte> room(int32_t number) const;
  struct View;
  void spans();
  static bool span(const Step& s, const View& view);
  static bool find_operand(const Step& s, const View& view, int32_t r, void*& data, Slot*& slot);
  static bool find_result(const Step& s, const View& view, int32_t r, void* const* operands, void*& data);
  Tensor value_of_slot(uint64_t place, uint32_t index);
  void unpack_slot(const Step& s);
  void call(const Step& s, void* attrs);
  void kernel(const Step& s, const Call& call, const int32_t* results);
  void kernel_over(const Step& s, const Call& call, TensorImpl** operands, int32_t result);
  std::vector<TensorImpl*> give_operands(const Step& s, Tensors& operands);
  void fused(const Step& s);
  TensorImpl* fused_output(const Step& s, size_t o, TensorImpl** inputs, RefPtr<TensorImpl>& kept);
  void* attrs_of(const Attrs& attrs) {
    return attrs.is_patched ? frame->patched.data() + attrs.patched_at : attrs.fixed;
  }
  // Of graphs: tracer/plan_graphs.cc.
  struct SlotsInPlace;
  bool start(size_t number);
  bool look_at_reads(size_t number);
  bool take_memory(size_t number);
  void fill_slots(size_t number);
  void record(size_t number);
  void note_updates(size_t number);
  bool have_numbers_parted(size_t number) const;
  void finish(size_t number);
  RefPtr<Storage> memory_for(const TensorType& type) const;
  Tensor copy_of(TensorImpl* x);
  void put_memory(size_t r, const Recordings& recordings);
  void give_memory(size_t r);
  void count_launches() const;
  void hook(const Step& s);
  void accumulate(const Step& s);
  Kernel kernel_of(const Step& s, const Call& call) const {
    return s.kind == Kind::span ? plan.executor_.find(call.op) : s.kernel;
  }
};

// A run that is measured (tracer/peak_watch.h). It tells the memory that the plan is answerable for, which the forecast knows, from what is live
// or gone because of code of the user's. Memory that such code was shown or gave is **known** as long as a register or slot of the run
// has it. The rest of what such code allocates and frees shows in the live bytes.
class Plan::Watch {
 public:
  explicit Watch(Run& run) : Watch(run, run.outlook()) {}
  void before(const Step& s);
  /// Behind code of the user's, before the step lets go of what dies.
  void called();
  void after(const Step& s);
  /// Runs code of the user's between two steps.
  void beside(const std::function<void()>& code);

 private:
  Watch(Run& run, Run::Outlook outlook);
  struct Known {
    const Storage* memory;
    int64_t bytes;
    std::vector<const Slot*> slots = {};  // that have it, and go with the run
    bool is_planned = false;              // the forecast counts it
    bool is_live = true;
    bool is_kept = false;    // the forecast counts it to the end
    bool is_shared = false;  // others than the run hold it
    int64_t beside() const { return bytes * (is_live - is_planned); }
  };
  TensorImpl* cell(int32_t r) const { return r < 0 ? nullptr : run_.frame->at[static_cast<size_t>(r)]; }
  std::span<const int32_t> operands(const Step& s) const { return {run_.registers(s), s.operands}; }
  std::span<const int32_t> results(const Step& s) const {
    return {run_.registers(s) + s.operands, s.results};
  }
  TensorImpl& leaf_of(const Step& s) const { return *run_.bindings[static_cast<size_t>(s.bound)].leaf; }
  // Of a step: what a result is expected to be by the forecast.
  struct Result {
    bool lies_over = false;            // it lies on the memory of an operand
    const Storage* operand = nullptr;  // this one's; null: of none
    int64_t bytes = 0;
    bool is_from_code = false;  // the operand
  };
  bool calls_code(const Step& s) const;
  Known* find(const Storage* memory);
  void know(const TensorImpl* x, bool came_from_code);
  bool is_held(const Known& k, bool planned) const;
  bool is_shared(const Known& k) const;
  int32_t source(const Step& s, size_t result) const;
  Result expected(const Step& s, size_t result) const;
  void note_memory(const Result& expected, const TensorImpl& x);
  void note_result(const Result& expected, int32_t r);
  void note_leaf(const Result& expected, const TensorImpl& grad);
  int64_t beside() const;
  void look(size_t known_before);

  const Run& run_;
  WatchedRun measured_;
  const std::vector<bool> lies_over_;  // by the forecast
  std::vector<bool> from_code_;        // of each register: its value came from code of the user's
  std::vector<Known> known_;
  int64_t unseen_ =
      0;  // bytes beside those that the forecast counts, of memory that is not known; less than none, where code freed it
  int64_t beside_ = 0;  // these and the known ones
  // Of the step:
  bool is_code_ = false;
  bool is_first_ = false;         // a leaf gets its first gradient, the one that is expected
  std::vector<Result> expected_;  // of each result
  int64_t live_ = 0;              // before it
  int64_t within_ = 0;            // bytes that it takes, or does without, only because of code of the user's
};

}  // namespace retrograd
