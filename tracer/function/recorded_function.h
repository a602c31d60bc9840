// RecordedFunction: the result of a recording: a graph, and the bindings of the graph to a run.
//
//   Input     what an input of the graph is bound to
//   Numbers   numbers that each run reads again (LiveNumbers), and their symbols
//   Location  location of a result, a gradient or a saved value in memory
//   Grad      the final state of .grad of a leaf
//   Write     the value of an input from outside after the run
// Outputs of the graph are results, gradients and writes. The code that nodes run is an input. Tensors from outside are
// plain pointers: outside_tensors.h.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/function.h"
#include "engine/host_code.h"
#include "engine/recording.h"
#include "engine/tape.h"
#include "ir/graph.h"
#include "tracer/function/outside_tensors.h"

namespace retrograd::inline v0 {

/// The layout of a tensor in memory, relative to another tensor.
struct Layout {
  TensorType type = {};
  Shape strides = {};
  Dim offset = 0;  // from the first element of the other

  static Layout of(const TensorImpl& x, Dim begin);
  bool is_symbolic() const {
    return type.shape.is_symbolic() || strides.is_symbolic() || offset.is_symbolic();
  }
  /// With numbers in place of symbols.
  void put_in(std::span<const Number> values);
  /// in(): a separate cell with this layout in that memory. is(): whether `x` has this layout there.
  Tensor in(const TensorImpl& memory) const;
  bool is(const TensorImpl& x, const TensorImpl& memory) const;
};

/// The location of a value: in memory that the run computes, or in that of an input.
struct Location : Layout {
  int32_t output = -1, input = -1;
  bool defined() const { return output >= 0 || input >= 0; }
};

/// What the recording of a backward read from the forward and from the tape.
struct BackwardReads {
  int32_t symbols = 0;  // the number of the first expressions that are those of the forward
  /// The records whose slots the backward has unpacked.
  std::vector<const Record*> unpacked;
  /// Pairs of a saved value of the forward and a record that it was read for.
  std::vector<std::pair<int32_t, const Record*>> users;
  /// Inputs of the forward that are tensors from outside and were saved by records: they must be unchanged since the
  /// forward's run.
  std::vector<int32_t> saved_outside;
  /// Pairs of a value returned by an unpack hook and the packed value of the forward, whose gradient it has.
  std::vector<std::pair<ir::ValueId, ir::ValueId>> straight;
};

struct RecordedFunction {
  /// Parallel to graph.inputs().
  struct Input {
    int argument = -1;               // number of the argument, of a backward: of the cotangent; or:
    int base_of = -1;                // number of the argument whose base it is
    int saved = -1;                  // of a backward: number of the saved value of the forward,
    int forward_input = -1;          // or of an input of the forward, as it was before the run; or:
    TensorImpl* captured = nullptr;  // always this tensor
    TensorImpl* grad_of = nullptr;   // the .grad of this leaf,
    int grad_of_argument = -1;       // or this argument
    RefPtr<Hook> hook = {};          // always this hook,
    TensorImpl* leaf = nullptr;      // which may belong to a leaf; or
    RefPtr<HostCode> code = {};      // always this code
  };
  struct Numbers {
    LiveNumbers live;
    int32_t first;  // the first symbol
    int count;
    size_t effects;  // number of nodes with effects recorded before they were read

    /// Reads them again, into the values of all symbols of the graph.
    void read(std::span<Number> values) const {
      live.read_into(values.subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
    }

    /// `values`: of all symbols of the graph.
    void settle(std::span<const Number> values, bool was_used) const {
      if (live.settle)
        live.settle(values.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), was_used);
    }
  };
  struct Grad {
    enum class After : uint8_t { computed, none, kept };
    TensorImpl* leaf;  // or of an argument:
    int argument;
    bool is_dropped_first;   // before any read: it can be released when the run begins; else it must exist
    bool was_defined;        // as at capture
    size_t last_read;        // number of nodes with effects recorded when the function read it last
    After after;             // a new tensor; undefined; unchanged, or as user code left it
    Location location = {};  // of a new tensor

    AutogradMeta& meta(const Tensors& arguments) const {
      return (argument >= 0 ? arguments[static_cast<size_t>(argument)].impl() : *leaf).need_meta();
    }
  };
  struct Write {
    // The value of the output is written to the input's memory; -1: a node has written it.
    int32_t input, output;
    bool all_memory;           // the output is the whole memory, as a row
    bool was_written = false;  // by a node, before that
    /// Whether the value may be computed in the memory of the input.
    bool may_lie_there() const { return !all_memory && !was_written; }
  };
  /// State of an object that decided what was recorded.
  struct Dependency {
    std::function<bool()> holds;
    std::string_view what;
  };
  /// A call of a traceable user function: the operations of its forward are nodes without gradients. In a replay that
  /// is to be differentiated its results get a record of the function, as at the recording.
  struct TraceableCall {
    size_t node;  // the first node after the call
    const OpInfo* op;
    FunctionCall::Attrs attrs;
    SourceLocation where;
    std::vector<ir::ValueId> operands, results;
    Tensors made = {};                         // while recording: the results
    std::vector<bool> is_differentiable = {};  // of the results
    std::shared_ptr<void> context = {};        // named by the attributes
  };
  /// A value that a backward needs.
  struct Saved {
    int32_t output;     // the value
    Location location;  // defined if the memory of a written input holds the value after the run
  };

  /// The values that the symbols of a graph had when it was recorded.
  static std::vector<Number> hints(const ir::Graph& graph);
  /// The values of all expressions of a graph whose table begins as another one, with the given values of that one's.
  /// None if a guard does not hold for them.
  static std::optional<std::vector<Number>> values_at(const ir::Graph& graph, std::span<const Number> values);
  /// Settles the numbers read for a recording that will never run.
  static void settle_unused(std::span<const Numbers> numbers, const ir::Graph& graph) noexcept;
  /// The number of nodes with effects among the first `nodes` nodes of a graph: passes keep such nodes, in order.
  static size_t effects_among(const ir::Graph& graph, size_t nodes);

  /// A copy for one set of sizes, which are the first symbols of the graph. `values`: of all expressions.
  RecordedFunction at_sizes(std::span<const Number> values, int32_t sizes) const;
  /// The same with an empty graph: what binds it to a run.
  RecordedFunction bindings_at(std::span<const Number> values, int32_t sizes) const;

  ir::Graph graph;
  std::shared_ptr<OutsideTensors> outside;  // what `inputs`, `grads` and the code of nodes point to
  std::vector<Input> inputs;
  std::vector<Numbers> numbers;
  std::vector<Dependency> dependencies;
  std::vector<TraceableCall> traceable_calls;  // in order
  /// Whether a traceable pair left an argument alone that was saved (SavedTensorHooks::keeps).
  struct KeptArgument {
    RefPtr<SavedTensorHooks> pair;  // null: the default pair of the call
    int argument;
    bool is_kept;
  };
  std::vector<KeptArgument> kept_arguments = {};
  std::vector<Location> results;
  std::vector<Grad> grads;
  std::vector<std::pair<size_t, Location>>
      result_grads;  // results that are leaves, and the location of their .grad
  std::vector<Write> writes;
  std::vector<Saved> saved;
  std::vector<bool> no_grad;  // by node: recorded while gradient mode was off
  /// A written value was read with a history other than that of the write: a replay would compute the wrong gradient.
  bool has_two_histories = false;
  BackwardReads reads;  // of a backward
};

}  // namespace retrograd
