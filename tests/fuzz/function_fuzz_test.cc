// Random programs as compiled functions, at random sizes: each call has the bits of the eager function, its results,
// what it writes to its arguments, and its gradients.
//
// A program becomes a function of its leaves (tests/fuzz/program_function.h). Sizes among the integers of a step are
// taken from the arguments. The function is called at the program's own sizes, at four
// others, and at the own ones again, as compile() and as compile_step(), which differentiates inside. In a third of the
// programs some results have hooks, in another third the calls are made under a pair.
//
//   RETROGRAD_FUZZ_COUNT=10000 RETROGRAD_FUZZ_SEED=7 ./bazelw run //tests/fuzz:function_fuzz_test
//
// Not compared: strides of results, bits of NaNs.
#include <catch2/catch.hpp>

#include "tests/fuzz/asked.h"
#include "tests/fuzz/program_function.h"
#include "tests/fuzz/shrink.h"

namespace fuzz {
namespace {

uint64_t asked_count() { return static_cast<uint64_t>(asked_for("RETROGRAD_FUZZ_COUNT", 1000)); }

struct Counts {
  int64_t functions = 0, calls = 0, recordings = 0, eager = 0, refused = 0, with_symbols = 0;
};

std::string fault_of(const Program& program, rg::FunctionKind kind, Counts* counts) {
  std::vector<IntArray> sizes{program.palette};
  Program other = program;
  for (int i = 0; i < 4; ++i) {
    other.seed = program.seed + 1000003 * static_cast<uint64_t>(i + 1);
    sizes.push_back(at_other_sizes(other).palette);
  }
  ProgramFunction function(program);
  for (const IntArray& palette : sizes) function.drop_failing(palette);
  for (const IntArray& palette : sizes) function.drop_failing(palette);
  if (function.is_empty()) return {};
  sizes.push_back(program.palette);
  const bool is_step = kind == rg::FunctionKind::step, has_pair = program.seed % 3 == 2;
  const auto body = [&](const Tensors& arguments) {
    Tensors results = function(arguments);
    if (!is_step) return results;
    const Tensors gradients = gradients_of(results, arguments, true);
    for (Tensor& r : results) r = r.detach();
    for (const Tensor& g : gradients)
      if (g.defined()) results.push_back(g);
    return results;
  };
  rg::FunctionCache compiled(kind);
  const auto planned = [&](const Tensors& arguments) { return compiled.run(body, arguments); };
  std::string fault;
  for (size_t i = 0; i < sizes.size() && fault.empty(); ++i) {
    const uint64_t seed = program.seed + i;
    Outcome eager, plan;
    try {
      eager = call(body, function.arguments(sizes[i]), is_step, seed, has_pair);
    } catch (const rg::Error&) {
      continue;  // a step that needs other numbers
    }
    try {
      plan = call(planned, function.arguments(sizes[i]), is_step, seed, has_pair);
    } catch (const rg::Error& e) {
      const bool reads_values =
          std::string_view(e.what()).find("may not read values") != std::string_view::npos;
      if (e.category() != rg::Category::unsupported && !reads_values) return std::string("error ") + e.what();
      if (counts) ++counts->refused;
      continue;
    } catch (const std::exception& e) {
      return std::string("exception ") + e.what();
    }
    fault = difference(eager.results, plan.results, "results");
    if (fault.empty()) fault = difference(eager.arguments, plan.arguments, "arguments");
    if (fault.empty()) fault = difference(eager.gradients, plan.gradients, "gradients");
    if (!fault.empty()) fault += "\nfor" + types_of(function.arguments(sizes[i]));
    if (counts) ++counts->calls;
  }
  if (counts) {
    const rg::FunctionCache::Stats stats = compiled.stats();
    ++counts->functions;
    counts->recordings += stats.captures;
    counts->eager += stats.eager;
    counts->with_symbols += stats.plans > stats.captures;
  }
  return fault;
}

}  // namespace

TEST_CASE("random programs as compiled functions have the bits of eager at random sizes") {
  Counts counts;
  const uint64_t first = asked_seed();
  for (uint64_t seed = first; seed < first + asked_count(); ++seed)
    for (const rg::FunctionKind kind : {rg::FunctionKind::function, rg::FunctionKind::step}) {
      INFO("RETROGRAD_FUZZ_SEED=" << seed << " RETROGRAD_FUZZ_COUNT=1");
      const Program program = generate(seed);
      const std::string found = fault_of(program, kind, &counts);
      if (found.empty()) continue;
      const auto word = [](const std::string& fault) { return fault.substr(0, fault.find_first_of(",:")); };
      const Program small =
          shrunk(program, [&](const Program& p) { return word(fault_of(p, kind, nullptr)); });
      FAIL_CHECK((kind == rg::FunctionKind::step ? "step: " : "function: ")
                 << fault_of(small, kind, nullptr) << "\n"
                 << to_string(small));
    }
  WARN(counts.functions << " functions, " << counts.calls << " calls compared, " << counts.recordings
                        << " recordings, " << counts.eager << " calls eager, " << counts.refused
                        << " refused; one recording for several sizes: " << counts.with_symbols);
  if (asked_count() < 1000) return;
  CHECK(counts.functions > 1000);
  CHECK(counts.with_symbols > counts.functions / 4);
  CHECK(counts.refused < counts.calls / 5);
}

}  // namespace fuzz
