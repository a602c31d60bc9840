// See tracer/function/outside_tensors.h.
#include "tracer/function/outside_tensors.h"

#include <utility>

#include <fmt/format.h>

namespace retrograd::inline v0 {

TensorImpl* OutsideTensors::hold(TensorImpl& tensor, SourceLocation where) {
  if (!known_.insert(&tensor).second) return &tensor;
  held_.emplace_back(&tensor);
  lines_.push_back(where);
  return &tensor;
}

// A recorded value belongs to the recording, whoever else refers to it.
void OutsideTensors::loosen() {
  Pins all = std::exchange(held_, {});
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i]->is_unique() || all[i]->graph)
      held_.push_back(std::move(all[i]));
    else
      loose_.push_back({WeakRef<TensorImpl>(*all[i]), all[i]->type(), lines_[i]});
  lines_ = {};
  known_ = {};
}

std::optional<OutsideTensors::Pins> OutsideTensors::pin() const {
  Pins pins;
  pins.reserve(loose_.size());
  for (const Loose& l : loose_) {
    pins.push_back(l.tensor.lock());
    if (!pins.back()) return {};
  }
  return pins;
}

std::string OutsideTensors::gone() const {
  for (const Loose& l : loose_)
    if (l.tensor.expired())
      return fmt::format("{}, which is used at {}", to_string(l.type), to_string(l.where));
  return {};
}

}  // namespace retrograd
