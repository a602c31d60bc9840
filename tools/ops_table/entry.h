// What the table knows of an op before it is tried: its OpInfo, and the documentation in its struct.
//
// A struct may have
//   operands   the names of its operands: "input, weight, bias"; without it x, or a, b, c
//   example    a call as in the text of a graph, without names: "f32[2,3], i64[4] {dim=0} : f32[4]". An
//              elementwise op needs none: one is made of its arity and promotion.
// Everything else is derived from the example: see sample.h.
#pragma once

#include <string>
#include <vector>

#include "ops/elementwise.h"

namespace ops_table {

namespace rg = retrograd;

/// The kind of an op's derivative: docs/design.md, "Ops".
enum class Derivative : uint8_t { none, chain, linear, bilinear, custom };

struct Entry {
  const rg::OpInfo* op;
  std::vector<std::string> operands;  // names
  std::string example;                // empty: missing
  Derivative derivative;
  const rg::ops::Typing* typing = nullptr;  // of an elementwise op
};

struct Family {
  std::string header;
  std::vector<Entry> entries;
};

/// All families but the bookkeeping ops, which are described in docs/ir.md.
std::vector<Family> families();

}  // namespace ops_table
