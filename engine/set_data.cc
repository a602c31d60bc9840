// Tensor::set_data, resize_ and resize_as_: other memory or sizes for a tensor, by what is no write into its elements.
//
// Slots hold the cell of a saved tensor, so whatever saved it must notice: the memory that the tensor has afterwards is
// at a version that the old one never had, as if it had been written to. Views that the tensor had keep the old memory,
// and are no views from then on (has_lost_its_base in engine/inplace.cc). There are no such operations in recorded
// code: the function runs eagerly.
#include <fmt/format.h>

#include "engine/basic_ops.h"
#include "engine/inplace.h"
#include "engine/named_call.h"
#include "engine/recording.h"
#include "engine/runner.h"
#include "engine/tape.h"

namespace retrograd::inline v0 {
namespace {

void check_new_type(const TensorImpl& self, const TensorImpl& other, SourceLocation where) {
  const auto refuse = [&](Category category, std::string_view text) {
    fail(category, "set_data",
         fmt::format("{} becomes {}: {}", to_string(self.type()), to_string(other.type()), text), where);
  };
  if (self.base)
    refuse(Category::bad_argument, "a view shows the memory of its base. Hint: copy_ writes the values");
  if (self.requires_grad && !is_floating(other.dtype()))
    refuse(Category::requires_grad_forbidden, "only floating tensors can require gradients");
  if (self.requires_grad && other.storage()->is_inference() && !InferenceMode::is_enabled())
    refuse(Category::requires_grad_forbidden,
           "memory of inference mode is to require a gradient outside of the mode. Hint: clone it first");
  if (self.type() == other.type()) return;
  if (self.grad_fn) refuse(Category::bad_argument, "its history is of the old type. Hint: detach() it first");
  if (self.meta && self.meta->grad.defined())
    refuse(Category::bad_argument, "its .grad has the old type. Hint: clear it first, by set_grad({})");
}

Shape checked_sizes(const Shape& size, SourceLocation where) {
  for (const Dim d : size)
    if (d.value() < 0)
      fail(Category::bad_argument, "resize_", fmt::format("{} has a negative size", to_string(size)), where);
  check_extent(size);
  return Shape(size.ints());
}

// The elements of `cell` in memory order, from its first one on.
RefPtr<TensorImpl> line_of(const TensorImpl& cell, int64_t count) {
  RefPtr<TensorImpl> line = TensorImpl::make();
  line->alias(cell);
  line->mutable_shape() = Shape{count};
  line->set_stride(0, 1);
  return line;
}

void move_to_larger_memory(TensorImpl& cell, const Shape& size, SourceLocation where) {
  const Storage& memory = *cell.storage();
  if (!memory.is_unique())
    fail(Category::bad_argument, "resize_",
         fmt::format("{} is to be {}, for which its memory is too small, and others share that memory. Hint: "
                     "clone it first",
                     to_string(cell.type()), to_string(size)),
         where);
  const InferenceMode as_before(memory.is_inference());
  const Tensor larger = basic::zeros({cell.dtype(), cell.device(), size}, where);
  const int64_t kept =
      memory.nbytes() / static_cast<int64_t>(element_size(cell.dtype())) - cell.storage_offset();
  const RefPtr<TensorImpl> old = line_of(cell, kept);
  TensorImpl* operand = old.get();
  run_into({&basic::clone_op(), {&operand, 1}, nullptr, where, 1}, Tensor(line_of(larger.impl(), kept)));
  cell.alias(larger.impl());
}

}  // namespace

void Tensor::set_data(const Tensor& other, SourceLocation where) const {
  const NamedCall call("set_data", where);
  TensorImpl &self = impl("set_data", where), &from = other.impl("set_data", where);
  refuse_recording("set_data", "a tensor gets other memory", where);
  check_has_data("set_data", where);
  other.check_has_data("set_data", where);
  check_new_type(self, from, where);
  const uint32_t version = self.storage()->version();
  self.alias(from);
  self.storage()->raise_version_above(version, where);
}

const Tensor& Tensor::resize_(const Shape& size, SourceLocation where) const {
  const NamedCall call("resize_", where);
  TensorImpl& self = impl("resize_", where);
  refuse_recording("resize_", "a tensor gets other sizes", where);
  check_has_data("resize_", where);
  if (requires_grad())
    fail(Category::requires_grad_forbidden, "resize_",
         fmt::format("{} requires a gradient. Hint: reshape, or index", describe(*this)), where);
  const Shape sizes = checked_sizes(size, where);
  if (self.shape() == sizes) return *this;
  const uint32_t version = self.storage()->version();
  const int64_t end = Dim::checked_mul(Dim::checked_add(self.storage_offset(), sizes.numel().value()),
                                       static_cast<int64_t>(retrograd::element_size(self.dtype())));
  if (end > self.storage()->nbytes())
    move_to_larger_memory(self, sizes, where);
  else
    self.mutable_shape() = sizes;
  contiguous_strides(sizes, self.mutable_strides());
  self.storage()->raise_version_above(version, where);
  return *this;
}

const Tensor& Tensor::resize_as_(const Tensor& other, SourceLocation where) const {
  return resize_(other.sym_sizes(where), where);
}

}  // namespace retrograd
