// Errors of the public functions: each begins with the name of the called function, and names the place of that call.
// Goes through the fuzzer's table of functions (api_table.h), with random arguments: a name that the user never wrote,
// such as an inner op or a file of the library, is a bug.
//
//   RETROGRAD_API_CALLS=1000000 RETROGRAD_FUZZ_SEED=7 ./bazelw run //tests/fuzz:api_names_test
//
// Excluded are functions that run other functions named by the user, modules and functions that take functions, and
// errors from before the call: an operand that is no tensor, a number that is no size.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/fuzz/api_failure.h"
#include "tests/fuzz/api_memory.h"
#include "tests/fuzz/api_table.h"
#include "tests/fuzz/asked.h"

namespace fuzz {
namespace {

constexpr int kRound = 500;
constexpr int64_t kCalls = 15000;

// "Tensor::narrow" -> "narrow", "item<float>" -> "item", "mul_ by a number" -> "mul_".
std::string plain_name(std::string_view entry) {
  if (const size_t at = entry.rfind("::"); at != std::string_view::npos) entry.remove_prefix(at + 2);
  return std::string(entry.substr(0, entry.find_first_of(" <,")));
}

// The names that an error may begin with, in addition to that of the entry.
bool may_begin(std::string_view entry, const std::string& name) {
  static const std::multimap<std::string_view, std::string_view> also = {
      {"fill of a tensor_", "fill of a tensor_"},
      {"kind of a tensor", "dtype"},
      {"numbers of a tensor", "dim"},
      {"raw_data", "data_ptr"},
      {"reshape_to", "reshape"},
      {"operator+", "add"},
      {"operator-", "sub"},
      {"operator*", "mul"},
      {"operator/", "div"},
      {"unary operator-", "neg"},
      {"expand_to", "expand"},
      {"reshape_to", "view"},
  };
  if (name == plain_name(entry)) return true;
  const auto [begin, end] = also.equal_range(entry);
  return std::any_of(begin, end, [&](const auto& pair) { return pair.second == name; });
}

bool runs_others(std::string_view entry) {
  for (const std::string_view part : {"nn::", "autograd::", "Compiled", "DualLevel", "Function", "Generator",
                                      "Node::", "backward", "memory", "hook", "recompute", "optim",
                                      "another_", "itself_", "grad of a tensor", "Saved", "save", "load"})
    if (entry.find(part) != std::string_view::npos) return true;
  return false;
}

bool is_of_an_argument(const std::string& text) {
  return text.starts_with("operand: a number was given") || text.starts_with("shape: ") || text.ends_with(" is not a size or an index");
}

// What is wrong with an error of this entry; empty if nothing is.
std::string fault_of(std::string_view entry, const std::string& text) {
  if (is_of_an_argument(text)) return "";
  const std::string name = text.substr(0, text.find(':'));
  const size_t place = text.rfind("(called at ");
  if (place == std::string::npos) return "no place";
  if (text.compare(place + 11, 4, "api_") != 0 && text.compare(place + 11, 6, "random") != 0)
    return "a place in the library";
  return may_begin(entry, name) ? "" : "an inner name";
}

TEST_CASE("An error begins with the name of the public function, and has the place where it was called") {
  const int64_t wanted = asked_for("RETROGRAD_API_CALLS", kCalls);
  uint64_t seed = asked_seed();
  const MemoryLimit limit;
  std::map<std::string, std::string> faults;  // by entry and problem: an example text
  int64_t errors = 0;
  for (int64_t calls = 0; calls < wanted; ++seed) {
    rg::manual_seed(seed);
    Arguments a(seed);
    bool is_ready = false;
    a.on_ready = [&](const std::string&) { is_ready = true; };
    for (int i = 0; i < kRound; ++i, ++calls) {
      const ApiFunction& function = a.random.pick(api_table());
      if (runs_others(function.name)) continue;
      is_ready = false;
      a.begin(function.name, function.pattern);
      try {
        function.call(a);
      } catch (const rg::Error& e) {
        if (!is_ready) continue;
        ++errors;
        const std::string fault = fault_of(function.name, e.what());
        if (!fault.empty())
          faults.emplace(std::string(function.name) + ", " + fault, a.text() + " gave " + e.what());
      } catch (const rg::RuntimeError&) {
      } catch (const HookFailure&) {
      }
    }
  }
  CHECK(errors > wanted / 20);
  for (const auto& [what, text] : faults) FAIL_CHECK(what << ": " << text);
}

}  // namespace
}  // namespace fuzz
