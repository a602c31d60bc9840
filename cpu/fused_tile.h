// Running a fused program: FusedRun is one run, with what all threads share; FusedTiles goes over elements of
// the iteration space, tile by tile, on one thread.
//
// Elements are numbered in row-major order of the group's shape, and a tile is a range of them. An input that
// is contiguous in the computed type is read where it lies. Others come to a tile of their own before a pass:
// other dtypes, strides, broadcast operands. An input of one element fills its tile once; so does one that
// repeats, when all tiles begin at the same place of a repetition. Tiles are cut accordingly: where an input
// has runs (rows of a matrix to which a vector is added), a tile is made of whole runs, or lies within one.
//
// While a tile is computed, what the next one reads and writes in contiguous memory is fetched, some lines with
// each instruction: a tile is about a page, beyond which processors do not fetch by themselves, and all its lines
// at once would wait for each other.
#pragma once

#include "cpu/fused_program.h"
#include "cpu/kernels/layout.h"
#include "cpu/kernels/spans_stream.h"

namespace retrograd::cpu {

/// How one input is reached in one run.
class FusedSide {
 public:
  FusedSide(const TensorImpl& x, const Shape& shape, bool wide);

  /// In an input that is neither contiguous nor a single element: elements of the last dims that lie at one
  /// stride. Else 0.
  int64_t run() const { return kind_ == Kind::strided ? layout_.size[layout_.rank - 1] : 0; }
  /// What a tile holds of the input.
  struct Filled {
    const char* from = nullptr;
    int64_t phase = -1, count = 0;
  };
  /// Where the elements from `at` on lie one behind the other; else null.
  const char* lies(int64_t at) const {
    return kind_ == Kind::direct || kind_ == Kind::converted ? base_ + at * item_ : nullptr;
  }
  int64_t item() const { return item_; }
  /// Elements [at, at + count): where they are, or in `tile`, which has room for `room` elements.
  const void* read(int64_t at, int64_t count, void* tile, int64_t room, Filled& filled) const;

 private:
  enum class Kind : uint8_t { direct, converted, one, strided };
  const void* read_strided(int64_t at, int64_t count, void* tile, int64_t room, Filled& filled) const;
  void load(const char* from, int64_t step, int64_t count, void* tile) const;

  const char* base_;
  Layout layout_;
  int64_t item_;
  int64_t period_ = 0;  // after so many elements the input repeats; 0: it does not
  ScalarType dtype_;
  bool wide_, native_;
  Kind kind_;
};

class FusedRun {
 public:
  FusedRun(const FusedProgram& program, TensorImpl* const* inputs, TensorImpl* const* outputs,
           const void* const* attrs);

  const FusedProgram& program;
  std::vector<FusedSide> sides;  // of the sources
  std::vector<char*> outputs;
  std::vector<double> numbers;
  std::vector<const void*> part_attrs;  // of program.parts
  int64_t tile;                         // elements
  int64_t run = 0;                      // a tile does not cross multiples of it, if it is not 0

 private:
  void cut_tiles();
};

/// Elements of a tile where no input asks for fewer. Rows that are no longer are cut into whole ones.
int64_t most_tile(const FusedProgram& program);

class FusedTiles {
 public:
  /// Ranges follow one another up to element `end`, before which the next tile is fetched; 0: they do not.
  FusedTiles(const FusedRun& run, int64_t end);
  ~FusedTiles() { finish_streams(); }
  FusedTiles(const FusedTiles&) = delete;

  /// Where kept value i begins: that of the first element of a range.
  void set_kept(int i, char* at) { kept_[i] = at; }
  /// Where the elements of a tile are, after a pass.
  const void* at(int slot) const { return place_[slot]; }
  /// Computes elements [begin, end), and calls done(at, count) after each pass.
  template <class F>
  void range(int64_t begin, int64_t end, const F& done) {
    for (int64_t at = begin; at < end;) {
      const int64_t count = next(at, end);
      pass(at, count, at - begin);
      done(at, count);
      at += count;
    }
  }
  void range(int64_t begin, int64_t end) {
    range(begin, end, [](int64_t, int64_t) {});
  }

 private:
  static constexpr int64_t kRoom = 32768;  // bytes
  int64_t next(int64_t at, int64_t end) const;
  void pass(int64_t at, int64_t count, int64_t from_begin);
  inline void fetch(int64_t begin, int64_t end) const;

  const FusedRun& run_;
  const int64_t end_;
  const void* place_[kMaxFusedSlots];
  char* kept_[kMaxFusedSlots];
  FusedSide::Filled filled_[kMaxFusedTiles];
  alignas(64) char room_[kRoom];
};

}  // namespace retrograd::cpu
