// The turns that sides take on a problem, each after runs that do not count: a clock says little about the
// first ones, whose operands are in no cache and whose threads sleep.
//
// On the CPU a side has a process of its own, a child of this one that begins with the operands where they
// lie here, and each thread of it a processor: the threads of a side wait in loops for tens of milliseconds
// after its turn (OpenBLAS's for 2^26 cycles), and two libraries may share a runtime of threads. Between its
// turns such a process is stopped, its threads with it. On a device all sides are here, since no device's
// state is there after a fork.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/gemm_sides/side.h"

namespace bench {

struct Contender {
  std::string name;
  /// Computes the product so often; the seconds that one run takes. In a process of its own that is the least
  /// of them, of fewer where they take long, a long one with one thread in processor time; else their mean.
  /// Empty where the side has no kernel. The problem outlives it.
  std::function<double(int runs)> turn;
  std::vector<float> result;  // empty with it
};

Contender contender_here(const Side& side, const Problem& problem, const Place& place);

/// With so many threads. std::runtime_error when there is no process to be had, or when it ends by an error,
/// which it has printed.
Contender contender_in_process(const Side& side, const Problem& problem, int threads);

/// std::runtime_error unless all results are equal but for rounding.
void check_results(const std::vector<Contender>& contenders, const Problem& problem);

}  // namespace bench
