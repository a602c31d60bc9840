// Threads: sets the number of threads for a scope of a test.
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
