// A text with one change, of every kind and at every position: the result is a valid graph that prints to itself, or an
// Error(bad_argument).
#include <catch2/catch.hpp>

#include "ir/verify.h"
#include "tests/ir/ir_test.h"

namespace rg = retrograd;
using ir_test::parse;

TEST_CASE("a text that was changed at any place is a graph or an error") {
  const std::string text =
      R"(graph @backward[s0 = 2, s1 = 3; 1 != s0](%0: f32[], $1: hook, !2: slot f32[s0,s1], @4: leaf f32[s0,s1]) {
  %1 = contiguous %0 : f32[]                                  // sum#0 rule, a.cc:1
  %2 = expand %1 {size=[s0,s1]} : f32[s0,s1]
  %3 = hook $1, %2 : f32[s0,s1]
  %5 = unpack !2 : f32[s0,s1]
  %6 = mul %3, (float(s0)/3) : f32[s0,s1]
  %7 = cat %5, %6 {dim=1} : f32[s0,(s1+s1)]
  %8 = slice %7 {dim=1, start=0, length=s1, step=1} : f32[s0,s1]
  %9 = accumulate %8, %6 : f32[s0,s1]
  accumulate_grad @4, %9
  return %9, none
}
)";
  REQUIRE_NOTHROW(parse(text));
  int accepted = 0, refused = 0;
  const auto try_text = [&](const std::string& changed) {
    try {
      const rg::ir::Graph graph = parse(changed);
      rg::ir::verify(graph);
      const std::string printed = graph.print();
      if (parse(printed).print() != printed) FAIL_CHECK(changed);
      ++accepted;
    } catch (const rg::Error& e) {
      if (e.category() != rg::Category::bad_argument) FAIL_CHECK(changed);
      ++refused;
    }
  };
  for (size_t at = 0; at < text.size(); ++at) {
    try_text(text.substr(0, at));
    try_text(text.substr(0, at) + text.substr(at + 1));
    for (char c : std::string_view("%!@$^([{}]),:;=/ \n09s-.e\0", 24)) {
      std::string changed = text;
      changed[at] = c;
      try_text(changed);
      changed.insert(at, 1, text[at]);
      try_text(changed);
    }
  }
  CHECK(accepted > 1000);  // in notes, names, blanks
  CHECK(refused > 10000);
}
