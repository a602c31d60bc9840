// Shared by tests of memory budgets.
#pragma once

#include <string_view>
#include <vector>

#include "retrograd/retrograd.h"

namespace retrograd::testing {

/// The op of each value that a plan computes again, by falling bytes.
inline std::vector<std::string_view> computed_again(const MemoryReport& report) {
  std::vector<std::string_view> ops;
  for (const MemoryReport::Value& value : report.values)
    if (value.action == MemoryReport::Value::Action::computed_again) ops.push_back(value.op);
  return ops;
}

}  // namespace retrograd::testing
