// The public functions, called with random arguments (api_arguments.h): whatever comes out of a call is a
// result, an Error or a RuntimeError. An InternalError, another exception or a crash is a fault of the library.
//
//   RETROGRAD_API_CALLS=1000000 RETROGRAD_FUZZ_SEED=7 ./bazelw run //tests/fuzz:api_fuzz_test
//
// Calls come in rounds of kRound, each with a pool of tensors of its own that its seed makes: a round can be run
// alone, with its number as the seed. By default as many rounds run as fit kSeconds. A call that crashes, or does
// not come back for kPatience seconds, is written to standard error; with RETROGRAD_API_TRACE each call is, before
// it is made.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <typeinfo>

#include "tests/fuzz/api_table.h"

namespace fuzz {
namespace {

constexpr int kRound = 500;
constexpr double kSeconds = 20;
constexpr unsigned kPatience = 60;
constexpr int64_t kMemory = int64_t{256} << 20;

// The call under way, for what runs when it crashes.
char current_call[1000];

void note_call(const std::string& text) {
  const size_t n = std::min(text.size(), sizeof current_call - 2);
  text.copy(current_call, n);
  current_call[n] = '\n';
  current_call[n + 1] = 0;
}

void write_call() { (void)!::write(2, current_call, std::char_traits<char>::length(current_call)); }

/// While it lives, a fatal signal writes the call first, then goes to who handled it before.
class CrashNote {
 public:
  CrashNote() {
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
    alarm(0);
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  CrashNote(const CrashNote&) = delete;

 private:
  static constexpr std::array<int, 4> kSignals = {SIGSEGV, SIGFPE, SIGBUS, SIGILL};
  static inline struct sigaction before_[kSignals.size()];
};

struct MemoryLimit {
  MemoryLimit() { rg::memory::set_limit(kMemory); }
  ~MemoryLimit() { rg::memory::set_limit(0); }
};

struct Counts {
  int64_t calls = 0, results = 0, errors = 0, out_of_memory = 0;
  std::map<std::string_view, int64_t> returned;  // by function
};

// What a result depends on is differentiated now and then.
void differentiate(Arguments& a) {
  Tensors roots, cotangents, leaves;
  for (const Tensor& t : a.results())
    if (t.is_floating_point() && t.requires_grad() && t.numel() < 100000) {
      roots.push_back(t);
      cotangents.push_back(rg::ones_like(t));
    }
  for (const Tensor& t : a.pool())
    if (t.is_floating_point() && t.requires_grad()) leaves.push_back(t);
  if (!roots.empty() && !leaves.empty())
    (void)rg::autograd::grad(roots, leaves, cotangents, true, a.random.chance(0.3), true);
}

void call(const ApiFunction& function, Arguments& a, Counts& counts) {
  ++counts.calls;
  a.begin(function.name);
  try {
    function.call(a);
    ++counts.results;
    ++counts.returned[function.name];
    if (a.random.chance(0.2)) differentiate(a);
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
  alarm(kPatience);
  Arguments arguments(seed);
  const bool trace = std::getenv("RETROGRAD_API_TRACE");
  arguments.on_ready = [trace](const std::string& text) {
    note_call(text);
    if (trace) write_call();
  };
  for (int i = 0; i < kRound; ++i) call(arguments.random.pick(api_table()), arguments, counts);
  for (const Tensor& t : arguments.pool()) t.set_grad({});  // what is recorded there would keep itself alive
}

}  // namespace

TEST_CASE("whatever the arguments are, a call returns or throws an exception of the library") {
  const char *asked = std::getenv("RETROGRAD_API_CALLS"), *first = std::getenv("RETROGRAD_FUZZ_SEED");
  const int64_t wanted = asked ? std::atoll(asked) : 0;
  uint64_t seed = first ? std::strtoull(first, nullptr, 10) : 1;
  const MemoryLimit limit;
  const CrashNote note;
  std::signal(SIGALRM, [](int) {
    write_call();
    _exit(124);
  });
  Counts counts;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  while (asked ? counts.calls < wanted : seconds() < kSeconds) run_round(seed++, counts);
  std::printf("%lld calls: %lld results, %lld errors, %lld times out of memory\n", static_cast<long long>(counts.calls),
              static_cast<long long>(counts.results), static_cast<long long>(counts.errors),
              static_cast<long long>(counts.out_of_memory));
  CHECK(counts.results > counts.calls / 20);
  if (counts.calls < 50000) return;
  for (const ApiFunction& function : api_table()) {
    INFO(function.name);
    CHECK(counts.returned[function.name] > 0);
  }
}

}  // namespace fuzz
