// conformance SUITE.json [--mode eager|traced|compiled|all|dynamic|step] [--filter SUBSTRING] [--list] [--allow-unsupported]
//             [--device cpu|cuda] [--as-used] [--every N] [--from N] [--progress FILE]
//
// Runs the cases of a suite and prints a line for each that fails or is unsupported, and a summary per mode;
// see section 9 of suites/FORMAT.md. Start reading at case_runner.cc, then interpreter.h.
//
// `all` is eager, traced and compiled. Mode dynamic prints how many cases also run with larger inputs, and how many of these
// the recording made with them has served.
//
// The temporary memory of every kernel is checked as well (cpu/scratch_check.h).
//
// Another process can continue where a broken device or a crash has ended this one: FILE has the number and the name of
// the current case, and --from skips that many.
//
// Exit code: 0 when all passed, 1 when one failed or (without --allow-unsupported) was unsupported, 2 when the
// suite cannot be read or an argument is wrong, 3 when a case lost the device: the rest was not run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cpu/scratch_check.h"
#include "tests/conformance/case_runner.h"
#include "tests/conformance/device.h"

namespace retrograd::conformance {
namespace {

struct Options {
  std::string suite, mode = "eager", filter, device = "cpu", progress;
  int every = 1, from = 0;
  bool list = false, allow_unsupported = false, as_used = false;
};

struct Counts {
  int pass = 0, fail = 0, unsupported = 0, twins = 0, served = 0;
  bool lost = false;
};

// The suite as named, relative to the user's folder (under `bazel run` that is not the working directory), or among
// those that come with the runner.
std::string find_suite(const std::string& name) {
  const char* caller = std::getenv("BUILD_WORKING_DIRECTORY");
  std::filesystem::path places[] = {std::filesystem::path(caller ? caller : ".") / name, name,
                                    std::filesystem::path("tests/conformance/suites") / name};
  for (const std::filesystem::path& place : places)
    if (std::filesystem::is_regular_file(place)) return place.string();
  throw BadManifest(name + ": no such file");
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

// The selected cases of a mode, without those before --from.
std::vector<const Json*> chosen(const Suite& suite, Mode mode, const Options& options) {
  std::vector<const Json*> cases;
  int passed_over = 0;
  for (const Json& test_case : suite.cases()) {
    if (test_case.value("name", "?").find(options.filter) == std::string::npos || !applies(test_case, mode))
      continue;
    if (++passed_over < options.every) continue;
    passed_over = 0;
    cases.push_back(&test_case);
  }
  cases.erase(cases.begin(), cases.begin() + std::min<std::ptrdiff_t>(options.from, std::ssize(cases)));
  return cases;
}

void report(const Suite& suite, const std::string& name, Mode mode, const CaseResult& result,
            Counts& counts) {
  for (const CaseLog::Failure& failure : result.failures)
    fmt::print("FAIL {}:{} [{}] {}: {}\n", suite.name(), name, to_string(mode), failure.what,
               one_line(failure.text));
  counts.twins += result.twin != CaseLog::Twin::none;
  counts.served += result.twin == CaseLog::Twin::serves;
  switch (result.verdict) {
    case CaseResult::Verdict::pass: ++counts.pass; break;
    case CaseResult::Verdict::fail: ++counts.fail; break;
    case CaseResult::Verdict::unsupported:
      ++counts.unsupported;
      fmt::print("UNSUPPORTED {}:{} [{}] {}\n", suite.name(), name, to_string(mode),
                 one_line(result.lacking));
  }
  std::fflush(stdout);
}

Counts run_mode(const Suite& suite, Mode mode, const Options& options) {
  Counts counts;
  int number = options.from;
  for (const Json* test_case : chosen(suite, mode, options)) {
    if (!options.progress.empty())
      std::ofstream(options.progress) << number << ' ' << test_case->value("name", "?") << '\n';
    report(suite, test_case->value("name", "?"), mode, run_case(suite, *test_case, mode), counts);
    ++number;
    if (options.device == "cpu" || !is_device_lost()) continue;
    fmt::print("LOST {}:{} [{}] the device does nothing any more\n", suite.name(),
               test_case->value("name", "?"), to_string(mode));
    counts.lost = true;
    break;
  }
  if (mode == Mode::dynamic)
    fmt::print("TWINS {} of {} cases run with larger inputs; what was recorded with them served {}\n", counts.twins,
               counts.pass + counts.fail + counts.unsupported, counts.served);
  fmt::print("SUMMARY {} {} pass={} fail={} unsupported={}\n", suite.name(), to_string(mode), counts.pass,
             counts.fail, counts.unsupported);
  return counts;
}

int run(const Options& options) {
  if (options.device == "cuda") prepare_device(!options.as_used);
  const Suite suite(find_suite(options.suite), options.device == "cuda" ? kCUDA : kCPU);
  if (options.list) {
    for (const Json& test_case : suite.cases())
      if (const std::string name = test_case.value("name", "?");
          name.find(options.filter) != std::string::npos)
        fmt::print("{}\n", name);
    return 0;
  }
  if (std::ranges::none_of(suite.cases(), [&](const Json& test_case) {
        return test_case.value("name", "?").find(options.filter) != std::string::npos;
      }))
    throw BadManifest("no case's name contains \"" + options.filter + "\"");
  bool good = true;
  for (Mode mode : {Mode::eager, Mode::traced, Mode::compiled, Mode::dynamic, Mode::step}) {
    if (options.mode == "all" ? mode > Mode::compiled : options.mode != to_string(mode)) continue;
    const Counts counts = run_mode(suite, mode, options);
    if (counts.lost) return 3;
    good = good && counts.fail == 0 && (options.allow_unsupported || counts.unsupported == 0);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace retrograd::conformance

int main(int argc, char** argv) {
  retrograd::conformance::Options options;
  CLI::App app("Runs a conformance suite against this build.", "conformance");
  app.add_option("suite", options.suite, "SUITE.json; its tensors lie beside it")->required();
  app.add_option("--mode", options.mode, "eager, traced, compiled, all of these, dynamic, or step")
      ->check(CLI::IsMember({"eager", "traced", "compiled", "all", "dynamic", "step"}));
  app.add_option("--device", options.device, "cpu or cuda: where the suite's tensors are")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--filter", options.filter, "only cases whose name contains this");
  app.add_option("--every", options.every, "only each N-th of these cases")->check(CLI::PositiveNumber);
  app.add_option("--from", options.from, "not the first N of these")->check(CLI::NonNegativeNumber);
  app.add_option("--progress", options.progress, "file that has the case that runs: its number and name");
  app.add_flag(
      "--as-used", options.as_used,
      "launches on a device are not waited for one by one: graphs and fused groups run as for a user");
  app.add_flag("--list", options.list, "print the names of the cases and run none");
  app.add_flag("--allow-unsupported", options.allow_unsupported,
               "unsupported cases do not change the exit code");
  const retrograd::cpu::CheckScratch every_launch;
  try {
    app.parse(argc, argv);
    return retrograd::conformance::run(options);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "conformance: %s\n", e.what());
    return 2;
  }
}
