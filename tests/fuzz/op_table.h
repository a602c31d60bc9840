// The table of ops that programs consist of: for each function of the library how operands and arguments are chosen,
// and the call.
//
// Operands stay in the domain of an op, so that nan is rare: a row of log calls log(|x| + 0.5). Values that are too
// large, or not finite, are not chosen (generator.h). Each family has a file; a new family is a function declared here
// and a line in op_table.cc. coverage_test checks that each op's first and second derivative is reached.
#pragma once

#include <functional>
#include <span>

#include "engine/tensor.h"
#include "tests/fuzz/program.h"

namespace fuzz {

namespace rg = retrograd;
using rg::IntArray;
using rg::Tensor;
using rg::Tensors;

class Chooser;

/// A step was changed, and has not what its row needs.
struct MissingArgument {};

/// The input of a call: values of the step's operands, and its integers for this palette.
struct Args {
  Tensors operands;
  IntArray ints;
  std::vector<double> numbers;
  std::vector<std::string_view> words;

  const Tensor& operator[](size_t k) const { return entry(operands, k); }
  int64_t i(size_t k) const { return entry(ints, k); }
  double x(size_t k) const { return entry(numbers, k); }
  std::string_view word(size_t k) const { return entry(words, k); }
  /// The operand, or undefined when there are fewer.
  Tensor optional(size_t k) const { return k < operands.size() ? operands[k] : Tensor(); }

 private:
  template <class T>
  static const T& entry(const std::vector<T>& list, size_t k) {
    if (k >= list.size()) throw MissingArgument();
    return list[k];
  }
};

struct OpRow {
  std::string_view name;
  std::function<void(Chooser&)> choose;  // fills in the step that the chooser is about to make
  std::function<Tensors(const Args&)> run;
  bool is_view = false;
  bool is_elementwise = false;  // its result may be written into the first operand
};
using OpRows = std::vector<OpRow>;

void add_elementwise_rows(OpRows& rows);
void add_shape_rows(OpRows& rows);
void add_index_rows(OpRows& rows);
void add_reduction_rows(OpRows& rows);
void add_norm_rows(OpRows& rows);
void add_matrix_rows(OpRows& rows);
void add_window_rows(OpRows& rows);
void add_statistics_rows(OpRows& rows);

/// All rows, in a fixed order.
std::span<const OpRow> op_table();
/// The row of this name, or null.
const OpRow* find_row(std::string_view name);

// Into the domain of an op.
Tensor positive(const Tensor& x);    // at least 0.5
Tensor beyond_one(const Tensor& x);  // at least 1.25
Tensor unit(const Tensor& x);        // in (-0.9, 0.9)
Tensor fraction(const Tensor& x);    // in (0, 1)

}  // namespace fuzz
