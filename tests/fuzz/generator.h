// The generator: makes a program from a seed. It runs each step as it is made, so that it knows what there
// is: types, layouts and numbers are those of real values, and no type rule is told twice.
//
// A program has 5 to 60 steps beside its leaves. Which features it uses is drawn first, for each program
// anew (swarm testing: Groce et al., ISSTA 2012): else writes in place, which make many backwards fail,
// would be in every program.
#pragma once

#include "tests/fuzz/program.h"

namespace fuzz {

Program generate(uint64_t seed);

/// The program at other sizes.
Program at_other_sizes(const Program& program);
/// The program with one integer, number, word or dtype changed: a graph captured for the one must not serve
/// the other, unless that makes no difference.
Program with_one_change(const Program& program);

}  // namespace fuzz
