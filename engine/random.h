// Generators: they assign random numbers to draws.
//
// A generator holds a seed and the next free offset, nothing else; the numbers themselves come from
// engine/philox.h as a function of (seed, offset, element). A draw of a whole tensor reserves one offset and
// may then fill its elements in any order, on any number of threads. A program that makes the same draws in
// the same order gets the same numbers.
//
// All members may be called from several threads at the same time. Seed and offset are read and changed together, so a
// draw never mixes the seed of one manual_seed with the offset of another. Threads that draw concurrently get different
// offsets; the scheduler decides which thread gets which.
#pragma once

#include <cstdint>
#include <mutex>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// A position in the random stream: what a draw needs, and what state() saves.
struct GeneratorState {
  uint64_t seed = 0;
  uint64_t offset = 0;

  bool operator==(const GeneratorState&) const = default;
};

class Generator {
 public:
  constexpr explicit Generator(uint64_t seed = 0) : state_{seed, 0} {}
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  /// Starts the stream of this seed, at offset 0.
  void manual_seed(uint64_t seed) { set_state({seed, 0}); }

  /// Takes `count` offsets and returns the seed and the first of them.
  GeneratorState reserve(uint64_t count = 1);
  /// Returns the offsets of a reserve(), unless more were taken, or the state was set, since.
  void give_back(GeneratorState first, uint64_t count = 1);

  /// The seed and the next free offset.
  GeneratorState state() const;
  void set_state(GeneratorState state);

 private:
  mutable std::mutex mutex_;
  GeneratorState state_;
};

/// The generator of every random op that is not given one. Seed 0 at start: a program that seeds nothing is
/// reproducible too.
Generator& default_generator();

/// Seeds the default generator.
void manual_seed(uint64_t seed);

}  // namespace retrograd
#pragma GCC visibility pop
