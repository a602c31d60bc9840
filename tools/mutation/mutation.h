// Called by the mutated sources of tools/mutation: selects the one mutant of the many in this binary that runs. The
// script writes
//
//   (::retrograd::mutation::is<decltype(x - y), decltype(x + y)>(17) ? (x + y) : (x - y))
//
// in place of x - y. The types must be the same, otherwise the file does not compile and the script drops the mutant: a
// conversion would change more than the formula. RETROGRAD_MUTANT is the number of the mutant. If
// RETROGRAD_MUTANT_REACH names a file, no mutant runs, and at exit the numbers of all mutants that were reached are
// written there: a test that does not reach a mutant need not be run with it.
#pragma once

#include <type_traits>

#include "engine/tensor.h"

namespace retrograd::mutation {

extern int selected;  // 0: none; -1: record the reached mutants

/// -x, also where no operator has been declared yet.
Tensor minus(const Tensor& x);
template <class T>
auto minus(const T& x) -> decltype(-x) {
  return -x;
}

/// Records that the mutant was reached; returns false.
bool note(int id);

template <class Original, class Mutated>
requires std::is_same_v<std::decay_t<Original>, std::decay_t<Mutated>>
inline bool is(int id) { return selected == id || (selected < 0 && note(id)); }

}  // namespace retrograd::mutation
