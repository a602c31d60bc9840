// vmap: a function of one sample as a function of a batch, with the meaning of torch.vmap.
//
//   const auto f = [](const Tensor& x, const Tensor& w) { return rg::dot(x, w); };
//   rg::vmap(f)(xs, ws);                        // xs [B, n], ws [B, n] -> [B]
//   rg::vmap(f, {0, std::nullopt})(xs, w);      // one w for all samples
//   rg::vmap(f, {0, 1}, 0, "different")(xs, w)  // dim 1 of w is the batch; each sample has random numbers of its own
//
// The function is called once, on tensors that have the type of one sample. Each operation is one operation on all
// samples (engine/batching.h); of an op that has no such rule, one for each sample, which is reported once. vmap
// composes with itself, with gradients on either side (vmap(func::grad(f)), or a backward from its result), forward
// mode, hooks and compile(). Arguments and results are tensors, or structures of tensors, as compile() takes them
// (tracer/function/parts.h). What PyTorch refuses is refused: reading values, branches that depend on them, writes of
// a batched value into a tensor that is not batched, random numbers unless `randomness` allows them. docs/vmap.md has
// more.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/called_like.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

enum class Randomness : uint8_t;

/// Batch dims: one for all, or one for each argument (of vmap's in_dims) or each tensor of the result (of out_dims).
/// Negative ones count from the back; nullopt: not batched.
class BatchDims {
 public:
  BatchDims(int64_t all) : dims_{all}, is_one_(true) {}
  BatchDims(int all) : BatchDims(int64_t{all}) {}
  BatchDims(std::nullopt_t) : dims_{std::nullopt}, is_one_(true) {}
  BatchDims(std::initializer_list<std::optional<int64_t>> each) : dims_(each) {}
  BatchDims(std::vector<std::optional<int64_t>> each) : dims_(std::move(each)) {}

  bool is_one() const { return is_one_; }
  size_t size() const { return dims_.size(); }
  std::optional<int64_t> of(size_t i) const { return is_one_ ? dims_[0] : dims_[i]; }

 private:
  std::vector<std::optional<int64_t>> dims_;
  bool is_one_ = false;
};

namespace detail {

/// How vmap maps.
struct Mapping {
  BatchDims in_dims, out_dims;
  Randomness randomness;
  std::optional<int64_t> chunk_size;
  SourceLocation where;
};

/// "error", "same" or "different"; Error(bad_argument) for another text.
Randomness randomness_of(std::string_view name, SourceLocation where);

/// The mapped function on `arguments`; `tensors` says how many tensors each argument has.
CallOutcome run_mapped(const FunctionBody& body, const Tensors& arguments, const std::vector<size_t>& tensors,
                       const Mapping& mapping, SourceLocation where);

struct CountTensors {
  size_t count = 0;
  void tensor(const Tensor&) { ++count; }
  void structure(const char*, const auto&) {}
  void fixed(const char*, const auto&) {}
};

/// Calls `function` on a tuple of arguments, mapped.
template <class F, class Arguments>
auto call_mapped(F& function, Arguments arguments, const Mapping& mapping, SourceLocation where) {
  std::vector<size_t> tensors;
  const auto count = [&](auto& argument) {
    CountTensors counted;
    visit_parts(argument, counted);
    tensors.push_back(counted.count);
  };
  std::apply([&](auto&... a) { (count(a), ...); }, arguments);
  return call_by_parts(function, std::move(arguments), [&](const FunctionBody& body, const CallParts& parts) {
    return run_mapped(body, parts.tensors, tensors, mapping, where);
  });
}

}  // namespace detail

/// What vmap returns: called like the function, on batches. Errors are PyTorch's: shape_mismatch for batches of
/// different sizes; bad_argument without a batched tensor; bad_dim.
template <class F>
class Mapped : public detail::CalledLike<Mapped<F>, F> {
 public:
  Mapped(F function, detail::Mapping mapping)
      : function_(std::move(function)), mapping_(std::move(mapping)) {}

  /// For CalledLike.
  template <class Arguments>
  auto call(Arguments arguments, SourceLocation where) const {
    return detail::call_mapped(function_, std::move(arguments), mapping_, where);
  }
  SourceLocation made_at() const { return mapping_.where; }

 private:
  F function_;
  detail::Mapping mapping_;
};

/// `function` over the batch dim of its arguments. in_dims: a dim, or one for each argument, which counts for all
/// tensors of a structure. out_dims: where the batch dim is in each tensor of the result; a result that depends on no
/// batched value is repeated. randomness: "error" refuses random numbers inside, "same" gives all samples the same
/// ones, "different" each its own. chunk_size: at most so many samples at once. torch.vmap.
template <class F>
Mapped<F> vmap(F function, BatchDims in_dims = 0, BatchDims out_dims = 0,
               std::string_view randomness = "error", std::optional<int64_t> chunk_size = {},
               SourceLocation where = SourceLocation::current()) {
  return {
      std::move(function),
      {std::move(in_dims), std::move(out_dims), detail::randomness_of(randomness, where), chunk_size, where}};
}

}  // namespace retrograd
#pragma GCC visibility pop
