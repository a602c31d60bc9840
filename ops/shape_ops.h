// Views and other ops that only rearrange: alias, detach, expand, reshape, permute, slices, and the copies clone,
// contiguous and to. A view shares the memory of its operand: a write through one is seen by the other, and gradients
// follow. Their rules are linear.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct View {
  using Attrs = NoAttrs;
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = Trait::pure | Trait::view;
};

/// The same view of the same memory.
struct Alias : View {
  static constexpr uint32_t traits = View::traits | Trait::row_major;
  static constexpr std::string_view name = "alias", doc = "the tensor itself, as another view";
  static constexpr std::string_view example = "f32[2,3] : f32[2,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void layout(const Call& call, TensorImpl& output);
  static Tensor transpose(RuleContext&, int, const Tensor& g) { return g; }
  static constexpr auto batch = batch_leading;
};

struct Detach : Alias {
  static constexpr std::string_view name = "detach", doc = "the tensor without history",
                                    no_derivative = "it cuts the graph";
  static constexpr std::string_view example = "f32[2,3] : f32[2,3]";
  static Tensor transpose(RuleContext&, int, const Tensor& g) = delete;
};

struct ShapeAttrs {
  Shape size;
  void visit(AttrVisitor& v) { v.field("size", size); }
};

struct Expand : View {
  using Attrs = ShapeAttrs;
  static constexpr std::string_view name = "expand", doc = "dims of size 1 repeated, new dims in front";
  static constexpr std::string_view example = "f32[3] {size=[2,3]} : f32[2,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void layout(const Call& call, TensorImpl& output);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  static void batch(BatchContext& c);
};

/// Another shape of the same elements in row-major order, on the same memory.
struct Reshape : View {
  using Attrs = ShapeAttrs;
  static constexpr uint32_t traits = View::traits | Trait::row_major;
  static constexpr std::string_view name = "view", doc = "the same elements in another shape, without a copy";
  static constexpr std::string_view example = "f32[2,3] {size=[6]} : f32[6]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void layout(const Call& call, TensorImpl& output);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  static void jvp(TangentContext& c);  // of a tangent in any layout
  static void batch(BatchContext& c);
};

struct Permute : View {
  struct Attrs {
    IntList dims;
    void visit(AttrVisitor& v) { v.field("dims", dims); }
  };
  static constexpr std::string_view name = "permute", doc = "dims in another order";
  static constexpr std::string_view example = "f32[2,3,4] {dims=[2,0,1]} : f32[4,2,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void layout(const Call& call, TensorImpl& output);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  static void batch(BatchContext& c);
};

/// Copies into fresh row-major memory.
struct Clone {
  using Attrs = NoAttrs;
  static constexpr std::string_view name = "clone", doc = "a copy in row-major memory";
  static constexpr std::string_view example = "f32[2,3] : f32[2,3]";
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = Trait::pure | Trait::elementwise;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext&, int, const Tensor& g) { return g; }
  static constexpr auto batch = batch_leading;
};

/// The operand itself if it is row-major, else a copy. This is decided at run time, so that a graph serves any layout
/// of its inputs.
struct Contiguous : Clone {
  static constexpr std::string_view name = "contiguous",
                                    doc = "row-major memory, by a copy only where needed";
  static constexpr std::string_view example = "f32[2,3] : f32[2,3]";
  static constexpr uint32_t traits = Trait::pure | Trait::row_major;
  static void run_on_host(const Call& call, Tensor* results);
};

struct To {
  struct Attrs {
    ScalarType dtype;
    void visit(AttrVisitor& v) { v.field("dtype", dtype); }
  };
  static constexpr std::string_view name = "to", doc = "converted to another dtype";
  static constexpr std::string_view example = "f32[2,3] {dtype=f64} : f64[2,3]";
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = Trait::pure | Trait::elementwise;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

/// Copies row-major memory between devices.
struct ToDevice {
  struct Attrs {
    Device device;
    void visit(AttrVisitor& v) { v.field("device", device); }
  };
  static constexpr std::string_view name = "to_device",
                                    doc = "a copy on another device; without one: on the CPU";
  static constexpr std::string_view example = "f32[2,3] : f32[2,3]";
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  static constexpr auto batch = batch_leading;
};

using ShapeOps = OpList<Alias, Detach, Expand, Reshape, Permute, Clone, Contiguous, To, ToDevice>;

}  // namespace ops

// For any dtype and device; results have those of the input unless stated otherwise.

/// A new tensor of the same shape on the same memory, a view of `input`. torch.ops.aten.alias.
Tensor alias(Operand input);
/// The same memory without a history: a leaf that wants no gradient, and is no view of `input`. torch.Tensor.detach.
Tensor detach(Operand input);
/// A copy of the same shape in row-major memory; differentiable. torch.clone, with
/// memory_format=torch.contiguous_format.
Tensor clone(Operand input);
/// `input` itself where it is row-major, else clone(input). torch.Tensor.contiguous.
Tensor contiguous(Operand input);
/// Converted to `dtype`; the tensor itself if it has that dtype. Error(bad_argument) for ScalarType::Undefined.
/// torch.Tensor.to.
Tensor to(Operand input, ScalarType dtype);
/// A row-major copy on another device; the tensor itself if it is there already. Error(bad_argument) when there is no
/// such device. torch.Tensor.to.
Tensor to(Operand input, Device device);
/// A view with dims of size 1 repeated up to `size`, and with new dims in front; -1 keeps a dim. Error(shape_mismatch)
/// if another size would change or there are fewer dims than before, Error(bad_argument) for a negative size.
/// torch.Tensor.expand.
Tensor expand(Operand input, const Shape& size);
/// expand() to sizes none of which is -1; `input` itself if it has this shape.
Tensor expand_to(Operand input, const Shape& shape);
/// The same elements, in row-major order, in another shape, on the same memory; one size may be -1, which is inferred.
/// Error(shape_mismatch) for another number of elements, Error(bad_argument) for negative sizes,
/// Error(view_incompatible) for a layout that allows no such view. torch.Tensor.view.
Tensor view(Operand input, const Shape& size);
/// view() if the layout allows it, else a view of a copy. Errors as for view(), except view_incompatible.
/// torch.reshape.
Tensor reshape(Operand input, const Shape& shape);
/// reshape() to sizes none of which is -1.
Tensor reshape_to(Operand input, const Shape& shape);
/// A view whose dim i is dim dims[i] of `input`; dims may be negative. Error(bad_dim) unless each dim is given once.
/// torch.permute.
Tensor permute(Operand input, const IntArray& dims);
/// A view with two dims exchanged, which may be negative. Error(bad_dim). torch.transpose.
Tensor transpose(Operand input, int64_t dim0, int64_t dim1);
/// The transpose of a matrix, [n, m] of [m, n], as a view; an alias of a tensor of fewer dims. Error(bad_dim) for more
/// than two. torch.t.
Tensor t(Operand input);
/// Sums over the dims that broadcasting to g's shape added, the transpose of expand; g itself if there are none. `g`
/// has a floating dtype and a shape that `shape` broadcasts to, as gradients do. torch.Tensor.sum_to_size.
Tensor sum_to(Tensor g, const Shape& shape, SourceLocation where);

}  // namespace retrograd
#pragma GCC visibility pop
