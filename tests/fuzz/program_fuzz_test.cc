// Random programs behave the same in all executors: eagerly, traced, at other sizes and node by node (compare.h).
//
//   RETROGRAD_FUZZ_COUNT=100000 RETROGRAD_FUZZ_SEED=7 ./bazelw run //tests/fuzz:program_fuzz_test
//
// The default is 1,000 programs from seed 1 on. A failing program is shrunk and printed with its seed. Seeds that once
// failed are in kept_seeds and always run. A seed names a program of this version of the generator only, so each fixed
// bug also has a test of its own.
#include <catch2/catch.hpp>

#include "ops/all_ops.h"
#include "tests/fuzz/asked.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/generator.h"
#include "tests/fuzz/shrink.h"

namespace fuzz {
namespace {

constexpr uint64_t kept_seeds[] = {0};

uint64_t asked_count() { return static_cast<uint64_t>(asked_for("RETROGRAD_FUZZ_COUNT", 1000)); }

void check(uint64_t seed, const Options& options) {
  INFO("RETROGRAD_FUZZ_SEED=" << seed << " RETROGRAD_FUZZ_COUNT=1");
  const Program program = generate(seed);
  const std::optional<std::string> found = difference(program, options);
  if (!found) return;
  const Options uncounted{options.check_graphs, nullptr};
  const Program small = shrunk(program, [&](const Program& p) {
    const std::optional<std::string> fault = difference(p, uncounted);
    return fault ? fault->substr(0, fault->find_first_of(",:")) : "";
  });
  FAIL_CHECK(difference(small, uncounted).value_or(*found) << "\n" << to_string(small));
}

/// What the default programs reached; they run at the first call.
const Coverage& default_run() {
  static Coverage* coverage = nullptr;
  if (coverage) return *coverage;
  coverage = new Coverage;
  const uint64_t first = asked_seed();
  for (uint64_t seed = first; seed < first + asked_count(); ++seed) check(seed, {seed % 4 == 0, coverage});
  return *coverage;
}

}  // namespace

TEST_CASE("programs that once failed run alike") {
  for (const uint64_t seed : kept_seeds) check(seed, {true});
}

TEST_CASE("random programs run alike in all executors") { default_run(); }

TEST_CASE("random programs reach what there is to reach") {
  if (asked_count() < 1000) return;
  const Coverage& coverage = default_run();
  size_t differentiable = 0;
  std::string missing;
  for (const rg::OpInfo* op : rg::ops::all_ops()) {
    if (!op->vjp) continue;
    ++differentiable;
    if (!coverage.records.contains(op->name)) missing += " " + std::string(op->name);
  }
  INFO("of " << differentiable << " differentiable ops no backward reached" << missing);
  CHECK(coverage.records.size() >= differentiable * 9 / 10);

  const auto check_reached = [&](const std::string& what) {
    INFO("no step without error: " << what);
    CHECK(coverage.steps.contains(what));
  };
  for (const OpRow& row : op_table()) check_reached((row.is_view ? "view " : "op ") + std::string(row.name));
  for (const Kind kind :
       {Kind::leaf, Kind::detach, Kind::close, Kind::remove_hook, Kind::retain_grad, Kind::pair_on_slot,
        Kind::requires_grad, Kind::backward, Kind::grad, Kind::read_grad, Kind::clear_grad, Kind::drop})
    check_reached(std::string(to_string(kind)) + " ");
  for (const char* region : {"pair", "no_grad", "enable_grad", "allow_mutation"})
    check_reached(std::string("open ") + region);
  for (const char* hook :
       {"tensor", "pre", "post", "post_accumulate", "accumulate_pre", "accumulate_post", "multi_grad"})
    check_reached(std::string("hook ") + hook);
  for (const char* word :
       {"hook: scale",        "hook: same",     "hook: traceable",   "hook: remove_self",
        "hook: remove_other", "hook: add",      "hook: callback",    "hook: nested",
        "hook: step",         "hook: any",      "open: half",        "open: traceable_pair",
        "open: two_tensors",  "grad: create",   "grad: materialize", "backward: into",
        "backward: create",   "leaf: expanded", "leaf: strided",     "leaf: bf16",
        "leaf: f64"})
    check_reached(word);
  for (int order = 1; order <= 3; ++order) CHECK(coverage.orders.at(order) >= 20);
  for (const char* category :
       {"version_mismatch", "backward_twice_freed", "leaf_inplace", "overlapping_write",
        "view_inplace_forbidden", "hook_bad_result", "cotangent_mismatch"}) {
    INFO(category);
    CHECK(coverage.categories.contains(category));
  }
}

TEST_CASE("a seed makes the same program each time") {
  for (uint64_t seed = 1; seed < 20; ++seed) CHECK(to_string(generate(seed)) == to_string(generate(seed)));
}

TEST_CASE("a program that fails is made as small as can be") {
  const Fault writes_what_was_saved = [](const Program& program) {
    Machine machine(program);
    machine.run();
    for (const std::string& line : machine.lines())
      if (line.find("error version_mismatch") != line.npos) return "version_mismatch";
    return "";
  };
  uint64_t seed = 1;
  while (*writes_what_was_saved(generate(seed)).c_str() == 0) ++seed;
  const Program small = shrunk(generate(seed), writes_what_was_saved);
  INFO(to_string(small));
  CHECK(writes_what_was_saved(small) == "version_mismatch");
  // At most: two leaves, the op that saves, the write, which has an operand of its own, and the backward.
  CHECK(small.steps.size() <= 6);
}

}  // namespace fuzz
