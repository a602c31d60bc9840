// The text of fused kernels: its form, and that the real NVRTC compiles all of it, for which no device is needed: every
// elementwise op in every dtype, and the groups of training. The assembler's registers and spilled memory are checked
// against limits.
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

FusedCase squared_error() {
  for (FusedCase& c : training_groups())
    if (c.name() == "squared_error bfloat16 6x64") return std::move(c);
  throw std::logic_error("no such group");
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
  const fusion::Source source = c.source(any_layout);
  const Used u = compiled(c, source);
  // Polygamma calls others, during which it and the kernel keep their values; so do Bessel functions and what belongs to
  // the error function, which also have series with many coefficients: two blocks run at the same time.
  const auto uses = [&](std::string_view op) { return source.text.find(op) != std::string::npos; };
  const bool calls_deeply = uses("ops::Polygamma");
  const bool is_special = uses("ops::Erfcx") || uses("ops::I0e") || uses("ops::I1e") ||
                          uses("ops::BesselI") || uses("ops::Ndtri") || uses("ops::LogNdtr");
  CHECK(u.spilled <= (any_layout || calls_deeply || is_special ? 16 : 0));  // all layouts have many indices
  // Sums in double with their counts need more: three blocks run at the same time.
  const int most = c.group()->reduces == FusedRole::none && !calls_deeply ? 64 : 80;
  CHECK(u.registers <= (is_special ? 112 : most));
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

TEST_CASE("the text of a small group") {
  FusedCase c("small");
  const int32_t x = c.input(ones({4, 8})), bias = c.input(ones({8}));
  const int32_t sum = c.with_number<ops::Mul>(c.node<ops::Add>({x, bias}), 0.5);
  c.output(c.node<ops::Tanh>({sum}));
  const fusion::Source source = c.source();
  std::string text = source.text;
  for (size_t at; (at = text.find(source.name)) != std::string::npos;)
    text.replace(at, source.name.size(), "NAME");
  CHECK(source.name.starts_with("fused_add_mul_tanh_"));
  CHECK(text == R"(#include "cuda/fusion/fused.cuh"
#include "ops/activations.h"
#include "ops/arithmetic.h"

namespace retrograd::cuda::RG_TARGET {

struct NAME_call {
  int64_t numel;
  const float* in0;
  const float* in1;
  float* out0;
  StridedGrid<1> grid;
  alignas(8) ops::Add::Attrs node0;
  alignas(8) ops::Mul::Attrs node1;
};

extern "C" __global__ void __launch_bounds__(kThreads) NAME(const NAME_call call) {
  for (int64_t i = first_pack<4>(); i < call.numel; i += pack_step<4>()) {
    const int count = in_pack<4>(i, call.numel);
    const Offsets<1> at(call.grid, i);
    const auto in0 = read<4>(call.in0, i, count);
    const auto in1 = read<4>(call.in1, at[0], 4);
    Pack<float, 4> out0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float v0 = node<ops::Add, float, float>(call.node0, in0.v[k], in1.v[k]);
      const float v1 = node<ops::Mul, float, float>(call.node1, v0, call.node1.scalar);
      const float v2 = node<ops::Tanh, float, float>({}, v1);
      out0.v[k] = v2;
    }
    write<4>(call.out0, i, count, out0);
  }
}

}  // namespace retrograd::cuda::RG_TARGET
)");
}

TEST_CASE("the text of a group with reductions") {
  const fusion::Source source = squared_error().source();
  std::string text = source.text;
  for (size_t at; (at = text.find(source.name)) != std::string::npos;)
    text.replace(at, source.name.size(), "NAME");
  CHECK(text.find(R"(  for (int64_t k = part.begin; k < part.end; k += cut.lanes) {
    const int64_t i = part.row * cut.rows.stride[0] + k * cut.along.stride[0];
    const auto in0 = call.in0[i];
    const auto in1 = call.in1[i];
    const BFloat16 v0 = node<ops::Sub, float, BFloat16>(call.node0, in0, in1);
    const BFloat16 v1 = node<ops::Square, float, BFloat16>({}, v0);
    const BFloat16 v3 = node<ops::Mul, float, BFloat16>(call.node3, v0, call.node3.scalar);
    call.out1[i] = v3;
    merge<Reduction::sum>(r2, of_one<Reduction::sum>(converted<float>(v1), k, 0.0));
  }
  end_row<Reduction::sum>(call.reduce2, Finish::mean, part, found, r2);
)") != std::string::npos);
  CHECK(source.merges == std::vector<std::string>{source.name + "_merge_sum_mean"});
}
