// The text of fused kernels: what it looks like, and all of it compiled by the real NVRTC, for which no device is needed: every elementwise op
// in every dtype, and the groups of training. What the assembler says of registers and spilled memory is held to limits.
#include <catch2/catch.hpp>
#include <regex>
#include <set>

#include "cuda/fusion/compiler.h"
#include "ops/elementwise_list.h"
#include "tests/cuda/fused_case.h"

using namespace retrograd;
using namespace retrograd::cuda;

namespace {

struct Used {
  int registers = 0, spilled = 0, kernels = 0;
};

// The most of all kernels, by the assembler's log.
Used used(const std::string& log) {
  Used u;
  const auto each = [&](const char* pattern, auto f) {
    const std::regex form(pattern);
    for (std::sregex_iterator it(log.begin(), log.end(), form), end; it != end; ++it) f(std::stoi((*it)[1]));
  };
  each(R"(Used (\d+) registers)", [&](int n) { u.registers = std::max(u.registers, n), ++u.kernels; });
  each(R"((\d+) bytes spill stores)", [&](int n) { u.spilled = std::max(u.spilled, n); });
  return u;
}

Used compiled(const FusedCase& c, const fusion::Source& source) {
  std::vector<std::string> options = fusion::compile_options(90);
  options.push_back("--ptxas-options=-v");
  const fusion::Compiler::Result result = fusion::nvrtc()->compile(source, options);
  INFO(c.name() << "\n" << source.text << "\n" << result.log);
  REQUIRE(
      result.code.starts_with("\x7f"
                              "ELF"));
  const Used u = used(result.log);
  REQUIRE(u.kernels == 1 + static_cast<int>(std::set(source.merges.begin(), source.merges.end()).size()));
  return u;
}

// With a note, without the toolkit.
bool is_absent() {
  if (fusion::nvrtc()) return false;
  WARN("not tested: " << fusion::nvrtc_problem());
  return true;
}

void check(const FusedCase& c, bool any_layout) {
  if (!c.group()) return;
  INFO(c.name() << (any_layout ? ", any layout" : ""));
  const Used u = compiled(c, c.source(any_layout));
  CHECK(u.spilled <= (any_layout ? 16 : 0));  // the one for all layouts has many indices
  // Of sums in double with their counts more are needed: three blocks run at once.
  CHECK(u.registers <= (c.group()->reduces == FusedRole::none ? 64 : 80));
}

}  // namespace

TEST_CASE("texts with every op in every dtype are compiled") {
  if (is_absent()) return;
  for (const FusedCase& c : every_op()) check(c, false);
}

TEST_CASE("texts of training are compiled, in all layouts") {
  if (is_absent()) return;
  std::set<std::string> seen;
  for (const FusedCase& c : training_groups())
    for (bool any_layout : {false, true})
      if (c.group() && seen.insert(c.source(any_layout).name).second) check(c, any_layout);
}

TEST_CASE("a chain of 16 ops stays in registers") {
  if (is_absent()) return;
  for (ScalarType dtype : {kFloat32, kBFloat16, kFloat64}) {
    FusedCase c("chain");
    int32_t x = c.input(ones({6, 16}, dtype));
    const int32_t y = c.input(ones({6, 16}, dtype)), bias = c.input(ones({16}, dtype));
    for (int i = 0; i < 4; ++i) {
      x = c.node<ops::Add>({c.with_number<ops::Mul>(x, 0.5), bias});
      x = c.node<ops::Mul>({c.node<ops::Tanh>({x}), y});
    }
    c.output(x);
    REQUIRE(c.nodes() == 16);
    check(c, false);
    check(c, true);
  }
}

TEST_CASE("what is wrong with a text is in the log") {
  if (is_absent()) return;
  const fusion::Compiler::Result result = fusion::nvrtc()->compile(
      {"broken", "#include \"cuda/fusion/fused.cuh\"\nint x = y;\n", {}}, fusion::compile_options(90));
  CHECK(result.code.empty());
  CHECK(result.log.find("\"y\" is undefined") != std::string::npos);
}
