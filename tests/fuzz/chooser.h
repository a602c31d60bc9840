// Chooser: the view that a row of the op table has of a program that is being generated. It selects operands among the
// existing values, whose dtype, shape and numbers it knows, or makes leaves that fit, and fills in the step.
#pragma once

#include <functional>
#include <set>

#include "tests/fuzz/machine.h"
#include "tests/fuzz/random.h"

namespace fuzz {

class Chooser {
 public:
  using Accept = std::function<bool(const Tensor&)>;
  static constexpr int64_t kMostElements = 512;  // of an operand

  Chooser(Program& program, Machine& machine, Random& random)
      : random(random), program_(program), machine_(machine) {}

  Random& random;
  Step step;  // in the making

  // Each adds an operand to the step and returns its value.
  /// A floating value with so many dims, moderate numbers.
  Tensor value(int min_rank = 0, int max_rank = 4, const Accept& accept = {});
  /// A value of the forward: the size of the memory of a gradient is not specified.
  Tensor forward_value(int min_rank, int max_rank, const Accept& accept);
  /// One of this shape, and of the first operand's dtype.
  Tensor shaped(const IntArray& shape);
  /// One that broadcasts with the first operand; now and then of another dtype.
  Tensor partner();
  /// Integers in [0, bound).
  Tensor indices(const IntArray& shape, int64_t bound);
  Tensor mask(const IntArray& shape);
  /// A new leaf; it does not become an operand.
  Ref leaf(const IntArray& shape, std::string_view dtype, std::vector<std::string_view> words);

  void integer(int64_t value) { step.ints.push_back({value}); }
  void number(double low, double high) { step.numbers.push_back(random.number(low, high)); }
  void word(std::string_view word) { step.words.push_back(word); }
  void flag(double p = 0.5) { integer(random.chance(p)); }
  /// A dim of t, counted from either end, becomes an integer of the step; returned counted from the front.
  int64_t dim(const Tensor& t);
  /// Some size between 1 and `most`.
  int64_t length(int64_t most) { return random.between(1, std::max<int64_t>(most, 1)); }
  /// A size of the palette.
  int64_t size() { return random.pick(program_.palette); }

  /// Appends the step and runs it. False when it gave an error.
  bool commit(Step next);
  /// All values of the program that `accept` likes.
  std::vector<Ref> candidates(const Accept& accept) const;
  /// One of them, late ones more often.
  Ref favour_late(const std::vector<Ref>& refs);
  Machine& machine() { return machine_; }
  Program& program() { return program_; }
  int next_id() const { return static_cast<int>(program_.steps.size()) + 1; }
  std::string_view main_dtype = "f32";
  double other_dtypes = 0.1;

 private:
  Tensor add(Ref ref);
  Tensor pick_or_make(int min_rank, int max_rank, const Accept& accept, int highest_order);
  Int as_size(int64_t value) const;
  std::string_view some_dtype();

  Program& program_;
  Machine& machine_;
};

}  // namespace fuzz
