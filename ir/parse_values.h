// ValueReader: reads numbers, expressions of symbols, types and attributes in the text of a graph (grammar:
// docs/ir.md). Expressions go into the graph's symbol table, where equal ones are one. They may nest to any depth.
#pragma once

#include <map>
#include <vector>

#include "engine/op.h"
#include "ir/text_cursor.h"

namespace retrograd::inline v0::ir {

class ValueReader {
 public:
  ValueReader(TextCursor& in, SymbolTable& symbols) : in_(in), symbols_(symbols) {}

  /// Declares the present symbols of the table to be those of the text.
  void expect_symbols();
  /// "s0 = 4" in the header.
  void symbol();
  /// "s0 < s1", which must hold.
  void guard();
  Scalar expression();
  /// The type of a value that exists.
  TensorType type();
  /// "{name=value, ...}": every field of the op's attributes. The number that stands for an operand is not among them;
  /// it is passed as an argument.
  std::vector<std::byte> attributes(const OpInfo& op, Scalar scalar);

 private:
  Scalar number();
  Scalar named();
  Scalar arithmetic(Arith op, Scalar lhs, Scalar rhs);
  Arith sign();
  int32_t id_of(Scalar s);
  int64_t integer();
  bool boolean();
  Dim dim();
  Shape shape();
  IntList list();
  ScalarType dtype();
  Device device();
  void check_sizes(const TensorType& type);
  void read(bool& v);
  void read(int64_t& v);
  void read(Dim& v);
  void read(Scalar& v);
  void read(Shape& v);
  void read(IntList& v);
  void read(ScalarType& v);
  void read(Device& v);

  TextCursor& in_;
  SymbolTable& symbols_;
  std::map<std::string, int32_t, std::less<>> names_;
  std::map<std::string, int32_t, std::less<>> expected_;  // not listed yet
  bool expects_ = false;
};

}  // namespace retrograd::ir
