// Random programs with regions that are recomputed: checkpoints and scopes with policies, two deep. Results and
// gradients have the bits of the program without them: eagerly, with a captured backward, as a compiled function and
// as a step.
//
//   RETROGRAD_FUZZ_COUNT=10000 RETROGRAD_FUZZ_SEED=7 ./bazelw run //tests/fuzz:recompute_fuzz_test
//
// A region may refuse to read a tensor that was written to in between, which the program without regions need not: then
// the backward is an error that says so.
#include <catch2/catch.hpp>

#include "tests/fuzz/asked.h"
#include "tests/fuzz/program_function.h"
#include "tests/fuzz/shrink.h"
#include "tracer/backward/compile_backward.h"
#include "tracer/function/compile.h"

namespace fuzz {
namespace {

uint64_t asked_count() { return static_cast<uint64_t>(asked_for("RETROGRAD_FUZZ_COUNT", 1000)); }

enum class Mode { eager, traced, function, step };

struct Counts {
  int64_t compared = 0, refused = 0;
};

// What compares bodies with and without regions in one mode.
class Comparison {
 public:
  Comparison(const ProgramFunction& function, Mode mode)
      : function_(function),
        mode_(mode),
        compiled_(mode == Mode::step ? rg::FunctionKind::step : rg::FunctionKind::function) {}

  std::string fault(const IntArray& palette, uint64_t seed, Counts* counts) {
    const bool is_step = mode_ == Mode::step;
    Outcome plain, recomputed;
    try {
      plain = call([&](const Tensors& x) { return body(x, false); }, function_.arguments(palette), is_step,
                   seed, false);
    } catch (const rg::Error&) {
      return {};
    }
    try {
      std::optional<rg::CompiledBackwardScope> scope;
      if (mode_ == Mode::traced) scope.emplace(traced_);
      recomputed = call(
          [&](const Tensors& x) {
            const auto with_regions = [&](const Tensors& given) { return body(given, true); };
            return mode_ == Mode::function || is_step ? compiled_.run(with_regions, x) : with_regions(x);
          },
          function_.arguments(palette), is_step, seed, false);
    } catch (const rg::Error& e) {
      const std::string_view text = e.what();
      const bool reads_values = text.find("may not read values") != std::string_view::npos;
      const bool was_written = e.category() == rg::Category::version_mismatch;
      if (counts) ++counts->refused;
      if (was_written || reads_values || e.category() == rg::Category::unsupported) return {};
      return std::string("error ") + e.what();
    } catch (const std::exception& e) {
      return std::string("exception ") + e.what();
    }
    if (counts) ++counts->compared;
    std::string fault = difference(plain.results, recomputed.results, "results");
    if (fault.empty()) fault = difference(plain.arguments, recomputed.arguments, "arguments");
    if (fault.empty()) fault = difference(plain.gradients, recomputed.gradients, "gradients");
    return fault.empty() ? fault : fault + "\nfor" + types_of(function_.arguments(palette));
  }

 private:
  Tensors body(const Tensors& arguments, bool recomputes) const {
    Tensors results = function_(arguments, recomputes);
    if (mode_ != Mode::step) return results;
    const Tensors gradients = gradients_of(results, arguments, true);
    for (Tensor& r : results) r = r.detach();
    for (const Tensor& g : gradients)
      if (g.defined()) results.push_back(g);
    return results;
  }

  const ProgramFunction& function_;
  const Mode mode_;
  rg::FunctionCache compiled_;
  rg::CompiledBackward traced_ = rg::compile_backward();
};

std::string fault_of(const Program& program, Mode mode, Counts* counts) {
  std::vector<IntArray> sizes{program.palette, at_other_sizes(program).palette};
  ProgramFunction function(program);
  for (int twice = 0; twice < 2; ++twice)
    for (const IntArray& palette : sizes) function.drop_failing(palette);
  if (function.is_empty()) return {};
  sizes.push_back(program.palette);
  Comparison comparison(function, mode);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (const std::string fault = comparison.fault(sizes[i], program.seed + i, counts); !fault.empty())
      return fault;
  return {};
}

}  // namespace

TEST_CASE("random programs with recomputed regions have the bits of the programs without") {
  Counts counts;
  const uint64_t first = asked_seed();
  for (uint64_t seed = first; seed < first + asked_count(); ++seed)
    for (const Mode mode : {Mode::eager, Mode::traced, Mode::function, Mode::step}) {
      INFO("RETROGRAD_FUZZ_SEED=" << seed << " RETROGRAD_FUZZ_COUNT=1");
      const Program program = generate(seed);
      const std::string found = fault_of(program, mode, &counts);
      if (found.empty()) continue;
      const auto word = [](const std::string& fault) { return fault.substr(0, fault.find_first_of(",:")); };
      const Program small =
          shrunk(program, [&](const Program& p) { return word(fault_of(p, mode, nullptr)); });
      FAIL_CHECK("mode " << static_cast<int>(mode) << ": " << fault_of(small, mode, nullptr) << "\n"
                         << to_string(small));
    }
  WARN(counts.compared << " calls compared, " << counts.refused << " refused");
  if (asked_count() >= 1000) CHECK(counts.refused < counts.compared / 5);
}

}  // namespace fuzz
