// See autograd/vmap.h; start reading at run_mapped.
#include "autograd/vmap.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/batching.h"
#include "ops/batching.h"
#include "ops/join.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0::detail {
namespace {

using Dims = std::vector<std::optional<int64_t>>;  // one for each tensor

/// The batch dim of each argument tensor, counted from the front.
Dims dims_of(const Tensors& arguments, const std::vector<size_t>& tensors, const BatchDims& in_dims,
             SourceLocation where) {
  if (arguments.empty())
    fail(Category::bad_argument, "vmap",
         "vmap(f)(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
         "function with no inputs. The latter is unsupported.",
         where);
  if (!in_dims.is_one() && in_dims.size() != tensors.size())
    fail(Category::bad_argument, "vmap",
         fmt::format("vmap(f, in_dims, ...)(<inputs>): in_dims is not compatible with the structure of "
                     "inputs. in_dims has {} elements but there are {} arguments",
                     in_dims.size(), tensors.size()),
         where);
  Dims dims;
  for (size_t a = 0; a < tensors.size(); ++a)
    for (size_t i = 0; i < tensors[a]; ++i) {
      const Tensor& x = arguments[dims.size()];
      std::optional<int64_t> dim = in_dims.of(a);
      if (!x.defined()) dim.reset();
      if (dim) {
        const int64_t rank = x.dim();
        if (*dim < -rank || *dim >= rank)
          fail(Category::bad_dim, "vmap",
               fmt::format("vmap(f, in_dims, ...)(<inputs>): Got in_dim={0} for some input, but that input "
                           "is a Tensor "
                           "of dimensionality {1} so expected in_dim to satisfy -{1} <= in_dim < {1}.",
                           *dim, rank),
               where);
        if (*dim < 0) *dim += rank;
      }
      dims.push_back(dim);
    }
  return dims;
}

/// The size that all batches have.
Dim batch_size(const Tensors& arguments, const Dims& dims, SourceLocation where) {
  std::optional<Dim> size;
  bool differ = false;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i]) continue;
    const Dim found = arguments[i].impl().shape()[static_cast<int>(*dims[i])];
    sizes.push_back(found.hint());
    if (size && !(*size == found)) differ = true;
    if (!size) size = found;
  }
  if (!size) fail(Category::bad_argument, "vmap", "vmap: Expected at least one Tensor to vmap over", where);
  if (differ)
    fail(Category::shape_mismatch, "vmap",
         fmt::format("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                     "[{}] for the mapped dimension",
                     fmt::join(sizes, ", ")),
         where);
  return *size;
}

/// What the function gave: all samples of a result that is batched, else the result.
struct MappedResult {
  Tensor value;
  bool is_batched = false;
};

struct MappedOutcome {
  std::vector<MappedResult> results;
  std::shared_ptr<const void> form;
};

MappedOutcome call_on_batch(const FunctionBody& body, Tensors given, const Dims& dims, Dim size,
                            Randomness randomness) {
  Batching batching(size, randomness);
  for (size_t i = 0; i < given.size(); ++i)
    if (dims[i]) given[i] = batching.one_of(given[i]);
  CallOutcome outcome = body(given);
  MappedOutcome mapped{{}, std::move(outcome.form)};
  for (Tensor& r : outcome.tensors) {
    const Tensor all = r.defined() ? batching.all_of(r.impl()) : Tensor();
    mapped.results.push_back(all.defined() ? MappedResult{all, true} : MappedResult{std::move(r), false});
  }
  return mapped;
}

Tensor placed(const MappedResult& result, std::optional<int64_t> dim, Dim size, SourceLocation where) {
  if (!result.value.defined()) return {};
  if (!dim) {
    if (result.is_batched)
      fail(Category::bad_argument, "vmap",
           "vmap(f, in_dims, out_dims): `f` can not return a BatchedTensor when out_dim is None", where);
    return result.value;
  }
  Tensor all = result.value;
  if (!result.is_batched) {
    Shape shape = all.impl().shape();
    shape.insert(0, size);
    all = expand_to(Operand(all, where), shape);
  }
  const int rank = all.impl().rank();
  if (*dim < -rank || *dim >= rank)
    fail(Category::bad_dim, "vmap",
         fmt::format("out_dim {} is not one of the {} dims of a result with its batch dim", *dim, rank),
         where);
  const int to = static_cast<int>(*dim < 0 ? *dim + rank : *dim);
  return to ? ops::move_dim(all, 0, to, where) : all;
}

/// The results of some samples, with the batch dim in its place.
CallOutcome run_samples(const FunctionBody& body, const Tensors& arguments, const Dims& dims, Dim size,
                        const Mapping& mapping, SourceLocation where) {
  Tensors given = arguments;
  for (size_t i = 0; i < given.size(); ++i)
    if (dims[i] && *dims[i]) given[i] = ops::move_dim(given[i], static_cast<int>(*dims[i]), 0, where);
  MappedOutcome mapped = call_on_batch(body, std::move(given), dims, size, mapping.randomness);
  const BatchDims& out_dims = mapping.out_dims;
  if (!out_dims.is_one() && out_dims.size() != mapped.results.size())
    fail(Category::bad_argument, "vmap",
         fmt::format("vmap(f, ..., out_dims): out_dims is not compatible with the structure of outputs. "
                     "out_dims has {} elements but the result has {} tensors",
                     out_dims.size(), mapped.results.size()),
         where);
  CallOutcome outcome{{}, std::move(mapped.form)};
  for (size_t i = 0; i < mapped.results.size(); ++i)
    outcome.tensors.push_back(placed(mapped.results[i], out_dims.of(i), size, where));
  return outcome;
}

}  // namespace

Randomness randomness_of(std::string_view name, SourceLocation where) {
  if (name == "error") return Randomness::error;
  if (name == "same") return Randomness::same;
  if (name == "different") return Randomness::different;
  fail(Category::bad_argument, "vmap",
       fmt::format("Only allowed values for randomness are 'error', 'different', or 'same'. Got {}", name),
       where);
}

CallOutcome run_mapped(const FunctionBody& body, const Tensors& arguments, const std::vector<size_t>& tensors,
                       const Mapping& mapping, SourceLocation where) {
  const Dims dims = dims_of(arguments, tensors, mapping.in_dims, where);
  const Dim size = batch_size(arguments, dims, where);
  if (!mapping.chunk_size) return run_samples(body, arguments, dims, size, mapping, where);
  const int64_t samples = size.value(), chunk = *mapping.chunk_size;
  if (chunk < 1)
    fail(Category::bad_argument, "vmap",
         fmt::format("vmap: chunk_size should be None or greater than 0. (got {})", chunk), where);
  std::vector<Tensors> parts;  // of each result
  CallOutcome outcome;
  for (int64_t begin = 0; begin < std::max<int64_t>(samples, 1); begin += chunk) {
    const int64_t length = std::min(chunk, samples - begin);
    Tensors given = arguments;
    for (size_t i = 0; i < given.size(); ++i)
      if (dims[i]) given[i] = narrow(Operand(given[i], where), *dims[i], begin, length);
    outcome = run_samples(body, given, dims, length, mapping, where);
    parts.resize(outcome.tensors.size());
    for (size_t i = 0; i < parts.size(); ++i) parts[i].push_back(outcome.tensors[i]);
  }
  for (size_t i = 0; i < parts.size(); ++i)
    if (const std::optional<int64_t> dim = mapping.out_dims.of(i); dim && parts[i][0].defined())
      outcome.tensors[i] = cat(parts[i], *dim, where);
  return outcome;
}

}  // namespace retrograd::detail
