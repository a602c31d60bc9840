// What the tests of the IR share.
#pragma once

#include <algorithm>
#include <string>

#include "ir/bookkeeping.h"
#include "ir/text.h"
#include "ops/all_ops.h"
#include "retrograd/retrograd.h"

namespace ir_test {

namespace rg = retrograd;

inline const rg::OpInfo* find_op(std::string_view name) {
  return name == "function_backward" ? &rg::ops::function_backward : rg::ops::find_op(name);
}

inline rg::ir::Graph parse(std::string_view text) { return rg::ir::parse(text, find_op); }

/// The text of an error, or "" if `f` throws none. Other exceptions go on.
template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return {};
}

}  // namespace ir_test
