// Threads that end leave no memory allocated: memory does not grow with their number.
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;

// Of the process, in KB.
int64_t resident() {
  std::ifstream statm("/proc/self/statm");
  int64_t all = 0, pages = 0;
  statm >> all >> pages;
  return pages * 4;
}

void backward() {
  const Tensor x = rg::ones({100, 100}).requires_grad_();
  rg::sum(rg::tanh(rg::mm(rg::exp(x), x))).backward();
}

// `count`, so many at a time.
void run_threads(int count, int at_once) {
  for (int done = 0; done < count; done += at_once) {
    std::vector<std::thread> threads;
    for (int i = 0; i < at_once; ++i) threads.emplace_back(backward);
    for (std::thread& t : threads) t.join();
  }
}

}  // namespace

TEST_CASE("short threads with a backward each") {
  for (const int at_once : {1, 20}) {
    run_threads(400, at_once);
    const int64_t before = resident();
    run_threads(2000, at_once);
    INFO(at_once << " at a time: " << before << " KB, then " << resident());
    CHECK(resident() < before + before / 4 + 4096);
  }
}
