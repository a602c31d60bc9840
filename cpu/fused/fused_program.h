// The program of a fused group: instructions that are applied to one tile of the iteration space after the other.
//
// Every value has a slot, the place of its elements of the tile during a pass. In this order:
//   sources    an input, where it lies if that is contiguous memory of the computed type; else a tile of its own
//   numbers    a tile that repeats a number; one for each place of a number
//   outputs    the memory of the group's output
//   kept       what a reduction of columns reads: memory for a panel of several tiles (cpu/fused/fused.cc)
//   registers  tiles, used again when a value is dead
// An instruction reads slots and writes one. It may overwrite an operand's slot: a span kernel reads an element
// before writing it.
#pragma once

#include <optional>

#include "cpu/fused/fused_draft.h"

namespace retrograd::inline v0::cpu {

struct FusedInstruction {
  Span span;
  uint16_t in[kMaxSpanInputs];  // slots
  uint16_t out;
  uint8_t inputs;
  bool composed;  // its attributes are an array of pointers to those of its parts
  uint16_t first_part, parts;
};

struct FusedReduction {
  const RowValue* row;
  int slot, output;
  bool wide;
  ScalarType dtype;  // of operand and result
};

struct FusedProgram {
  Shape shape;
  int64_t numel = 0;
  std::vector<FusedDraft::Source> sources;
  std::vector<FusedDraft::Number> numbers;
  std::vector<int64_t> output_items;  // bytes of an element, 0 of a reduction's result
  bool fetches_outputs = true;        // except those written past the caches
  std::vector<bool> kept_wide;
  int registers = 0;
  int64_t item = 4;  // bytes of an element of the widest tile
  std::vector<FusedInstruction> code;
  std::vector<uint16_t> parts;  // nodes

  FusedRole reduces = FusedRole::none;
  int64_t rows = 1, columns = 1;  // of the iteration space, if something is reduced
  std::vector<FusedReduction> reductions;
  std::vector<int> last_read,
      written;  // instruction that reads an input last (-1: none), that writes an output

  int first_number() const { return static_cast<int>(sources.size()); }
  int first_output() const { return first_number() + static_cast<int>(numbers.size()); }
  int first_kept() const { return first_output() + static_cast<int>(output_items.size()); }
  int first_register() const { return first_kept() + static_cast<int>(kept_wide.size()); }
  int slots() const { return first_register() + registers; }
  /// Slots that need a tile: all except outputs and kept values.
  int tiles() const { return first_output() + registers; }
};

inline constexpr int kMaxFusedTiles = 64, kMaxFusedSlots = 128;

/// Nothing if the group needs too many slots, or reduces sizes that other kernels reduce in another order.
std::optional<FusedProgram> make_program(const FusedGroup& group, const KernelTable& table);

}  // namespace retrograd::cpu
