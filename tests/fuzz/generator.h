// The generator: makes a program from a seed. It runs each step as it is made, so that it knows the existing values:
// types, layouts and numbers are real, and no type rule is written twice.
//
// A program has 5 to 60 steps in addition to its leaves. The features it uses are drawn first, separately for each
// program (swarm testing: Groce et al., ISSTA 2012): otherwise in-place writes, which make many backwards fail, would
// be in every program.
#pragma once

#include "tests/fuzz/program.h"

namespace fuzz {

Program generate(uint64_t seed);

/// The program at other sizes.
Program at_other_sizes(const Program& program);
/// The program with one integer, number, word or dtype changed: a graph captured for one must not be used for the
/// other, unless that makes no difference.
Program with_one_change(const Program& program);

}  // namespace fuzz
