// HostCode: code that a node of a recorded function runs on the host, which the graph does not describe: a pair of
// saved-tensor hooks, an opaque function of the user, a hook on a leaf, and what must be done before and after them.
//
// A node names it as an input of kind `code` (ir/graph.h), and each run binds the input to the object. An op that runs
// code finds it in its attributes, where the ops of a live tape have their object (engine/bookkeeping.h).
#pragma once

#include <memory>
#include <vector>

#include "engine/op.h"
#include "engine/tape.h"

namespace retrograd::inline v0 {

class HostCode : public RefCounted {
 public:
  virtual ~HostCode() = default;
  /// Gives a defined tensor of each of `types`. The operands are the cells of the run: what is kept, or shown to the
  /// user, gets a cell of its own.
  virtual void run(std::span<TensorImpl* const> operands, Tensor* results) = 0;
  /// The same when a forward is computed again, with operands that have a history: nothing outside is changed.
  virtual void replay(std::span<TensorImpl* const> operands, Tensor* results) { run(operands, results); }
  /// Of `pack`: the pair that a run calls now. Null for other code.
  virtual SavedTensorHooks* pair() const { return nullptr; }
  /// Of `unpack`: the slot that the run unpacks, which lives as long as the operand. Null for other code.
  virtual std::weak_ptr<Slot> slot(std::span<TensorImpl* const> /*operands*/) const { return {}; }
  static void destroy(HostCode* code) noexcept { delete code; }

  std::vector<TensorType> types;  // of the results
};

/// The base of the attributes of every op that may run code.
struct HostAttrs {
  HostCode* code = nullptr;
};

}  // namespace retrograd
