// Other programs made of one: see generator.h.
#include <array>

#include "tests/fuzz/generator.h"
#include "tests/fuzz/random.h"

namespace fuzz {

Program at_other_sizes(const Program& program) {
  Random random(program.seed ^ 0x517E);
  Program other = program;
  for (int64_t& size : other.palette)
    if (random.chance(0.7)) size = random.between(1, 6);
  return other;
}

// The step is drawn by its number, so that it stays the same while the shrinker deletes others.
Program with_one_change(const Program& program) {
  Program other = program;
  Step* chosen = nullptr;
  uint64_t highest = 0;
  const auto lot = [&](const Step& step) {
    return Random(program.seed * 1009 + static_cast<uint64_t>(step.id));
  };
  for (Step& step : other.steps) {
    if (step.ints.empty() && step.numbers.empty() && step.words.empty()) continue;
    if (const uint64_t number = lot(step).next(); number >= highest) {
      chosen = &step;
      highest = number;
    }
  }
  if (!chosen) return other;
  Random random = lot(*chosen);
  random.next();
  if (!chosen->ints.empty() && random.chance(0.6))
    random.pick(chosen->ints) = {random.between(-1, 3)};
  else if (!chosen->numbers.empty())
    random.pick(chosen->numbers) = random.pick(std::array{0.0, 1.0, 2.0, -0.5, 0.375});
  else if (!chosen->words.empty())
    chosen->words.pop_back();
  return other;
}

}  // namespace fuzz
