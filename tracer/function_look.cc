// What a recording depends on: see tracer/function_capture.h.
#include <algorithm>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "tracer/function_capture.h"

namespace retrograd {

// ---- what a recording depends on -----------------------------------------------------------------------------------------------------

uint64_t ReachedLeaf::hooks_of(const TensorImpl& x) {
  if (!x.meta || !x.meta->has_hooks()) return 0;
  uint64_t hash = 1;
  bool any = false;
  for (const HookList* list :
       {&x.meta->tensor_hooks, &x.meta->pre_hooks, &x.meta->post_hooks, &x.meta->post_accumulate_hooks}) {
    for (const RefPtr<Hook>& h : list->all())
      if (h->is_live()) {
        hash = hash * 0x9E3779B97F4A7C15u + reinterpret_cast<uintptr_t>(h.get());
        any = true;
      }
    hash = hash * 31 + 7;
  }
  return any ? hash : 0;
}

TensorLook::TensorLook(const TensorImpl& x)
    : type(x.type()),
      requires_grad(x.requires_grad),
      is_leaf(x.is_leaf()),
      is_multi_output_view(x.is_multi_output_view),
      is_no_grad_view(x.is_no_grad_view),
      is_outdated(retrograd::is_outdated(x)) {
  for (int i = 0; i < x.rank(); ++i) strides.push_back(x.strides()[i]);
}

bool TensorLook::operator==(const TensorLook& o) const {
  return type == o.type && std::ranges::equal(strides, o.strides) && requires_grad == o.requires_grad &&
         is_leaf == o.is_leaf && is_multi_output_view == o.is_multi_output_view &&
         is_no_grad_view == o.is_no_grad_view && is_outdated == o.is_outdated;
}

bool TensorLook::fits(const TensorImpl& x) const {
  return type == x.type() &&
         std::ranges::equal(strides, std::span(x.strides(), static_cast<size_t>(x.rank()))) &&
         requires_grad == x.requires_grad && is_leaf == x.is_leaf() &&
         is_multi_output_view == x.is_multi_output_view && is_no_grad_view == x.is_no_grad_view &&
         is_outdated == retrograd::is_outdated(x);
}

std::string TensorLook::text() const {
  return to_string(type) +
         (!is_leaf        ? ", with a history"
          : requires_grad ? ", requires a gradient"
                          : "") +
         (is_outdated ? ", out of date" : "");
}

CallLook::CallLook(const Tensors& given) : gradients(GradMode::is_enabled()) {
  RefPtr<SavedTensorHooks> pair = default_saved_tensor_hooks();
  has_pair = static_cast<bool>(pair);
  if (pair && pair->traceable) traceable_pair = std::move(pair);
  for (const Tensor& t : given) {
    arguments.emplace_back(t.impl());
    same_as.push_back(static_cast<size_t>(std::ranges::find(given, t.get(), &Tensor::get) - given.begin()));
  }
}

std::vector<ArgumentPlace> ArgumentPlace::of(const Tensors& arguments) {
  std::vector<ArgumentPlace> places;
  const auto base_of = [](const Tensor& t) { return t.impl().base ? t.impl().base.get() : t.get(); };
  const auto memory_of = [](const Tensor& t) { return t.impl().storage().get(); };
  const auto first = [&](auto it) { return static_cast<size_t>(it - arguments.begin()); };
  for (const Tensor& t : arguments) {
    const TensorImpl& base = *base_of(t);
    places.push_back({first(std::ranges::find(arguments, memory_of(t), memory_of)),
                      first(std::ranges::find(arguments, &base, base_of)), t.impl().storage_offset(),
                      base.storage_offset(), memory_of(t)->nbytes(), TensorLook(base)});
  }
  return places;
}

std::string CallLook::difference(const CallLook& now) const {
  if (arguments.size() != now.arguments.size())
    return fmt::format("{} arguments, now {}", arguments.size(), now.arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!(arguments[i] == now.arguments[i]))
      return fmt::format("argument {} was {}, is {}", i, arguments[i].text(), now.arguments[i].text());
  if (same_as != now.same_as) return "arguments are the same tensor, or are no longer";
  if (gradients != now.gradients) return now.gradients ? "gradients are on" : "gradients are off";
  if (has_pair != now.has_pair)
    return fmt::format("there {} a default pair of saved-tensor hooks", now.has_pair ? "is" : "is no longer");
  if (!(traceable_pair == now.traceable_pair)) return "another traceable pair of saved-tensor hooks";
  return {};
}

}  // namespace retrograd
