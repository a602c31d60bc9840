// Parallel loops of cpu/parallel.h: every chunk once, a division by sizes only, exceptions, nesting, concurrent
// callers, fork.
//
// Not tested here: speed; data races (the tsan build of this file shows them); fork from inside a chunk,
// which is not allowed.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "cpu/parallel.h"
#include "engine/error.h"
#include "tests/cpu/threads.h"

namespace retrograd::cpu {
namespace {

/// How often each of `count` chunks ran.
std::vector<int> runs_of_chunks(int64_t count) {
  std::vector<std::atomic<int>> runs(count);
  parallel_for(count, [&](int64_t chunk) { runs[chunk].fetch_add(1, std::memory_order_relaxed); });
  return {runs.begin(), runs.end()};
}

TEST_CASE("each chunk runs once") {
  for (const int threads : {1, 2, 3, 7}) {
    const Threads scope(threads);
    for (const int64_t count : {0, 1, 2, 3, 100, 10000})
      CHECK(runs_of_chunks(count) == std::vector<int>(count, 1));
    const int64_t many = (int64_t{1} << 20) + 1;  // claimed several at a time
    CHECK(runs_of_chunks(many) == std::vector<int>(many, 1));
  }
}

// Each thread waits in its first chunk until all have one.
TEST_CASE("a thread begins with its own share of the chunks") {
  for (const int threads : {2, 3}) {
    const Threads scope(threads);
    for (const int64_t count : {3, 4, 7, 12}) {
      std::vector<std::atomic<int64_t>> first(threads);
      for (auto& chunk : first) chunk = -1;
      std::atomic<int> begun{0};
      parallel_for(count, [&](int64_t chunk) {
        int64_t none = -1;
        if (!first[loop_thread.number].compare_exchange_strong(none, chunk)) return;
        for (++begun; begun < threads;) std::this_thread::yield();
      });
      for (int thread = 0; thread < threads; ++thread) CHECK(first[thread] == count * thread / threads);
    }
  }
}

TEST_CASE("results are visible after the join, loop after loop") {
  const Threads scope(4);
  std::vector<int64_t> values(64);
  for (int64_t round = 0; round < 2000; ++round) {
    parallel_for(64, [&](int64_t chunk) { values[chunk] += chunk + round; });
  }
  for (int64_t chunk = 0; chunk < 64; ++chunk) CHECK(values[chunk] == 2000 * chunk + 1999 * 1000);
}

// Workers of the wider loops arrive late at the narrow ones, where kernels have no room for them.
TEST_CASE("only the threads of a loop take part in it") {
  const Threads scope(8);
  std::atomic<int> strangers{0};
  for (int round = 0; round < 20000; ++round) {
    parallel_for(8, [](int64_t) {});
    parallel_for(2, [&](int64_t) { strangers += loop_thread.number >= 2; });
  }
  CHECK(strangers == 0);
}

TEST_CASE("ranges are cut at multiples of the grain, whatever the number of threads") {
  for (const int threads : {1, 4}) {
    const Threads scope(threads);
    for (const int64_t size : {0, 1, 9, 10, 11, 95}) {
      std::vector<std::pair<int64_t, int64_t>> pieces((size + 9) / 10);
      parallel_range(size, 10, [&](int64_t begin, int64_t end) { pieces[begin / 10] = {begin, end}; });
      for (int64_t i = 0; i < static_cast<int64_t>(pieces.size()); ++i) {
        CHECK(pieces[i] == std::pair(i * 10, std::min(size, i * 10 + 10)));
      }
    }
  }
}

TEST_CASE("a second thread takes part") {
  const Threads scope(2);
  std::atomic<int> arrived{0};
  // Neither chunk can end without the other.
  parallel_for(2, [&](int64_t) {
    arrived.fetch_add(1);
    while (arrived.load() < 2) std::this_thread::yield();
  });
  CHECK(arrived.load() == 2);
}

TEST_CASE("a chunk that takes long holds up no other") {
  const Threads scope(2);
  std::atomic<int> done{0};
  // The thread with chunk 0 is stuck until the other one has run all other chunks.
  parallel_for(100, [&](int64_t chunk) {
    while (chunk == 0 && done.load() < 99) std::this_thread::yield();
    done.fetch_add(1);
  });
  CHECK(done.load() == 100);
}

TEST_CASE("threads that fell asleep are woken, by wider and narrower loops") {
  for (int count : {2, 5, 3, 4, 5}) {
    const Threads scope(count);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // longer than they spin
    std::atomic<int> arrived{0};
    parallel_for(count, [&](int64_t) {  // no chunk ends without the others
      arrived.fetch_add(1);
      while (arrived.load() < count) std::this_thread::yield();
    });
    CHECK(arrived.load() == count);
  }
}

TEST_CASE("an exception reaches the caller and the pool stays usable") {
  for (const int threads : {1, 3}) {
    const Threads scope(threads);
    for (const int64_t bad : {0, 7, 499}) {
      std::atomic<int> runs{0};
      const auto loop = [&] {
        parallel_for(500, [&](int64_t chunk) {
          runs.fetch_add(1);
          if (chunk == bad) throw std::runtime_error("chunk " + std::to_string(chunk));
        });
      };
      CHECK_THROWS_WITH(loop(), "chunk " + std::to_string(bad));
      CHECK(runs.load() >= 1);
      CHECK(runs.load() <= 500);
      CHECK(runs_of_chunks(50) == std::vector<int>(50, 1));
    }
  }
}

TEST_CASE("of many exceptions one is thrown") {
  const Threads scope(4);
  for (int round = 0; round < 100; ++round) {
    const auto loop = [] { parallel_for(64, [](int64_t chunk) { throw static_cast<int>(chunk); }); };
    CHECK_THROWS_AS(loop(), int);
  }
}

TEST_CASE("a loop inside a chunk runs on the thread of that chunk") {
  const Threads scope(3);
  std::atomic<int> elsewhere{0}, runs{0};
  parallel_for(8, [&](int64_t) {
    const std::thread::id outer = std::this_thread::get_id();
    parallel_for(8, [&](int64_t) {
      runs.fetch_add(1);
      if (std::this_thread::get_id() != outer) elsewhere.fetch_add(1);
    });
  });
  CHECK(runs.load() == 64);
  CHECK(elsewhere.load() == 0);
}

TEST_CASE("a loop of one chunk leaves the pool to the loop inside") {
  const Threads scope(2);
  std::atomic<int> arrived{0};
  parallel_for(1, [&](int64_t) {
    parallel_for(2, [&](int64_t) {
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();
    });
  });
  CHECK(arrived.load() == 2);
}

TEST_CASE("two host threads make progress at the same time") {
  const Threads scope(2);
  std::atomic<int> inside{0};
  // Each loop waits for the other to have begun: they must overlap.
  const auto host = [&] {
    bool first = true;
    parallel_for(2, [&](int64_t chunk) {
      if (chunk == 0 && std::exchange(first, false)) inside.fetch_add(1);
      while (inside.load() < 2) std::this_thread::yield();
    });
  };
  std::thread other(host);
  host();
  other.join();
  CHECK(inside.load() == 2);
}

TEST_CASE("many host threads, many loops") {
  const Threads scope(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> hosts;
  for (int host = 0; host < 4; ++host) {
    hosts.emplace_back([&] {
      for (int round = 0; round < 300; ++round)
        parallel_for(10, [&](int64_t chunk) { sum.fetch_add(chunk); });
    });
  }
  for (std::thread& host : hosts) host.join();
  CHECK(sum.load() == 4 * 300 * 45);
}

TEST_CASE("the number of threads is checked and changes between loops") {
  const Threads scope(2);
  for (const int threads : {0, -3, 1 << 20}) {
    try {
      set_num_threads(threads);
      FAIL("no error");
    } catch (const Error& e) {
      CHECK(e.category() == Category::bad_argument);
      CHECK_THAT(e.what(), Catch::Contains("parallel_test.cc"));
    }
  }
  CHECK(get_num_threads() == 2);
  for (const int threads : {5, 1, 3, 2}) {
    set_num_threads(threads);
    CHECK(get_num_threads() == threads);
    CHECK(runs_of_chunks(200) == std::vector<int>(200, 1));
  }
}

TEST_CASE("one thread runs everything in the caller, in order") {
  const Threads scope(1);
  std::vector<int64_t> order;
  parallel_for(20, [&](int64_t chunk) { order.push_back(chunk); });
  for (int64_t i = 0; i < 20; ++i) CHECK(order.at(i) == i);
}

#if !defined(__SANITIZE_THREAD__)  // starting threads after a fork of several threads is not supported there
TEST_CASE("a forked child has a pool of its own") {
  const Threads scope(2);
  CHECK(runs_of_chunks(100) == std::vector<int>(100, 1));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::atomic<int> arrived{0};
    parallel_for(2, [&](int64_t) {
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();
    });
    _exit(runs_of_chunks(100) == std::vector<int>(100, 1) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(runs_of_chunks(100) == std::vector<int>(100, 1));
}
#endif

}  // namespace
}  // namespace retrograd::cpu
