// accumulate_into_leaf: what happens to a gradient that has reached its leaf.
//
// The first one becomes .grad. It is taken over when nobody else holds its memory and it has the layout that .grad must
// have (the layout of a dense leaf, else row-major: PyTorch's gradient layout contract), and copied into that layout
// otherwise. A later one is added: in place, or as a new value when the backward is recorded. One thread at a time per
// leaf.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/basic_ops.h"
#include "engine/bookkeeping.h"
#include "engine/inplace.h"
#include "engine/runner.h"
#include "engine/striped_lock.h"

namespace retrograd::inline v0 {
namespace {

bool is_dense_without_overlap(const TensorImpl& x) {
  std::vector<int> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int d) { return x.stride(d).hint(); });
  Dim expected = 1;
  for (int d : order) {
    const Dim size = x.shape()[d];
    if (size.raw() == 0) return true;
    if (size.raw() == 1) continue;
    if (!(x.stride(d) == expected)) return false;
    expected *= size;
  }
  return true;
}

// A copy of `grad` in the layout that .grad must have.
Tensor laid_out(const Tensor& grad, const TensorImpl& leaf) {
  if (GradMode::is_enabled() || grad.impl().graph || leaf.is_contiguous() || !is_dense_without_overlap(leaf))
    return basic::clone(grad);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(leaf.dtype(), leaf.device(), leaf.shape());
  executor_of(leaf.device()).allocate(*cell);
  std::copy_n(leaf.strides(), leaf.rank(), cell->mutable_strides());
  TensorImpl* operand = grad.get();
  Tensor copy(std::move(cell));
  run_into({&basic::clone_op(), {&operand, 1}, nullptr, {}, 1}, copy);
  return copy;
}

constinit StripedLock accumulating;  // backwards of several threads may meet at one leaf

}  // namespace

bool has_layout_of_grad(const TensorImpl& grad, const TensorImpl& leaf) {
  if (!is_dense_without_overlap(leaf)) return grad.is_contiguous();
  for (int i = 0; i < leaf.rank(); ++i)
    if (leaf.shape()[i].raw() != 1 && !(grad.stride(i) == leaf.stride(i))) return false;
  return true;
}

void accumulate_into_leaf(TensorImpl& leaf, TensorImpl& grad) {
  std::lock_guard lock(accumulating.of(&leaf));
  AutogradMeta& meta = leaf.need_meta();
  if (!(grad.dtype() == leaf.dtype() && grad.shape() == leaf.shape()))
    fail(Category::cotangent_mismatch, "accumulate_grad",
         fmt::format("a gradient of type {} for a leaf of type {}", to_string(grad.type()),
                     to_string(leaf.type())));
  const bool recorded = GradMode::is_enabled();
  const auto given = [&] { return Tensor(RefPtr<TensorImpl>(&grad)); };
  if (!meta.grad.defined()) {
    // The engine holds one reference, and a second one for the post-hooks of the leaf, which see what was accumulated
    // (PyTorch: 1 + has_post_hooks).
    // References to the cell and its storage together.
    const uint32_t holders = meta.post_hooks.empty() ? 2 : 3;
    const bool sole = grad.storage() && !grad.storage()->is_external() &&
                      grad.ref_count() + grad.storage()->ref_count() <= holders;
    const bool take = !recorded && sole && has_layout_of_grad(grad, leaf);
    meta.grad = take ? given() : laid_out(given(), leaf);
  } else if (recorded) {
    meta.grad = basic::add(meta.grad, given());
  } else {
    if (shows_an_element_twice(meta.grad.impl()))
      fail(
          Category::overlapping_write, "accumulate_grad",
          fmt::format(
              "the gradient that a leaf has shows one element more than once. Hint: clone it first. It is {}",
              describe(meta.grad)));
    basic::add_in_place(meta.grad, given());
  }
}

}  // namespace retrograd
