// Copies with elements in another order or number: flip, tril, triu, pad, and functions made of these, of views and of
// cat.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct Rearrangement {
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);  // the operand's type
};

/// Dims in reverse order.
struct Flip : Rearrangement {
  struct Attrs {
    IntList dims;
    void visit(AttrVisitor& v) { v.field("dims", dims); }
  };
  static constexpr std::string_view name = "flip", doc = "dims in reverse order";
  static constexpr std::string_view example = "f32[2,3] {dims=[1]} : f32[2,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  static constexpr auto batch = batch_dims;
};

struct TriangleAttrs {
  int64_t diagonal;
  void visit(AttrVisitor& v) { v.field("diagonal", diagonal); }
};

struct Triangle : Rearrangement {
  using Attrs = TriangleAttrs;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static constexpr auto batch = batch_leading;
};

/// Zeros above (tril) or below (triu) a diagonal of the last two dims.
struct Tril : Triangle {
  static constexpr std::string_view name = "tril", doc = "zeros above a diagonal";
  static constexpr std::string_view example = "f32[2,3] {diagonal=0} : f32[2,3]";
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

struct Triu : Triangle {
  static constexpr std::string_view name = "triu", doc = "zeros below a diagonal";
  static constexpr std::string_view example = "f32[2,3] {diagonal=0} : f32[2,3]";
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

/// The number of elements of each dim that are added at both ends, or cut where negative, and the values of the
/// additions.
struct PadAttrs {
  enum Mode : int64_t { reflect, replicate, circular };
  IntList before, after;
  int64_t mode;
  void visit(AttrVisitor& v) {
    v.field("before", before);
    v.field("after", after);
    v.field("mode", mode);
  }
};

/// The operand extended at the ends of its dims.
struct Pad : Rearrangement {
  using Attrs = PadAttrs;
  static constexpr std::string_view name = "pad",
                                    doc = "dims continued at both ends by the entries near them";
  static constexpr std::string_view example = "f32[2,3] {before=[0,1], after=[0,2], mode=1} : f32[2,6]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  static void batch(BatchContext& c);
};

/// The transpose: each entry of g added to the entry that it copies, of a tensor of `size`.
struct PadBackward : Rearrangement {
  struct Attrs : PadAttrs {
    Shape size;
    void visit(AttrVisitor& v) {
      PadAttrs::visit(v);
      v.field("size", size);
    }
  };
  static constexpr std::string_view name = "pad_backward", doc = "entries added to those that they continue";
  static constexpr std::string_view operands = "g";
  static constexpr std::string_view example =
      "f32[2,6] {before=[0,1], after=[0,2], mode=1, size=[2,3]} : f32[2,3]";
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
  static void batch(BatchContext& c);
};

using RearrangeOps = OpList<Flip, Tril, Triu, Pad, PadBackward>;

}  // namespace ops

/// Entries in reverse order along `dims`.
Tensor flip(Operand input, const IntArray& dims);
template <std::integral T>
Tensor flip(Operand input, T dim) {
  return flip(input, IntArray{static_cast<int64_t>(dim)});
}
/// Entries moved by `shifts` along `dims`, wrapping around at the end; without dims the tensor counts as flat.
Tensor roll(Operand input, const IntArray& shifts, const IntArray& dims = {});
template <std::integral T>
Tensor roll(Operand input, T shift, std::optional<int64_t> dim = {}) {
  return roll(input, IntArray{static_cast<int64_t>(shift)}, dim ? IntArray{*dim} : IntArray());
}
/// The tensor `repeats[i]` times along dim i; more repeats than dims add dims in front. Always a copy.
Tensor repeat(Operand input, const IntArray& repeats);
/// repeat(), where missing leading repeats are 1.
Tensor tile(Operand input, const IntArray& dims);
/// Each entry `repeats` times in a row along `dim`; without one the tensor counts as flat.
Tensor repeat_interleave(Operand input, Dim repeats, std::optional<int64_t> dim = {});
/// The same with a number for each entry (int64 or int32, one-dim). Reads the numbers.
Tensor repeat_interleave(Operand input, const Tensor& repeats, std::optional<int64_t> dim = {});
/// Matrices (last two dims) with zeros above / below the diagonal.
Tensor tril(Operand input, int64_t diagonal = 0);
Tensor triu(Operand input, int64_t diagonal = 0);
/// A vector as a diagonal matrix, or a copy of a matrix's diagonal.
Tensor diag(Operand input, int64_t diagonal = 0);
/// `pad` = (before, after) of the last dim, of the last but one, ...; negative amounts cut. mode: constant
/// (with `value`, default 0), reflect, replicate, circular.
Tensor pad(Operand input, const IntArray& pad, std::string_view mode = "constant",
           std::optional<Scalar> value = {});

}  // namespace retrograd
#pragma GCC visibility pop
