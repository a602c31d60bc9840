// The parts of a case, and the meaning of its exceptions.
#include "tests/conformance/case_runner.h"

#include <algorithm>
#include <mutex>

#include "tests/conformance/derivative_form.h"
#include "tests/conformance/expectations.h"
#include "tests/conformance/interpreter.h"
#include "tests/conformance/optimizer_cases.h"
#include "tests/conformance/schema.h"
#include "tests/conformance/twin.h"
#include "tests/ir/round_trip.h"
#include "tracer/observe/log.h"

namespace retrograd::conformance {
namespace {

bool lists(const Json* modes, Mode mode, bool when_absent) {
  const std::string_view named = to_string(compiles(mode) ? Mode::compiled : mode);
  return modes ? std::find(modes->begin(), modes->end(), named) != modes->end() : when_absent;
}

void compare_events(const Json& want, const EventLog& events, CaseLog& log) {
  const std::vector<std::string> got = events.canonical();
  const auto text = [](const auto& list, size_t i) {
    return i < list.size() ? std::string(list[i]) : std::string("nothing");
  };
  for (size_t i = 0; i < std::max(got.size(), want.size()); ++i)
    if (i >= got.size() || i >= want.size() || want[i] != got[i])
      return log.fail("events[" + std::to_string(i) + "]", "want " + text(want, i) + " got " + text(got, i));
}

void compare_run_counts(const Json& want, const std::map<std::string, int>& got, CaseLog& log) {
  for (const auto& [label, count] : want.items()) {
    const auto it = got.find(label);
    const int runs = it == got.end() ? 0 : it->second;
    if (count != runs)
      log.fail("run_counts." + label, "want " + count.dump() + " got " + std::to_string(runs));
  }
}

void run_with(const Json& test_case, const Tensors& inputs, Interpreter& interpreter) {
  for (size_t i = 0; i < inputs.size(); ++i)
    interpreter.names().bind(test_case["inputs"][i]["name"], inputs[i]);
  interpreter.run(test_case["ops"]);
}

// Runs the program with larger inputs, which records its units. Comparisons do not count. False: it has no twin.
bool run_twin(const Json& test_case, const Suite& suite, const Units& units, UnitCaches& caches) {
  CaseLog ignored;
  Comparison comparison(suite, test_case, ignored);
  const auto differentiator = make_differentiator(Mode::dynamic);
  const Tensors larger = twin_of(test_case, suite, [&](const Tensors& inputs) {
    Interpreter interpreter(comparison, *differentiator);
    run_with(test_case, inputs, interpreter);
  });
  if (larger.empty()) return false;
  Interpreter interpreter(comparison, *differentiator, &units, &caches);
  run_with(test_case, larger, interpreter);
  return true;
}

void run_statements(const Json& test_case, Mode mode, Comparison& comparison, Interpreter& interpreter) {
  Tensors inputs;
  for (const Json& input : test_case["inputs"]) inputs.push_back(comparison.suite().leaf(input, true));
  run_with(test_case, inputs, interpreter);
  const Json* expect = find(test_case, "expect");
  const bool compares_events = lists(find(test_case, "event_modes"), mode, !compiles(mode));
  const Json* events = expect ? find(*expect, "events") : nullptr;
  const Json* run_counts = expect ? find(*expect, "run_counts") : nullptr;
  if (events || run_counts) comparison.log().compared();
  if (events && compares_events) compare_events(*events, interpreter.events(), comparison.log());
  if (run_counts && compares_events)
    compare_run_counts(*run_counts, interpreter.run_counts(), comparison.log());
}

void run(const Suite& suite, const Json& test_case, Mode mode, CaseLog& log) {
  check_case(test_case);
  check_expectations(test_case);
  Comparison comparison(suite, test_case, log);
  if (test_case.value("kind", "program") != "program") return run_optimizer_case(test_case, mode, comparison);
  if (mode == Mode::step) throw Unsupported("a case without an optimizer");
  const auto differentiator = make_differentiator(mode);
  if (test_case.contains("outputs")) return run_derivative_form(test_case, mode, comparison, *differentiator);
  std::optional<Units> units;
  if (compiles(mode)) units.emplace(test_case["ops"]);
  UnitCaches caches;
  const bool has_twin = mode == Mode::dynamic && run_twin(test_case, suite, *units, caches);
  Interpreter interpreter(comparison, *differentiator, units ? &*units : nullptr,
                          mode == Mode::dynamic ? &caches : nullptr);
  run_statements(test_case, mode, comparison, interpreter);
  if (!has_twin) return;
  const auto has_served = [](const auto& unit) { return unit.second.stats().captures <= 1; };
  log.note_twin(std::ranges::all_of(caches, has_served) ? CaseLog::Twin::serves : CaseLog::Twin::runs);
}

}  // namespace

// A case whose modes are none of ours runs in each, and fails there.
bool applies(const Json& test_case, Mode mode) {
  const Json* modes = find(test_case, "modes");
  return lists(modes, mode, true) || !are_modes(*modes);
}

namespace {

// Hears each graph that is captured during a case: its text must parse and print again.
class GraphTexts {
 public:
  explicit GraphTexts(CaseLog& log) {
    logging::set_sink([&log, this](logging::Topic, std::string_view text) {
      const std::string fault = ir_test::fault_of_text(text);
      const std::lock_guard lock(mutex_);
      if (!fault.empty()) log.fail("graph", fault);
    });
    logging::set_topics("trace");
  }
  ~GraphTexts() {
    logging::set_topics("");
    logging::set_sink({});
  }
  GraphTexts(const GraphTexts&) = delete;

 private:
  std::mutex mutex_;
};

}  // namespace

CaseResult run_case(const Suite& suite, const Json& test_case, Mode mode) {
  using Verdict = CaseResult::Verdict;
  CaseLog log;
  const GraphTexts checked(log);
  try {
    run(suite, test_case, mode, log);
    if (log.comparisons() == 0) log.fail("case", "it compares nothing");
  } catch (const Unsupported& e) {
    if (log.failures().empty()) return {Verdict::unsupported, {}, e.what()};
  } catch (const Error& e) {
    if (e.category() == Category::unsupported && log.failures().empty())
      return {Verdict::unsupported, {}, "op=" + log.at() + ": " + e.what()};
    log.fail(log.at(), std::string(to_string(e.category())) + ": " + e.what());
  } catch (const BadManifest& e) {
    log.fail(log.at(), std::string("bad manifest: ") + e.what());
  } catch (const std::exception& e) {
    log.fail(log.at(), std::string("exception: ") + e.what());
  } catch (...) {
    log.fail(log.at(), "an exception of an unknown type");
  }
  return {log.failures().empty() ? Verdict::pass : Verdict::fail, log.failures(), {}, log.twin()};
}

}  // namespace retrograd::conformance
