// Host nodes: places of a recorded function where code runs on the host that the graph knows nothing of: a pair of saved-tensor hooks, an
// opaque function of the user's, a hook on a leaf, and what has to be done around them.
//
// A host node is an effect, so it keeps its place among effects, and passes take what it is given and gives for memory that others can see
// (ir/passes/memory_classes.h). Its attributes name a HostCode, which the recorded function keeps alive; hence a graph with host nodes can
// be printed, but not read back. What a node hands on to another one of the same run and is no tensor (what a pack hook made, the context of
// a function) travels as a **parcel**: a tensor without elements whose memory is the object.
//
//   pack               (value) -> parcel              a pack hook, where a record saves
//   unpack             (parcel) -> value              its unpack hook, where a rule first asks
//   function           (arguments) -> parcel, results, what else it saved      forward of an opaque function (engine/function.h)
//   function_backward  (parcel, gradients, saved) -> gradients                 its backward
//   post_accumulate    (gradient) -> gradient         a hook on a leaf that has its new .grad
//   give_grad          (gradient) -> gradient         .grad of a leaf becomes what it is eagerly at this place: code of the user's comes
//   write_out          (input, value) -> input        the same for memory that was written to
//   begin_backward     (any, arguments) -> parcel     what hooks ask of a backward is there from here,
//   end_backward       (parcel) -> parcel             to here, where its callbacks are called (tracer/function_reach.cc)
//   note_versions      (inputs) -> parcel             versions as they are before code of the user's comes,
//   check_version      (parcel) -> parcel             and must be where a saved value is used (tracer/function_versions.cc)
#pragma once

#include "engine/emitter.h"
#include "engine/tape.h"
#include "ir/graph.h"

namespace retrograd {

class HostCode : public RefCounted {
 public:
  virtual ~HostCode() = default;
  /// Gives a defined tensor of each of `types`. The operands are the cells of the run: what is to be kept or shown gets a cell of its own.
  virtual void run(std::span<TensorImpl* const> operands, Tensor* results) = 0;
  /// The same when a forward is computed once more, with operands that have a history: nothing outside is changed.
  virtual void replay(std::span<TensorImpl* const> operands, Tensor* results) { run(operands, results); }
  /// Of `pack`: the pair that a run calls now. Null of other code.
  virtual SavedTensorHooks* pair() const { return nullptr; }
  /// Of `unpack`: what the run gives the parcel for; it lives as long as the parcel. Null of other code.
  virtual std::weak_ptr<Slot> slot(std::span<TensorImpl* const> /*operands*/) const { return {}; }
  static void destroy(HostCode* code) noexcept { delete code; }

  std::vector<TensorType> types;  // of the results
};

struct HostAttrs {
  HostCode* code;
};

namespace host {
extern const OpInfo pack, unpack, function, function_backward, post_accumulate, give_grad, write_out,
    begin_backward, end_backward, note_versions, check_version;
/// Whether a node of `op` puts its first operand where others hold it, and gives it on.
inline bool puts_outside(const OpInfo& op) { return &op == &give_grad || &op == &write_out; }
}  // namespace host

/// Appends a node that runs `code`; its results are numbered from Node::first_result.
ir::Node& append_host_node(ir::Graph& graph, const OpInfo& op, std::span<const ir::ValueId> operands,
                           HostCode& code);

/// What the node of a call runs; null for another call.
HostCode* code_of(const Call& call);

/// A cell of its own for the memory of x; one for all of that memory, as a row.
Tensor seen(const TensorImpl& x);
Tensor row_of(const TensorImpl& x);

/// What code of the user's is shown of an operand: itself if it has a history, which no register of a plan has; else as seen().
Tensor shown(TensorImpl& x);

/// The type of every parcel.
TensorType parcel_type();
/// A parcel that owns `content`.
Tensor make_parcel(std::shared_ptr<void> content);
/// What a parcel owns.
const std::shared_ptr<void>& open_parcel(const TensorImpl& parcel);

}  // namespace retrograd
