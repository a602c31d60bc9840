// See tracer/function/tensor_guard.h.
#include "tracer/function/tensor_guard.h"

#include <algorithm>
#include <unordered_map>

#include "engine/inplace.h"

namespace retrograd::inline v0 {

TensorGuard::TensorGuard(const TensorImpl& x)
    : type(x.type()),
      is_dense(x.is_contiguous()),
      requires_grad(x.requires_grad),
      is_leaf(x.is_leaf()),
      is_multi_output_view(x.is_multi_output_view),
      is_no_grad_view(x.is_no_grad_view),
      is_function_view(x.is_function_view),
      is_outdated(retrograd::is_outdated(x)),
      is_inference(x.storage() && x.storage()->is_inference()) {
  for (int i = 0; i < x.rank(); ++i) strides.push_back(x.strides()[i]);
}

bool TensorGuard::has_same_state(const TensorGuard& o) const {
  return requires_grad == o.requires_grad && is_leaf == o.is_leaf &&
         is_multi_output_view == o.is_multi_output_view && is_no_grad_view == o.is_no_grad_view &&
         is_function_view == o.is_function_view && is_outdated == o.is_outdated &&
         is_inference == o.is_inference;
}

bool TensorGuard::operator==(const TensorGuard& o) const {
  return type == o.type && std::ranges::equal(strides, o.strides) && has_same_state(o);
}

bool TensorGuard::differs_in_sizes(const TensorGuard& o) const {
  if (type.dtype != o.type.dtype || !(type.device == o.type.device) ||
      type.shape.rank() != o.type.shape.rank() || is_dense != o.is_dense || !has_same_state(o))
    return false;
  const auto may_be = [](int64_t a, int64_t b) { return a == b || (a > 1 && b > 1); };
  for (int d = 0; d < type.shape.rank(); ++d)
    if (!may_be(type.shape[d].raw(), o.type.shape[d].raw()) ||
        (!is_dense && !may_be(strides[d], o.strides[d])))
      return false;
  return true;
}

bool TensorGuard::holds(const TensorImpl& x) const {
  return type == x.type() &&
         std::ranges::equal(strides, std::span(x.strides(), static_cast<size_t>(x.rank()))) &&
         requires_grad == x.requires_grad && is_leaf == x.is_leaf() &&
         is_multi_output_view == x.is_multi_output_view && is_no_grad_view == x.is_no_grad_view &&
         is_function_view == x.is_function_view && is_outdated == retrograd::is_outdated(x) &&
         is_inference == (x.storage() && x.storage()->is_inference());
}

std::string TensorGuard::text() const {
  return to_string(type) +
         (!is_leaf        ? ", with a history"
          : requires_grad ? ", requires a gradient"
                          : "") +
         (is_outdated ? ", out of date" : "") + (is_inference ? ", of inference mode" : "");
}

std::vector<TensorLocation> TensorLocation::of(const Tensors& tensors) {
  std::vector<TensorLocation> locations;
  std::unordered_map<const void*, size_t> first;  // of memory and bases
  for (const Tensor& t : tensors) {
    const TensorImpl& base = t.impl().base ? *t.impl().base : t.impl();
    const RefPtr<Storage>& memory = t.impl().storage();
    const size_t i = locations.size();
    locations.push_back({first.try_emplace(memory.get(), i).first->second,
                         first.try_emplace(&base, i).first->second, t.impl().storage_offset(),
                         base.storage_offset(), memory->nbytes(), TensorGuard(base)});
  }
  return locations;
}

std::vector<size_t> first_of_each(const Tensors& given) {
  constexpr size_t kFew = 32;  // up to this number comparing pairs is faster than a map
  std::vector<size_t> first;
  first.reserve(given.size());
  if (given.size() <= kFew) {
    for (const Tensor& t : given)
      first.push_back(static_cast<size_t>(std::ranges::find(given, t.get(), &Tensor::get) - given.begin()));
    return first;
  }
  std::unordered_map<const TensorImpl*, size_t> numbers;
  for (const Tensor& t : given) first.push_back(numbers.try_emplace(t.get(), first.size()).first->second);
  return first;
}

}  // namespace retrograd
