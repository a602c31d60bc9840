// The state of an optimizer's parameters, without the options of its groups.
#pragma once

#include "optim/optimizer.h"

namespace retrograd {

inline StateDict state_of(const optim::Optimizer& optimizer) {
  StateDict state = optimizer.state_dict();
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("param_groups."); });
  return state;
}

}  // namespace retrograd
