// Threads: sets the number of threads for a scope of a test, and restores the number that was set before.
//
// Results of the library do not depend on the number of threads; tests in this folder check that by running
// the same call with one thread and with several. The number is global: tests that use it do not run loops on
// other host threads at the same time.
#pragma once

#include "cpu/parallel.h"

namespace retrograd::cpu {

class Threads {
 public:
  explicit Threads(int count) : before_(get_num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace retrograd::cpu
