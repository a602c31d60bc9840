// See entry.h: goes through the op structs, which only their lists know.
#include "tools/ops_table/entry.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/text.h"
#include "ops/families.h"

namespace ops_table {
namespace {

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(", "), list.size());
    parts.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 2, list.size()));
  }
  return parts;
}

template <class Op>
std::vector<std::string> operand_names() {
  if constexpr (requires { Op::operands; }) return split(Op::operands);
  if (Op::arity == 1) return {"x"};
  std::vector<std::string> names;
  for (int i = 0; i < Op::arity; ++i) names.emplace_back(1, static_cast<char>('a' + i));
  return names;
}

// Operands of one type; the attribute that stands for a number is not written.
template <class Op>
std::string elementwise_example() {
  std::string text;
  for (int i = 0; i < Op::arity; ++i) text += i ? ", f32[2,3]" : "f32[2,3]";
  typename Op::Attrs attrs{};
  const std::string fields =
      rg::ops::info<Op>.has_scalar_operand ? "" : rg::ir::attrs_text(rg::ops::info<Op>, &attrs);
  if (!fields.empty()) text += fmt::format(" {{{}}}", fields);
  return text + (Op::promotion == rg::ops::Promotion::boolean ? " : bool[2,3]" : " : f32[2,3]");
}

template <class Op>
Derivative derivative_of() {
  if constexpr (requires { Op::chain; })
    return Derivative::chain;
  else if constexpr (rg::ops::HasVjp<Op>)
    return Derivative::custom;
  else if constexpr (!rg::ops::HasTranspose<Op>)
    return Derivative::none;
  else if constexpr (requires { Op::bilinear; })
    return Derivative::bilinear;
  else
    return Derivative::linear;
}

template <class Op>
Entry entry() {
  Entry e{&rg::ops::info<Op>, operand_names<Op>(), {}, derivative_of<Op>()};
  if constexpr (requires { Op::promotion; }) {
    e.example = elementwise_example<Op>();
    e.typing = &rg::ops::typing<Op>;
  }
  if constexpr (requires { Op::example; }) e.example = Op::example;
  return e;
}

}  // namespace

std::vector<Family> families() {
  std::vector<Family> all;
  rg::ops::for_each_family([&]<class List>(std::string_view header) {
    if (all.empty() || all.back().header != header) all.push_back({std::string(header), {}});
    List::for_each([&]<class Op>() { all.back().entries.push_back(entry<Op>()); });
  });
  return all;
}

}  // namespace ops_table
