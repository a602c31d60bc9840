// See ops/stacking.h.
#include "ops/stacking.h"

#include <type_traits>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/join.h"
#include "ops/rearrange.h"
#include "ops/reshaping.h"

namespace retrograd::inline v0 {
namespace {

void check_any(const Tensors& tensors, std::string_view op, SourceLocation where) {
  if (tensors.empty()) fail(Category::bad_argument, op, "there are no tensors", where);
}

void check_one_dtype(const Tensors& tensors, std::string_view op, SourceLocation where) {
  for (const Tensor& x : tensors)
    if (x.dtype() != tensors[0].dtype())
      fail(Category::dtype_mismatch, op, fmt::format("{} and {}", describe(tensors[0]), describe(x)), where);
}

// Vectors, and numbers if they are allowed.
void check_vectors(const Tensors& tensors, bool numbers, std::string_view op, SourceLocation where) {
  for (const Tensor& x : tensors)
    if (x.dim() > 1 || (x.dim() == 0 && !numbers))
      fail(Category::bad_dim, op, fmt::format("{} is not a vector", describe(x)), where);
}

}  // namespace

// ---- joining --------------------------------------------------------------------------------------------------------

Tensor hstack(const Tensors& tensors, SourceLocation where) {
  const NamedCall call("hstack", where);
  check_any(tensors, "hstack", where);
  const Tensors parts = atleast_1d(tensors, where);
  return cat(parts, parts[0].dim() == 1 ? 0 : 1, where);
}

Tensor vstack(const Tensors& tensors, SourceLocation where) {
  const NamedCall call("vstack", where);
  check_any(tensors, "vstack", where);
  return cat(atleast_2d(tensors, where), 0, where);
}

Tensor dstack(const Tensors& tensors, SourceLocation where) {
  const NamedCall call("dstack", where);
  check_any(tensors, "dstack", where);
  return cat(atleast_3d(tensors, where), 2, where);
}

Tensor column_stack(const Tensors& tensors, SourceLocation where) {
  const NamedCall call("column_stack", where);
  check_any(tensors, "column_stack", where);
  Tensors parts;
  for (const Tensor& x : tensors)
    parts.push_back(x.dim() > 1 ? x : reshape_to(Operand(x, where), {x.impl().numel(), 1}));
  return cat(parts, 1, where);
}

// Each matrix is a row of blocks: itself between zeros.
Tensor block_diag(const Tensors& tensors, SourceLocation where) {
  const NamedCall call("block_diag", where);
  if (tensors.empty()) return zeros({1, 0}, {}, where);
  Tensors blocks;
  Dim columns = 0, before = 0;
  for (const Tensor& x : tensors) {
    if (x.dim() > 2)
      fail(Category::bad_dim, "block_diag", fmt::format("{} is not a matrix", describe(x)), where);
    blocks.push_back(atleast_2d(Operand(x, where)));
    columns += shape_of(blocks.back())[1];
  }
  for (Tensor& block : blocks) {
    const Dim rows = shape_of(block)[0], width = shape_of(block)[1];
    const auto zeros_of_width = [&](Dim n) {
      return zeros_of({block.dtype(), block.device(), {rows, n}}, where);
    };
    const Tensors row = {zeros_of_width(before), block, zeros_of_width(columns - before - width)};
    block = cat(row, 1, where);
    before += width;
  }
  return cat(blocks, 0, where);
}

Tensor cartesian_prod(const Tensors& tensors, SourceLocation where) {
  const NamedCall call("cartesian_prod", where);
  check_any(tensors, "cartesian_prod", where);
  check_vectors(tensors, false, "cartesian_prod", where);
  if (tensors.size() == 1) return tensors[0];
  check_one_dtype(tensors, "cartesian_prod", where);
  const Tensor all = stack(meshgrid(tensors, "ij", where), -1, where);
  return flatten(Operand(all, where), 0, -2);
}

Tensors meshgrid(const Tensors& tensors, std::string_view indexing, SourceLocation where) {
  const NamedCall call("meshgrid", where);
  check_any(tensors, "meshgrid", where);
  check_vectors(tensors, true, "meshgrid", where);
  check_one_dtype(tensors, "meshgrid", where);
  if (indexing != "ij" && indexing != "xy")
    fail(Category::bad_argument, "meshgrid", fmt::format("the indexing is '{}', not ij or xy", indexing),
         where);
  const int rank = static_cast<int>(tensors.size());
  const auto place = [&](int i) { return indexing == "xy" && rank > 1 && i < 2 ? 1 - i : i; };
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(tensors[static_cast<size_t>(place(d))].impl().numel());
  Tensors grids;
  for (int i = 0; i < rank; ++i) {
    const Tensor& x = tensors[static_cast<size_t>(i)];
    Shape line;
    for (int d = 0; d < rank; ++d) line.push_back(d == place(i) ? x.impl().numel() : Dim(1));
    grids.push_back(expand_to(Operand(reshape_to(Operand(x, where), line), where), shape));
  }
  return grids;
}

// ---- splitting ------------------------------------------------------------------------------------------------------

namespace {

void check_has_dim(Operand x, int dim, std::string_view op) {
  if (shape_of(x).rank() <= dim)
    fail(Category::bad_dim, op, fmt::format("{} has no dim {}", describe(x.tensor()), dim), x.where());
}

void check_sections(int64_t sections, std::string_view op, SourceLocation where) {
  constexpr int64_t kMost = int64_t{1} << 26;  // views; refused before memory runs out
  if (sections < 1 || sections > kMost)
    fail(Category::bad_argument, op, fmt::format("{} sections", sections), where);
}

// hsplit and the like: `parts` are a number of equal sections or indices.
template <class Parts>
Tensors split_dim(Operand x, const Parts& parts, int dim, int least_rank, std::string_view op) {
  const NamedCall call(op, x.where());
  check_has_dim(x, least_rank - 1, op);
  if constexpr (std::is_same_v<Parts, int64_t>) {
    check_sections(parts, op, x.where());
    if (!(shape_of(x)[dim] % parts == 0))
      fail(Category::shape_mismatch, op,
           fmt::format("{} sections do not divide dim {} of {}", parts, dim, describe(x.tensor())),
           x.where());
  }
  return tensor_split(x, parts, dim);
}

int horizontal(Operand x) { return shape_of(x).rank() > 1 ? 1 : 0; }

}  // namespace

Tensors tensor_split(Operand x, int64_t sections, int64_t dim) {
  const NamedCall call("tensor_split", x.where());
  check_has_dim(x, 0, "tensor_split");
  const int d = wrap_dim(dim, shape_of(x).rank(), "tensor_split");
  check_sections(sections, "tensor_split", x.where());
  const Dim size = shape_of(x)[d] / sections, larger = shape_of(x)[d] % sections;
  Tensors parts;
  Dim at = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const Dim length = larger > i ? size + 1 : size;
    parts.push_back(narrow(x, d, at, length));
    at += length;
  }
  return parts;
}

Tensors tensor_split(Operand x, const IntArray& indices, int64_t dim) {
  const NamedCall call("tensor_split", x.where());
  check_has_dim(x, 0, "tensor_split");
  Tensors parts;
  int64_t from = 0;
  for (const int64_t to : indices) {
    parts.push_back(slice(x, dim, from, to));
    from = to;
  }
  parts.push_back(slice(x, dim, from));
  return parts;
}

Tensors tensor_split(Operand x, const Tensor& indices_or_sections, int64_t dim) {
  const NamedCall call("tensor_split", x.where());
  const Tensor& given = indices_or_sections;
  if (given.dtype() != kInt64 && given.dtype() != kInt32)
    fail(Category::dtype_mismatch, "tensor_split", fmt::format("indices are {}", describe(given)), x.where());
  if (given.dim() > 1)
    fail(Category::bad_dim, "tensor_split", fmt::format("indices are {}", describe(given)), x.where());
  if (given.device() != kCPU)
    fail(Category::bad_argument, "tensor_split", "indices are not on the CPU", x.where());
  const IntArray values = given.to_vector<int64_t>(x.where());
  return given.dim() == 0 ? tensor_split(x, values[0], dim) : tensor_split(x, values, dim);
}

Tensors hsplit(Operand x, int64_t sections) { return split_dim(x, sections, horizontal(x), 1, "hsplit"); }
Tensors hsplit(Operand x, const IntArray& indices) {
  return split_dim(x, indices, horizontal(x), 1, "hsplit");
}

Tensors vsplit(Operand x, int64_t sections) { return split_dim(x, sections, 0, 2, "vsplit"); }
Tensors vsplit(Operand x, const IntArray& indices) { return split_dim(x, indices, 0, 2, "vsplit"); }

Tensors dsplit(Operand x, int64_t sections) { return split_dim(x, sections, 2, 3, "dsplit"); }
Tensors dsplit(Operand x, const IntArray& indices) { return split_dim(x, indices, 2, 3, "dsplit"); }

}  // namespace retrograd
