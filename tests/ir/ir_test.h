// Shared by the tests of the IR.
#pragma once

#include <algorithm>
#include <string>

#include "engine/bookkeeping.h"
#include "ir/text.h"
#include "ops/all_ops.h"
#include "retrograd/retrograd.h"

namespace ir_test {

namespace rg = retrograd;

inline rg::ir::Graph parse(std::string_view text) { return rg::ir::parse(text, rg::ops::find_op); }

/// The text of an error, or "" if `f` throws none. Other exceptions propagate.
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
