// The batching rules that serve many ops, and the loop that serves all others. See ops/batch_rules.h.
#include "ops/batch_rules.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "engine/each_field.h"
#include "engine/never_destroyed.h"
#include "ops/batching.h"
#include "ops/creation.h"
#include "ops/join.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0::ops {

Tensor align(const Tensor& x, int rank, SourceLocation where) {
  Shape shape = x.impl().shape();
  while (shape.rank() < rank) shape.insert(1, 1);
  return shape.rank() == x.impl().rank() ? x : reshape_to(Operand(x, where), shape);
}

Tensor fold(const Tensor& x, SourceLocation where) {
  Shape shape = x.impl().shape();
  shape[1] = shape[0] * shape[1];
  shape.erase(0);
  return reshape_to(Operand(x, where), shape);
}

Tensor unfold_first(const Tensor& x, Dim batch, Dim n, SourceLocation where) {
  Shape shape = x.impl().shape();
  shape[0] = n;
  shape.insert(0, batch);
  return reshape_to(Operand(x, where), shape);
}

Tensor fold_second(const Tensor& x, SourceLocation where) {
  const Tensor turned = move_dim(x, 0, 1, where);
  Shape shape = turned.impl().shape();
  shape[2] = shape[1] * shape[2];
  shape.erase(1);
  return reshape_to(Operand(turned, where), shape);
}

Tensor unfold_second(const Tensor& x, Dim batch, Dim n, SourceLocation where) {
  Shape shape = x.impl().shape();
  shape[1] = n;
  shape.insert(1, batch);
  return move_dim(reshape_to(Operand(x, where), shape), 1, 0, where);
}

Tensor move_dim(const Tensor& x, int from, int to, SourceLocation where) {
  IntArray dims(static_cast<size_t>(x.impl().rank()));
  std::iota(dims.begin(), dims.end(), 0);
  dims.erase(dims.begin() + from);
  dims.insert(dims.begin() + to, from);
  return permute(Operand(x, where), dims);
}

namespace {

/// The attributes of a call, to be changed.
class AttrCopy {
 public:
  explicit AttrCopy(const Call& call) : op_(*call.op), words_((op_.attrs_size + 7) / 8) {
    if (op_.attrs_size) std::memcpy(words_.data(), call.attrs, op_.attrs_size);
  }
  template <class... F>
  void change(F... f) {
    ir::for_each_field(op_, words_.data(), ir::Fields{f...});
  }
  void* get() { return words_.data(); }

 private:
  const OpInfo& op_;
  std::vector<uint64_t> words_;
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

struct LoopedOps {
  std::mutex mutex;
  std::set<std::string> names;
};

void note_loop(const OpInfo& op) {
  LoopedOps& looped = detail::never_destroyed<LoopedOps>();
  const std::lock_guard lock(looped.mutex);
  if (!looped.names.emplace(op.name).second) return;
  std::fputs(
      fmt::format(
          "[retrograd] vmap: there is a performance drop because {} has no batching rule: it is called "
          "once for each sample\n",
          op.name)
          .c_str(),
      stderr);
}

// One call for each sample. `differs`: each is a draw of its own.
void loop(BatchContext& c, bool differs) {
  const int64_t samples = c.size().value();
  const size_t outputs = static_cast<size_t>(c.call().outputs);
  std::vector<Tensors> results(outputs);
  const DrawPlace all = differs ? draw_place_of(c.call()) : DrawPlace();
  for (int64_t k = 0; k < samples; ++k) {
    Tensors operands;
    for (int i = 0; i < c.operands(); ++i)
      operands.push_back(c.is_batched(i) ? select(Operand(c.value(i), c.where()), 0, k) : c.value(i));
    AttrCopy attrs(c.call());
    if (differs) {
      const DrawPlace place = c.draw_of_sample(all, k);
      attrs.change([&place](std::string_view name, Scalar& value) {
        if (name == "offset") value = place.offset;
      });
    }
    const Tensors given = c.run(operands, attrs.get());
    for (size_t i = 0; i < outputs; ++i) results[i].push_back(given[i]);
  }
  for (size_t i = 0; i < outputs; ++i) {
    const TensorType& type = c.out_type(static_cast<int>(i));
    c.give(static_cast<int>(i),
           samples ? stack(results[i], 0, c.where())
                   : zeros_of({type.dtype, type.device, c.with_batch(type.shape)}, c.where()));
  }
}

}  // namespace

std::vector<std::string> looped_ops() {
  LoopedOps& looped = detail::never_destroyed<LoopedOps>();
  const std::lock_guard lock(looped.mutex);
  return {looped.names.begin(), looped.names.end()};
}

void batch_by_loop(BatchContext& c) {
  note_loop(*c.call().op);
  loop(c, false);
}

void batch_elementwise(BatchContext& c) {
  const int rank = c.out_type().shape.rank() + 1;
  Tensors operands;
  for (int i = 0; i < c.operands(); ++i)
    operands.push_back(c.is_batched(i) ? align(c.value(i), rank, c.where()) : c.value(i));
  c.give(c.run(operands));
}

void batch_leading(BatchContext& c) { c.give(c.run(all_operands(c))); }

// An operand without dims counts as a vector of one element, where the op names a dim of it.
void batch_dims(BatchContext& c) {
  const bool is_lifted = c.rank(0) == 0 && c.out_type().shape.rank() == 0;
  Tensors operands = all_operands(c);
  for (size_t i = 0; is_lifted && i < operands.size(); ++i)
    if (operands[i].defined()) operands[i] = reshape_to(Operand(operands[i], c.where()), {c.size(), 1});
  AttrCopy attrs(c.call());
  attrs.change(
      [](std::string_view name, int64_t& dim) {
        if (is_one_of(name, {"dim", "dim1", "dim2", "dimension"})) ++dim;
      },
      [is_lifted](std::string_view name, IntList& dims) {
        if (!is_one_of(name, {"dim", "dims", "affine_dim"})) return;
        for (int64_t& d : std::span(dims.values, static_cast<size_t>(dims.count))) ++d;
        if (is_lifted && dims.empty()) dims.push_back(1);
      },
      [&c](std::string_view name, Shape& size) {
        if (is_one_of(name, {"size", "input_size"})) size.insert(0, c.size());
      });
  Tensors results = c.run(operands, attrs.get());
  for (size_t i = 0; is_lifted && i < results.size(); ++i)
    results[i] = reshape_to(Operand(results[i], c.where()), {c.size()});
  c.give(results);
}

void batch_folded(BatchContext& c) {
  Tensors operands = all_operands(c);
  for (Tensor& x : operands)
    if (x.defined()) x = fold(x, c.where());
  const Tensors results = c.run(operands);
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape& sample = c.out_type(static_cast<int>(i)).shape;
    c.give(static_cast<int>(i), unfold_first(results[i], c.size(), sample[0], c.where()));
  }
}

// The same position in the stream gives the same numbers to each sample. Where they differ, one draw of all samples
// gives them; an op that draws no element by itself has a position for each sample.
void batch_draw(BatchContext& c) {
  const std::string_view op = c.call().op->name;
  if (!c.draws_differ()) return batch_by_loop(c);
  if (op == "randperm" || (op == "multinomial" && c.rank(0) != 1)) {
    note_loop(*c.call().op);
    return loop(c, true);
  }
  AttrCopy attrs(c.call());
  if (c.operands() == 0)
    attrs.change([&c](std::string_view name, Shape& size) {
      if (name == "size") size.insert(0, c.size());
    });
  Tensors operands;
  for (int i = 0; i < c.operands(); ++i)
    operands.push_back(c.has_operand(i) && op != "multinomial"
                           ? align(c.all(i), c.out_type().shape.rank() + 1, c.where())
                           : c.all(i));
  c.give(c.run(operands, attrs.get()));
}

}  // namespace retrograd::inline v0::ops
