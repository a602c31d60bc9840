// replay(graph, emitter, bindings): the one interpreter. Into a Runner it is the reference execution that every plan is compared with, into
// Taper over Runner it is differentiable, into a Recorder it clones the graph.
#pragma once

#include "engine/tape.h"
#include "ir/graph.h"

namespace retrograd::ir {

/// What an input is bound to in one run, by the kind of the input.
struct Binding {
  Tensor tensor;             // kind tensor; kind slot of a graph run on its own: the value
  Record* record = nullptr;  // kinds slot and function
  int slot = 0;
  TensorImpl* leaf = nullptr;
  // Kept alive: it may be removed, and its list swept, while it is still to be passed over.
  RefPtr<Hook> hook = {};
  RefPtr<GradBox> box = {};
  RefPtr<SavedTensorHooks> pair = {};
};

/// Values of the free symbols of `graph`, read from the sizes of what is bound; numbers in attributes keep the values of the capture.
std::vector<Number> symbol_values(const Graph& graph, std::span<const Binding> bindings);

/// Attributes with every symbol replaced by its value, in `copy` (op.attrs_size bytes). Returns `copy`, or `attrs` when none is symbolic.
void* concrete_attrs(const OpInfo& op, void* attrs, std::span<const Number> values,
                     std::vector<std::byte>& copy);
/// Error(bad_argument) where a size comes out negative: the rules of the ops have seen the sizes at capture alone.
TensorType concrete_type(const TensorType& type, std::span<const Number> values);

/// Says in an error what was differentiated, as the driver does: "while differentiating mul made at mlp.cc:44".
void add_context(Exception& error, const Graph& graph, const Node& node);

/// Emits every node in order and returns the graph's outputs. `values`: of all expressions of graph.symbols. Each value is dropped after its
/// last use; slots keep what they hold. In a graph with `pack` nodes these alone pack what is saved. `ran` becomes the number of nodes that
/// have run, also when one throws.
Tensors replay(const Graph& graph, Emitter& emitter, std::span<const Binding> bindings,
               std::span<const Number> values, size_t* ran = nullptr);
Tensors replay(const Graph& graph, Emitter& emitter, std::span<const Binding> bindings);

}  // namespace retrograd::ir
