// The public functions, called with random arguments (api_arguments.h), some of them in scopes that change the effect
// of calls (api_scopes.cc): the outcome of a call must be a result, an Error or a RuntimeError. An InternalError,
// another exception or a crash is a bug of the library. Some results are differentiated.
//
//   RETROGRAD_API_CALLS=1000000 RETROGRAD_FUZZ_SEED=7 ./bazelw run //tests/fuzz:api_fuzz_test
//
// Calls are made in rounds of kRound, each with its own pool of tensors made from its seed: a failure names the seed of
// its round, and with RETROGRAD_API_CALLS=500 only that round runs. A call that crashes, that a sanitizer ends, or that
// does not return for kPatience seconds is written to standard error; with RETROGRAD_API_TRACE each call is, before it
// is made. Tensor data is limited (api_memory.h): huge sizes cost nothing, and running out of memory is one of the
// possible outcomes.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <typeinfo>

#include "tests/fuzz/api_failure.h"
#include "tests/fuzz/api_memory.h"
#include "tests/fuzz/api_table.h"
#include "tests/fuzz/asked.h"

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*)());

namespace fuzz {
namespace {

constexpr int kRound = 500;
constexpr int64_t kCalls = 20000;
constexpr int64_t kEnoughForAll = 200000;  // so many calls succeed with each function once
constexpr unsigned kPatience = 60;

// The call under way, for what runs when it crashes.
char current_call[2000];

void note_call(uint64_t seed, const std::string& text) {
  std::snprintf(current_call, sizeof current_call - 2, "RETROGRAD_FUZZ_SEED=%llu RETROGRAD_API_CALLS=%d: %s",
                static_cast<unsigned long long>(seed), kRound, text.c_str());
  const size_t n = std::char_traits<char>::length(current_call);
  current_call[n] = '\n';
  current_call[n + 1] = 0;
}

void write_call() { (void)!::write(2, current_call, std::char_traits<char>::length(current_call)); }

/// While it lives, a fatal signal or the end by a sanitizer writes the call first.
class CrashNote {
 public:
  CrashNote() {
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(write_call);
    for (size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction action = {};
      action.sa_handler = [](int) {
        write_call();
        for (size_t k = 0; k < kSignals.size(); ++k) sigaction(kSignals[k], &before_[k], nullptr);
      };  // the instruction runs again, and fails again
      sigaction(kSignals[i], &action, &before_[i]);
    }
  }
  ~CrashNote() {
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(nullptr);
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  CrashNote(const CrashNote&) = delete;

 private:
  static constexpr std::array<int, 5> kSignals = {SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGABRT};
  static inline struct sigaction before_[kSignals.size()];
};

/// While it lives, a call that takes longer than kPatience ends the process.
struct Watchdog {
  Watchdog() {
    std::signal(SIGALRM, [](int) {
      write_call();
      _exit(124);
    });
  }
  ~Watchdog() { alarm(0); }
};

struct Counts {
  int64_t calls = 0, results = 0, errors = 0, out_of_memory = 0, hook_failures = 0;
  std::map<std::string_view, int64_t> returned;  // by function
};

// What a result depends on is differentiated now and then, also twice, also by captured graphs.
void differentiate(Arguments& a) {
  Tensors roots, cotangents, leaves;
  for (const Tensor& t : a.results())
    if (t.is_floating_point() && t.requires_grad() && t.numel() < 100000) {
      roots.push_back(t);
      cotangents.push_back(rg::ones_like(t));
    }
  for (const Tensor& t : a.pool())
    if (t.is_floating_point() && t.requires_grad()) leaves.push_back(t);
  if (roots.empty() || leaves.empty()) return;
  const bool create = a.random.chance(0.3);
  const Tensors first = a.random.chance(0.5)
                            ? rg::autograd::grad(roots, leaves, cotangents, true, create, true)
                            : a.compiled.grad(roots, leaves, cotangents, true, create, true);
  Tensor sum;
  for (const Tensor& g : first)
    if (create && g.defined() && g.requires_grad()) sum = sum.defined() ? sum + rg::sum(g) : rg::sum(g);
  if (sum.defined()) (void)rg::autograd::grad({sum}, leaves, {}, true, false, true);
}

void call(const ApiFunction& function, Arguments& a, Counts& counts) {
  ++counts.calls;
  try {
    call_in_some_scope(function, a);
    ++counts.results;
    ++counts.returned[function.name];
    if (a.random.chance(0.2)) differentiate(a);
  } catch (const HookFailure&) {
    ++counts.hook_failures;
  } catch (const rg::OutOfMemory&) {
    ++counts.out_of_memory;
  } catch (const rg::Error&) {
    ++counts.errors;
  } catch (const rg::RuntimeError&) {
    ++counts.errors;
  } catch (const std::exception& e) {
    FAIL_CHECK(a.text() << " gave " << typeid(e).name() << ": " << e.what());
  }
}

void run_round(uint64_t seed, Counts& counts) {
  INFO("RETROGRAD_FUZZ_SEED=" << seed << " RETROGRAD_API_CALLS=" << kRound);
  rg::manual_seed(seed);
  Arguments arguments(seed);
  const bool trace = std::getenv("RETROGRAD_API_TRACE");
  arguments.on_ready = [trace, seed](const std::string& text) {
    note_call(seed, text);
    if (trace) write_call();
  };
  for (int i = 0; i < kRound; ++i) {
    alarm(kPatience);
    call(arguments.random.pick(api_table()), arguments, counts);
  }
}

}  // namespace

TEST_CASE("whatever the arguments are, a call returns or throws an exception of the library") {
  const int64_t wanted = asked_for("RETROGRAD_API_CALLS", kCalls);
  uint64_t seed = asked_seed();
  const MemoryLimit limit;
  const CrashNote note;
  const Watchdog watchdog;
  Counts counts;
  while (counts.calls < wanted) run_round(seed++, counts);
  const auto shown = [](int64_t n) { return static_cast<long long>(n); };
  std::printf("%lld calls: %lld results, %lld errors, %lld times out of memory, %lld failures of hooks\n",
              shown(counts.calls), shown(counts.results), shown(counts.errors), shown(counts.out_of_memory),
              shown(counts.hook_failures));
  if (counts.calls >= kCalls) CHECK(counts.results > counts.calls / 4);
  if (counts.calls < kEnoughForAll) return;
  for (const ApiFunction& function : api_table()) {
    INFO(function.name);
    CHECK(counts.returned[function.name] > 0);
  }
}

}  // namespace fuzz
