// The state of optimizers in tests: that of the parameters, without the options of groups; and two that must agree.
#pragma once

#include <vector>

#include <catch2/catch.hpp>

#include "optim/optimizer.h"

namespace retrograd {

inline StateDict state_of(const optim::Optimizer& optimizer) {
  StateDict state = optimizer.state_dict();
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("param_groups."); });
  return state;
}

inline std::vector<std::vector<double>> values_of(const Tensors& tensors) {
  std::vector<std::vector<double>> all;
  for (const Tensor& t : tensors) all.push_back(t.to_vector());
  return all;
}

/// Both have the same parameters, state and options.
inline void check_same_state(const optim::Optimizer& a, const optim::Optimizer& b) {
  CHECK(values_of(a.parameters()) == values_of(b.parameters()));
  const StateDict one = a.state_dict(), two = b.state_dict();
  REQUIRE(one.size() == two.size());
  for (const auto& [key, value] : one) {
    INFO(key);
    REQUIRE(two.contains(key));
    CHECK(value.to_vector() == two.at(key).to_vector());
  }
}

}  // namespace retrograd
