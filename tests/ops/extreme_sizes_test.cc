// Extreme numbers (tests/ops/extreme_sizes.h) in functions that make tensors and in functions that change their shape.
#include "tests/ops/extreme_sizes.h"

#include "ops/arithmetic.h"
#include "ops/embedding.h"
#include "ops/indexing.h"
#include "ops/random_ops.h"
#include "ops/rearrange.h"
#include "ops/reshaping.h"
#include "ops/sampling.h"
#include "ops/stacking.h"
#include "ops/view_scatter.h"

namespace retrograd {
namespace {

using namespace extreme;

TEST_CASE("dims, sections and offsets of joins, splits and replaced views") {
  const MemoryLimit limit;
  const Tensor x = leaf({3, 4}), v = leaf({3});
  const auto last = [](const Tensors& parts) { return parts.back(); };
  each_pair("tensor_split", [&](int64_t a, int64_t b) { return last(tensor_split(x, a, b)); });
  each_pair("tensor_split at indices", [&](int64_t a, int64_t b) {
    return last(tensor_split(x, IntArray{a, b}));
  });
  each("hsplit", [&](int64_t a) { return last(hsplit(x, a)); });
  each_pair("unflatten", [&](int64_t a, int64_t b) { return unflatten(x, 1, {a, b}); });
  each_pair("swapaxes", [&](int64_t a, int64_t b) { return swapaxes(x, a, b); });
  each_pair("rot90", [&](int64_t a, int64_t b) { return rot90(x, a, {b, 1}); });
  each_pair("diag_embed", [&](int64_t a, int64_t b) { return diag_embed(v, a, b); });
  each_pair("slice_scatter", [&](int64_t a, int64_t b) { return slice_scatter(x, x, 0, a, b); });
  each_pair("select_scatter", [&](int64_t a, int64_t b) { return select_scatter(x, v, a, b); });
  each_pair("diagonal_scatter", [&](int64_t a, int64_t b) { return diagonal_scatter(x, v, a, b); });
  each_pair("as_strided_scatter",
            [&](int64_t a, int64_t b) { return as_strided_scatter(x, v, {3}, {a}, b); });
  each("vander", [&](int64_t a) { return vander(v, a); });
}

TEST_CASE("sizes of new tensors") {
  const MemoryLimit limit;
  each_pair("full", [](int64_t a, int64_t b) { return full({a, b}, 1.5); });
  each_pair("empty of three dims", [](int64_t a, int64_t b) { return empty({2, a, b}, {kFloat64}); });
  each_pair("eye", [](int64_t a, int64_t b) { return eye(a, b); });
  each_pair("rand", [](int64_t a, int64_t b) { return rand({a, b}); });
  each_pair("normal", [](int64_t a, int64_t b) { return normal(0, 1, {a, b}, {kBFloat16}); });
  each_pair("randint", [](int64_t a, int64_t b) { return randint(a, b, {3}); });
  each("randint of one", [](int64_t a) { return randint(7, {a}); });
  each("randperm", [](int64_t a) { return randperm(a); });
  each("tensor", [](int64_t a) { return tensor({1, 2, 3}, {a, 1}); });
  each_pair("linspace", [](int64_t a, int64_t b) { return linspace(a, b, 3); });
  each("linspace's steps", [](int64_t a) { return linspace(0, 1, a); });
  each("logspace's steps", [](int64_t a) { return logspace(0, 1, a); });
  each_pair("arange", [](int64_t a, int64_t b) { return arange(a, b); });
  each_pair("arange, large steps", [](int64_t a, int64_t b) { return arange(a, b, power(61)); });
  each_pair("arange, large steps down", [](int64_t a, int64_t b) { return arange(a, b, kMin); });
  each_pair("arange's step", [](int64_t a, int64_t b) { return arange(0, a, b); });
  each_pair("arange of doubles", [](int64_t a, int64_t b) { return arange(0.5, a, b); });
  for (const int64_t offset : kNumbers) {
    each_pair("tril_indices", [&](int64_t a, int64_t b) { return tril_indices(a, b, offset); });
    each_pair("triu_indices", [&](int64_t a, int64_t b) { return triu_indices(a, b, offset); });
  }
  each("one_hot", [](int64_t a) { return one_hot(tensor({0, 1}, {kInt64}), a); });
  each("one_hot of a large index", [](int64_t a) { return one_hot(full({1}, a, {kInt64})); });
}

TEST_CASE("shapes, strides and places of views") {
  const MemoryLimit limit;
  const Tensor x = leaf({3, 4});
  const Tensor columns = transpose(x, 0, 1), few = x.narrow(0, 1, 1);
  for (const Tensor& t : {x, columns, few}) {
    each_pair("reshape", [&](int64_t a, int64_t b) { return reshape(t, {a, b}); });
    each_pair("reshape of three dims", [&](int64_t a, int64_t b) { return reshape(t, {a, b, -1}); });
    each_pair("view", [&](int64_t a, int64_t b) { return view(t, {a, b}); });
    each_pair("expand", [&](int64_t a, int64_t b) { return expand(t, {a, b, 3, 4}); });
    each_pair("expand and copy", [&](int64_t a, int64_t b) { return clone(expand(t, {a, b, -1, -1})); });
    each_pair("narrow", [&](int64_t a, int64_t b) { return narrow(t, 0, a, b); });
    each_pair("narrow's dim", [&](int64_t a, int64_t b) { return narrow(t, a, b, 1); });
    each_pair("select", [&](int64_t a, int64_t b) { return select(t, a, b); });
    each_pair("slice", [&](int64_t a, int64_t b) { return slice(t, 0, a, b); });
    each_pair("slice in steps", [&](int64_t a, int64_t b) { return slice(t, 0, a, kMax, b); });
    each_pair("slice of a dim", [&](int64_t a, int64_t b) { return slice(t, a, 0, b, 2); });
    each_pair("diagonal", [&](int64_t a, int64_t b) { return diagonal(t, a, 0, b); });
    each_pair("unfold", [&](int64_t a, int64_t b) { return unfold(t, 1, a, b); });
    each("unfold's dim", [&](int64_t a) { return unfold(t, a, 1, 1); });
    each_pair("as_strided's size and stride", [&](int64_t a, int64_t b) { return as_strided(t, {a}, {b}); });
    each_pair("as_strided's sizes", [&](int64_t a, int64_t b) { return as_strided(t, {a, b}, {0, 1}); });
    each_pair("as_strided's strides", [&](int64_t a, int64_t b) { return as_strided(t, {1, 2}, {a, b}); });
    each_pair("as_strided's stride and offset",
              [&](int64_t a, int64_t b) { return as_strided(t, {1}, {a}, b); });
    each_pair("as_strided of nothing", [&](int64_t a, int64_t b) { return as_strided(t, {0}, {a}, b); });
    each_pair("a stride that is not used", [&](int64_t a, int64_t b) {
      const Tensor y = as_strided(t, {1, 1}, {a, b});
      return diagonal(slice(y, 0, 0, 1, 2), 0, 0, 1) + reshape(transpose(y, 0, 1), {1}) +
             select(unfold(y, 0, 1, 3), 0, 0);
    });
    each_pair("flatten", [&](int64_t a, int64_t b) { return flatten(t, a, b); });
    each_pair("transpose", [&](int64_t a, int64_t b) { return transpose(t, a, b); });
    each_pair("movedim", [&](int64_t a, int64_t b) { return movedim(t, {a}, {b}); });
    each("squeeze", [&](int64_t a) { return squeeze(t, {a}); });
    each("unsqueeze", [&](int64_t a) { return unsqueeze(t, a); });
  }
}

TEST_CASE("repeats, shifts, amounts of padding, parts") {
  const MemoryLimit limit;
  const Tensor x = leaf({3, 4}), v = leaf({3}), none = leaf({0, 4});
  each_pair("repeat", [&](int64_t a, int64_t b) { return repeat(x, {a, b}); });
  each_pair("tile", [&](int64_t a, int64_t b) { return tile(x, {a, b, 1}); });
  each_pair("repeat of nothing", [&](int64_t a, int64_t b) { return repeat(none, {a, b}); });
  each_pair("repeat_interleave", [&](int64_t a, int64_t b) { return repeat_interleave(x, a, b); });
  each_pair("repeat_interleave by a tensor", [&](int64_t a, int64_t b) {
    return repeat_interleave(
        x, index_put(full({3}, a, {kInt64}), {tensor({1}, {kInt64})}, full({1}, b, {kInt64})), 0);
  });
  each_pair("roll", [&](int64_t a, int64_t b) { return roll(x, {a, b}, {0, 1}); });
  each_pair("roll of a dim", [&](int64_t a, int64_t b) { return roll(x, {a}, {b}); });
  each("roll of all", [&](int64_t a) { return roll(x, {a}); });
  each("flip", [&](int64_t a) { return flip(x, {a}); });
  for (const char* mode : {"constant", "reflect", "replicate", "circular"}) {
    each_pair(std::string("pad, ") + mode, [&](int64_t a, int64_t b) { return pad(x, {a, b}, mode); });
    each_pair(std::string("pad of nothing, ") + mode, [&](int64_t a, int64_t b) {
      return pad(none, {a, b, a, b}, mode);
    });
  }
  each("tril", [&](int64_t a) { return tril(x, a); });
  each("triu", [&](int64_t a) { return triu(x, a); });
  each("diag of a vector", [&](int64_t a) { return diag(v, a); });
  each("diag of a matrix", [&](int64_t a) { return diag(x, a); });
  for (const int64_t a : kNumbers)
    for (const Tensor& t : {x, none}) {
      check("split " + std::to_string(a), [&] { return split(t, a); });
      check("split's sections " + std::to_string(a), [&] { return split(t, IntArray{a, 3 - a / 2, a}); });
      check("chunk " + std::to_string(a), [&] { return chunk(t, a); });
    }
}

TEST_CASE("what large numbers give") {
  const Tensor x = tensor({1.0, 2, 3, 4, 5, 6}, {3, 2});
  using Numbers = std::vector<double>;
  CHECK(slice(x, 0, 1, kMax).to_vector() == Numbers{3, 4, 5, 6});
  CHECK(slice(x, 0, -kMax, kMax, kMax).to_vector() == Numbers{1, 2});
  CHECK(slice(x, 0, kMax, kMax).sizes() == IntArray{0, 2});
  CHECK(split(x, kMax).size() == 1);
  CHECK(chunk(x, kMax).size() == 3);
  CHECK(diagonal(x, kMax).sizes() == IntArray{0});
  CHECK(tril(x, kMax).to_vector() == x.to_vector());
  CHECK(tril(x, kMin).to_vector() == Numbers(6, 0.0));
  CHECK(triu(x, kMin).to_vector() == x.to_vector());
  CHECK(triu_indices(power(40), 3).to_vector() == Numbers{0, 0, 0, 1, 1, 2, 0, 1, 2, 1, 2, 2});
  CHECK(tril_indices(2, power(40), -1).to_vector() == Numbers{1, 0});
  CHECK(tril_indices(3, 2, kMax).sizes() == IntArray{2, 6});
  CHECK_THROWS_AS(arange(kMin, kMax, power(62)), Error);
  CHECK(roll(tensor({1.0, 2, 3}), {kMin}).to_vector() == Numbers{3, 1, 2});
  CHECK(as_strided(x, {1}, {power(40)}, 4).to_vector() == Numbers{5});
  CHECK(expand(tensor({7.0}), {power(40)}).numel() == power(40));
}

}  // namespace
}  // namespace retrograd
