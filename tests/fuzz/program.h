// A program of the fuzzer is data: a list of steps, each of which makes values, changes some, or runs a
// backward. The machine (machine.h) runs it; to_string() writes it as text:
//
//   # seed 55; A = 6 B = 6 C = 6 D = 1
//   v1 = leaf [A] grad transposed f32
//   v2 = ceil(v1)
//   v3 = leaf [A,A,A] grad f32
//   v4 = adaptive_avg_pool2d(v3) [2,1]
//   v5 = in_place log(v2)
//   v6 = backward(v4,v4) ones retain
//
// Every list of steps is a program. An operand that does not exist, since its step was deleted or gave an error, makes
// the steps that use it no-ops; an argument that does not fit gives an error of the library. Both are noted and
// compared like any other result. So the shrinker (shrink.h) may delete and change anything.
//
// Sizes are numbers, or places in the program's palette: A, B, ... Another palette is the same program at
// other sizes.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/shape.h"

namespace fuzz {

enum class Kind : uint8_t {
  leaf,         // ints: shape. words: dtype, layout, "grad", "index" (last int: bound), "mask", "ties"
  op,           // name: of a row of the op table
  view,         // the same, of a row whose result shares memory
  in_place,     // name: of a row; the result is written into the first operand
  detach,       // the first operand without history, on its memory
  open,         // name: a region: no_grad, enable_grad, allow_mutation, or a pair (words)
  close,        // the innermost open region
  hook,         // name: kind of hook; words: what it does
  remove_hook,  // that the step of the first operand registered
  retain_grad,
  pair_on_slot,   // ints: slot; words: the pair
  requires_grad,  // words: "on", "off"
  backward,       // of the operands; words: cotangents, flags; "into": only into `inputs`
  grad,           // of the operands with respect to `inputs`
  read_grad,      // .grad as a value
  clear_grad,
  drop,  // the values are released
};
inline constexpr int kKinds = static_cast<int>(Kind::drop) + 1;
std::string_view to_string(Kind kind);

/// A value: result `output` of a step.
struct Ref {
  int step = 0, output = 0;
  friend auto operator<=>(const Ref&, const Ref&) = default;
};

/// An integer of a step, or a place in the palette.
struct Int {
  int64_t value = 0;
  int palette = -1;
  int64_t in(const retrograd::IntArray& sizes) const {
    return palette < 0 ? value : sizes[static_cast<size_t>(palette)];
  }
};

struct Step {
  int id = 0;
  Kind kind = Kind::op;
  std::string_view name = {};  // names and words are literals
  std::vector<Ref> operands = {}, inputs = {};
  std::vector<Int> ints = {};
  std::vector<double> numbers = {};
  std::vector<std::string_view> words = {};

  bool has(std::string_view word) const;
};

struct Program {
  uint64_t seed = 0;
  retrograd::IntArray palette;
  std::vector<Step> steps;
};

std::string to_string(const Step& step);
std::string to_string(const Program& program);

}  // namespace fuzz
