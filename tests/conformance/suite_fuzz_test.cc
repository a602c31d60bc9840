// Damaged suites: cases of the suites here with some of their JSON changed, in every mode. The runner must report a
// result for each: it does not crash, hang, or exceed its memory limit.
//
//   RETROGRAD_MUTATIONS=1000000 RETROGRAD_FUZZ_SEED=7 ./bazelw run --config=asan //tests/conformance:suite_fuzz_test
//
// The current case is in the file TEST_TMPDIR/case.json when it ends the process.
#include <catch2/catch.hpp>
#include <fstream>

#include "retrograd/retrograd.h"
#include "tests/conformance/case_runner.h"
#include "tests/fuzz/asked.h"
#include "tests/test_folder.h"

using namespace retrograd;
using namespace retrograd::conformance;

namespace {

constexpr int64_t kMutations = 3000;

// All places of a document, as pointers to its values.
void collect(Json& value, std::vector<Json*>& places) {
  places.push_back(&value);
  if (value.is_structured())
    for (Json& child : value) collect(child, places);
}

const Json kOddities[] = {
    nullptr,   true,       "",  "x",   Json::array(),          Json::object(),
    -1,        0,          1,   7,     int64_t{1} << 31,       INT64_MAX,
    INT64_MIN, UINT64_MAX, 0.5, 1e300, std::string(1000, '_'),
};

// Replaces, removes, copies or changes a value somewhere.
void mutate(Json& document, fuzz::Random& random) {
  std::vector<Json*> places;
  collect(document, places);
  Json& place = *random.pick(places);
  const Json other = *random.pick(places);
  switch (random.below(6)) {
    case 0: place = random.pick(kOddities); break;
    case 1: place = other; break;
    case 2:
      if (place.is_structured() && !place.empty())
        place.erase(std::next(place.begin(), random.below(static_cast<int64_t>(place.size()))));
      break;
    case 3:
      if (place.is_array())
        place.insert(place.begin() + random.below(static_cast<int64_t>(place.size()) + 1), other);
      break;
    case 4:
      if (place.is_number_integer()) place = place.get<int64_t>() + random.between(-3, 3);
      break;
    default:
      if (place.is_number_integer()) place = place.get<int64_t>() * (int64_t{1} << random.below(31));
  }
}

TEST_CASE("Damaged suites are refused, or run") {
  std::vector<std::unique_ptr<Suite>> suites;
  for (const char* name :
       {"errors", "hooks", "ops", "programs", "views_inplace", "checkpoint", "optim", "ops_more"})
    suites.push_back(std::make_unique<Suite>(std::string("tests/conformance/suites/") + name + ".json"));
  memory::set_limit(int64_t{1} << 28);
  fuzz::Random random(fuzz::asked_seed());
  const int64_t wanted = fuzz::asked_for("RETROGRAD_MUTATIONS", kMutations);
  const std::string path = testing::in_test_folder("case.json");
  int64_t refused = 0;
  for (int64_t i = 0; i < wanted; ++i) {
    const Suite& suite = *random.pick(suites);
    Json test_case = random.pick(suite.cases());
    if (test_case.dump().size() > 20000) continue;
    for (int64_t changes = random.between(1, 3); changes > 0; --changes) mutate(test_case, random);
    std::ofstream(path, std::ios::trunc) << test_case << std::flush;
    for (Mode mode : kModes) refused += run_case(suite, test_case, mode).verdict != CaseResult::Verdict::pass;
  }
  memory::set_limit(0);
  CHECK(refused > wanted);
}

}  // namespace
