// The text of fused kernels: what it looks like, and all of it compiled by the real NVRTC, for which no device is needed: every elementwise op
// in every dtype, and the groups of training. What the assembler says of registers and spilled memory is held to limits.
#include <catch2/catch.hpp>
#include <iostream>
#include <regex>
#include <set>

#include "cuda/fusion/compiler.h"
#include "ops/elementwise_list.h"
#include "tests/cuda/fused_case.h"

using namespace retrograd;
using namespace retrograd::cuda;

namespace {

std::string last_log;
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
  REQUIRE(result.code.starts_with("\x7f" "ELF"));
  const Used u = used(last_log = result.log);
  REQUIRE(u.kernels == 1 + static_cast<int>(std::set(source.merges.begin(), source.merges.end()).size()));
  return u;
}

bool is_missing() {
  if (fusion::nvrtc()) return false;
  WARN("not tested, there is no compiler: " << fusion::nvrtc_problem());
  return true;
}

}  // namespace

TEST_CASE("probe") {
  if (is_missing()) return;
  for (auto* list : {training_groups, every_op})
    for (const FusedCase& c : list()) {
      if (!c.group()) continue;
      const Used u = compiled(c, c.source());
      std::cout << c.name() << ": " << u.registers << " registers, " << u.spilled << " spilled\n";
      if (u.spilled) std::cout << last_log;
    }
}
