// replay(graph, emitter, bindings): the one interpreter. Run into a Runner it is the reference execution for every
// plan, into a Taper over a Runner it is differentiable, into a Recorder it clones the graph.
#pragma once

#include "engine/host_code.h"
#include "engine/tape.h"
#include "ir/graph.h"

namespace retrograd::inline v0::ir {

/// The object that an input is bound to in one run, by the kind of the input.
struct Binding {
  Tensor tensor;             // kind tensor; for kind slot, the value when a graph runs on its own
  Record* record = nullptr;  // kinds slot and function
  int slot = 0;
  TensorImpl* leaf = nullptr;
  // Keeps the hook alive: it may be removed, and its list swept, before the run skips it.
  RefPtr<Hook> hook = {};
  RefPtr<GradBox> box = {};
  RefPtr<SavedTensorHooks> pair = {};
  RefPtr<HostCode> code = {};
};

/// Values of the free symbols of `graph`, read from the sizes of the bound tensors; numbers in attributes keep their
/// values at capture.
std::vector<Number> symbol_values(const Graph& graph, std::span<const Binding> bindings);

/// Attributes with every symbol replaced by its value, in `copy` (op.attrs_size bytes). Returns `copy`, or `attrs` when
/// none is symbolic.
void* concrete_attrs(const OpInfo& op, void* attrs, std::span<const Number> values,
                     std::vector<std::byte>& copy);
/// Error(bad_argument) when a size is negative: the rules of the ops have checked only the sizes at capture.
Dim concrete_dim(Dim dim, std::span<const Number> values);
TensorType concrete_type(const TensorType& type, std::span<const Number> values);

/// Adds to an error what was differentiated, as the driver does: "while differentiating mul made at mlp.cc:44".
void add_context(Exception& error, const Graph& graph, const Node& node);

/// Emits every node in order and returns the graph's outputs. `values`: of all expressions of graph.symbols. Each value
/// is dropped after its last use; slots keep their values. In a graph with `pack` nodes only these pack saved values.
/// `ran` receives the number of nodes that have run, also when one throws.
Tensors replay(const Graph& graph, Emitter& emitter, std::span<const Binding> bindings,
               std::span<const Number> values, size_t* ran = nullptr);
Tensors replay(const Graph& graph, Emitter& emitter, std::span<const Binding> bindings);

}  // namespace retrograd::ir
