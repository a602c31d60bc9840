// A fused group on its way to a program (cpu/fused/fused_program.h): instructions on values without assigned slots.
//
//   lower()    turns nodes into instructions: a span kernel for an op, conversions between different dtypes.
//   compose()  replaces several instructions by one that computes them together (cpu/fused/fused_compose.h).
//
// A value is computed in float, or in double when it is `wide`. The result of a node in a dtype of 16 or 8 bits is a
// float rounded to that dtype after each op, as between kernels that run one by one. A bool is 1 or 0 in the type
// that its op computes in, or in the type that its consumer needs. So every instruction works only on floats or on
// doubles.
#pragma once

#include <array>
#include <vector>

#include "cpu/kernels/reduce.h"
#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {

inline constexpr int kMaxSpanInputs = 4;

struct FusedDraft {
  static constexpr int kNumber = -1;  // in place of an operand: the attribute `scalar` of the op

  struct Value {
    enum class Kind : uint8_t { source, number, result } kind;
    bool wide;
    int index;             // into sources or numbers; of a result: its instruction
    int uses = 0;          // by instructions, outputs and reductions
    int output = -1;       // of the group: the output to which it is written
    bool reduced = false;  // a reduction reads it
    int kept = -1;         // read by a reduction of columns, which needs a panel of it
  };
  struct Instruction {
    const OpInfo* op;  // null: a conversion
    Span span;
    bool wide;
    bool in_place;  // its result may overwrite an operand
    int inputs;
    std::array<int, kMaxSpanInputs> in;  // values, or kNumber
    int out;                             // value
    std::vector<int> parts;              // nodes whose attributes it takes
    bool composed = false;               // then as an array of pointers to them
    bool absorbed = false;               // computed by another one
  };
  /// An input of the group, read as float or double.
  struct Source {
    int input;
    bool wide;
  };
  /// A number in the attributes of a node, at `offset` bytes.
  struct Number {
    int node;
    uint32_t offset;
    bool wide;
  };
  struct Reduction {
    const RowValue* row;
    int value, output;
    ScalarType dtype;
    IntList dims;
  };

  Shape shape;
  FusedRole reduces = FusedRole::none;  // reduce_rows or reduce_columns, if anything does
  bool streams = false;                 // outputs of their own type are written past the caches
  std::vector<Value> values;
  std::vector<Instruction> code;
  std::vector<Source> sources;
  std::vector<Number> numbers;
  std::vector<Reduction> reductions;
  int kept = 0;  // values that reductions read and that are not outputs
};

/// Executor::fused_role for a node whose op has a row in `table`. A clone is never part of a group: it changes the
/// layout, for which a separate kernel transposes tile by tile.
FusedRole fused_role(const KernelTable& table, const OpInfo& op, const void* attrs,
                     std::span<const TensorType> operands, const TensorType& result);

/// The offset in bytes of a number in the attributes of an op.
uint32_t number_offset(const OpInfo& op, const void* attrs, std::string_view field);
/// Returns false if the group cannot run as one step.
bool lower(const FusedGroup& group, const KernelTable& table, FusedDraft& draft);

}  // namespace retrograd::cpu
