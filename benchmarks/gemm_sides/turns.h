// The turns of the sides on a problem, each after runs that do not count: the first runs are not representative, since
// their operands are in no cache and their threads sleep.
//
// On the CPU a side has a process of its own, a child of this one that begins with the operands at the same addresses,
// and each of its threads has a processor: the threads of a side wait in loops for tens of milliseconds after its turn
// (OpenBLAS's for 2^26 cycles), and two libraries may share a thread runtime. Between its turns such a process is
// stopped, including its threads. On a device all sides are in this process, since no device state survives a fork.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/gemm_sides/side.h"

namespace bench {

struct Contender {
  std::string name;
  /// Computes the product `runs` times; returns the seconds of one run. In a separate process this is the least of
  /// them, with fewer runs if they are long, and processor time for long runs with one thread; else it is the mean.
  /// Empty if the side has no kernel. The problem outlives it.
  std::function<double(int runs)> turn;
  std::vector<float> result;  // empty if `turn` is
};

Contender contender_here(const Side& side, const Problem& problem, const Place& place);

/// With this number of threads. std::runtime_error when no process can be made, or when it ends with an error, which it
/// has printed.
Contender contender_in_process(const Side& side, const Problem& problem, int threads);

/// std::runtime_error unless all results are equal except for rounding.
void check_results(const std::vector<Contender>& contenders, const Problem& problem);

}  // namespace bench
