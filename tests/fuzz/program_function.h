// A random program as a function of its leaves: the steps that compute and write, without hooks and backwards. Sizes
// among the integers of a step are taken from the arguments.
//
// Parts of it may be recomputed in a backward: checkpoints and scopes with policies open before some steps, drawn by
// the number of the program, and end after others.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/generator.h"
#include "tests/fuzz/machine.h"

namespace fuzz {

class ProgramFunction {
 public:
  explicit ProgramFunction(const Program& program);

  /// Leaves out the steps that fail at these sizes, and those that use their values.
  void drop_failing(const IntArray& palette);
  Tensors arguments(const IntArray& palette) const;
  /// All values that are computed, in order. `recomputes`: with regions.
  Tensors operator()(const Tensors& arguments, bool recomputes = false) const;
  bool is_empty() const;

 private:
  IntArray palette_from(const Tensors& arguments) const;

  Program program_;
};

/// What a call gives: results, arguments after it, gradients.
struct Outcome {
  Tensors results, arguments, gradients;
};

/// Gradients of the sum of results, by arguments. Gradients of a result in the memory of an argument meet those of the
/// function's own uses of it in another order than eagerly (docs/compile.md, "Gradients of an argument"): `all`
/// includes them.
Tensors gradients_of(const Tensors& results, const Tensors& arguments, bool all);
Outcome call(const std::function<Tensors(const Tensors&)>& f, const Tensors& arguments, bool is_step,
             uint64_t seed, bool has_pair);
/// The first tensor that differs, bit for bit, but NaNs are alike; empty: none does.
std::string difference(const Tensors& eager, const Tensors& other, const std::string& what);
std::string types_of(const Tensors& arguments);

}  // namespace fuzz
