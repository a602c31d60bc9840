// A fused group on its way to a program (cpu/fused_program.h): instructions on values, which have no places
// yet.
//
//   lower()    makes instructions of the nodes: a span kernel for an op, conversions where dtypes meet.
//   compose()  replaces several instructions by one that computes them together (cpu/fused_patterns.cc).
//
// A value is computed in float, or in double when it is `wide`. What a node gives in a dtype of 16 or 8 bits
// is a float that was rounded to that dtype after each op, as it is between kernels that run one by one. A
// bool is 1 or 0 in the type that its op computes in, or in the one that its consumer needs. So every
// instruction works on floats or on doubles, and nothing else.
#pragma once

#include <array>
#include <vector>

#include "cpu/kernels/reduce.h"
#include "cpu/kernels/table.h"

namespace retrograd::cpu {

inline constexpr int kMaxSpanInputs = 4;

struct FusedDraft {
  static constexpr int kNumber = -1;  // in place of an operand: the attribute `scalar` of the op

  struct Value {
    enum class Kind : uint8_t { source, number, result } kind;
    bool wide;
    int index;             // into sources or numbers; of a result: its instruction
    int uses = 0;          // by instructions, outputs and reductions
    int output = -1;       // of the group: where it is written to
    bool reduced = false;  // a reduction reads it
    int kept = -1;         // one of columns, which needs a panel of it
  };
  struct Instruction {
    const OpInfo* op;  // null: a conversion
    Span span;
    bool wide;
    bool in_place;  // its result may lie on an operand
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
  /// A number among the attributes of a node, `offset` bytes from their begin.
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
  int kept = 0;  // values that reductions read and that are no outputs
};

/// What Executor::fused_role says of a node whose op has a row in `table`. A clone is no part of a group: it is there for another layout, which
/// a kernel of its own turns tile by tile.
FusedRole fused_role(const KernelTable& table, const OpInfo& op, const void* attrs,
                     std::span<const TensorType> operands, const TensorType& result);

/// Where a number lies among the attributes of an op, in bytes from their begin.
uint32_t number_offset(const OpInfo& op, const void* attrs, std::string_view field);
/// False when the group cannot run as one step.
bool lower(const FusedGroup& group, const KernelTable& table, FusedDraft& draft);
void compose(FusedDraft& draft);

}  // namespace retrograd::cpu
