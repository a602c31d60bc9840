// Python's indexing and related functions, written in terms of views and of ops/index_ops.h.
//
// An index is a list of items: integers, slices, an ellipsis, new axes, and tensors (int64, or bool masks, which stand
// for the positions that they mark). Without tensors the result is a view. Tensors are broadcast together and index
// their dims jointly. Their dims in the result are where the first indexed dim was if the indexed dims are adjacent,
// else in front (NumPy's rule).
// One op is made for this: it converts several index tensors to one flat index, with range checks.
// Limits: masks and nonzero read data, so they run outside of recorded functions.
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <variant>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// (index tensors of one shape): the position in a row-major block of `sizes`; negative entries count from the end.
struct FlatIndex {
  struct Attrs {
    Shape sizes;
    void visit(AttrVisitor& v) { v.field("sizes", sizes); }
  };
  static constexpr std::string_view name = "flat_index", doc = "indices of several dims as one",
                                    no_derivative = "integers";
  static constexpr std::string_view operands = "i, j";
  static constexpr std::string_view example = "i64[4], i64[4] {sizes=[2,3]} : i64[4]";
  static constexpr int8_t arity = -1;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static constexpr auto batch = batch_leading;
};

using IndexingOps = OpList<FlatIndex>;

}  // namespace ops

namespace indexing {

/// start:stop:step; None leaves a bound out. step >= 1.
class Slice {
 public:
  Slice(std::optional<int64_t> start = {}, std::optional<int64_t> stop = {}, std::optional<int64_t> step = {})
      : start_(start), stop_(stop), step_(step.value_or(1)) {}
  /// 0 where it was left out.
  int64_t start() const { return start_.value_or(0); }
  /// The largest number where it was left out.
  int64_t stop() const { return stop_.value_or(std::numeric_limits<int64_t>::max()); }
  int64_t step() const { return step_; }
  bool has_stop() const { return stop_.has_value(); }

 private:
  std::optional<int64_t> start_, stop_;
  int64_t step_;
};
/// All dims that the other items leave: Ellipsis, or "...".
struct EllipsisIndexType {};
inline constexpr EllipsisIndexType Ellipsis;
/// An absent bound of a slice; as an item, a new dim of size 1.
inline constexpr std::nullopt_t None = std::nullopt;

/// One item of an index: an integer, Slice, Ellipsis or "...", None, or a tensor (int64 or int32 positions, or a bool
/// mask). true and false are masks without dims: a new dim of size 1 or 0. Error(bad_argument) for another string.
class TensorIndex {
 public:
  using Item = std::variant<int64_t, Slice, EllipsisIndexType, std::nullopt_t, Tensor>;
  template <std::integral T>
  requires(!std::same_as<T, bool>) TensorIndex(T i) : item_(static_cast<int64_t>(i)) {}
  template <std::same_as<bool> T>
  TensorIndex(T flag) : item_(mask(flag)) {}
  TensorIndex(Slice slice) : item_(slice) {}
  TensorIndex(EllipsisIndexType all) : item_(all) {}
  TensorIndex(const char* dots);
  TensorIndex(std::nullopt_t new_dim) : item_(new_dim) {}
  TensorIndex(Tensor index) : item_(std::move(index)) {}
  const Item& item() const { return item_; }

  bool is_none() const;
  bool is_ellipsis() const;
  bool is_integer() const;
  bool is_boolean() const;
  bool is_slice() const;
  bool is_tensor() const;
  // Error(bad_argument) for an item of another kind.
  int64_t integer() const;
  bool boolean() const;
  const indexing::Slice& slice() const;
  const Tensor& tensor() const;

 private:
  static Tensor mask(bool flag);
  template <class T>
  const T& get(const char* kind) const;
  Item item_;
};

}  // namespace indexing

/// input[index]. Errors: bad_argument (two ellipses), bad_dim (too many items), index_out_of_range, dtype_mismatch (a
/// float index), shape_mismatch (masks of another shape, indices that do not broadcast).
Tensor getitem(Operand input, const Indices& index);
/// self[index] = value, in place; the value (a tensor or a number) is broadcast and cast. With `accumulate` it is added.
const Tensor& setitem_(const Tensor& self, const Indices& index, Operand value, bool accumulate = false);
/// A copy of input with `values` written (or added) at the elements that the indices select, indices[i] in dim i; an
/// undefined tensor selects a whole dim.
Tensor index_put(Operand input, const Tensors& indices, const Tensor& values, bool accumulate = false);
/// Elements where `mask` is true, as a vector. Mask and input broadcast.
Tensor masked_select(Operand input, const Tensor& mask);
/// input with the elements where `mask` is true replaced, in order, by those of source.
Tensor masked_scatter(Operand input, const Tensor& mask, const Tensor& source);
/// Elements at flat positions; negative ones count from the end.
Tensor take(Operand input, const Tensor& index);
/// gather() with broadcasting; without a dim, of the flat tensor. Negative indices count from the end.
Tensor take_along_dim(Operand input, const Tensor& indices, std::optional<int64_t> dim = {});
/// Positions of the elements that are not zero, int64 [count, rank].
Tensor nonzero(Operand input);

}  // namespace retrograd
#pragma GCC visibility pop
