// The default generator, and the locked members of Generator.
#include "engine/random.h"

namespace retrograd::inline v0 {
namespace {

constinit Generator the_default_generator;

}  // namespace

GeneratorState Generator::reserve(uint64_t count) {
  const std::lock_guard lock(mutex_);
  const GeneratorState first = state_;
  state_.offset += count;
  return first;
}

void Generator::give_back(GeneratorState first, uint64_t count) {
  const std::lock_guard lock(mutex_);
  if (state_ == GeneratorState{first.seed, first.offset + count}) state_ = first;
}

GeneratorState Generator::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void Generator::set_state(GeneratorState state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
}

Generator& default_generator() { return the_default_generator; }

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace retrograd
