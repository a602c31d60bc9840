// Running a fused program: FusedRun is one run, with the data that all threads share; FusedTiles traverses elements
// of the iteration space, tile by tile, on one thread.
//
// Elements are numbered in row-major order of the group's shape, and a tile is a range of them. An input that is
// contiguous in the computed type is read in place. Other inputs (other dtypes, strides, broadcast operands) are
// copied to a tile before a pass. An input of one element fills its tile once; so does one that repeats, if all tiles
// begin at the same position of a repetition. Tiles are cut accordingly: if an input has runs (rows of a matrix to
// which a vector is added), a tile consists of whole runs, or is within one.
//
// While a tile is computed, the contiguous memory of the next tile is prefetched, some lines with each instruction: a
// tile is about a page, beyond which hardware prefetchers do not go, and all its lines at once would queue up.
#pragma once

#include "cpu/fused/fused_program.h"
#include "cpu/fused/levels/stream_span.h"
#include "cpu/kernels/layout.h"

namespace retrograd::inline v0::cpu {

/// Access to one input in one run.
class FusedSide {
 public:
  FusedSide(const TensorImpl& x, const Shape& shape, bool wide);

  /// In an input that is neither contiguous nor a single element: elements of the last dims with a common stride.
  /// Else 0.
  int64_t run() const { return kind_ == Kind::strided ? layout_.size[layout_.rank - 1] : 0; }
  /// The elements of the input that a tile holds.
  struct Filled {
    const char* from = nullptr;
    int64_t phase = -1, count = 0;
  };
  /// The address of the elements from `at` on if they are contiguous in memory; else null.
  const char* lies(int64_t at) const {
    return kind_ == Kind::direct || kind_ == Kind::converted ? base_ + at * item_ : nullptr;
  }
  int64_t item() const { return item_; }
  /// Elements [at, at + count): in place, or in `tile`, which has room for `room` elements.
  const void* read(int64_t at, int64_t count, void* tile, int64_t room, Filled& filled) const;

 private:
  enum class Kind : uint8_t { direct, converted, one, strided };
  const void* read_strided(int64_t at, int64_t count, void* tile, int64_t room, Filled& filled) const;
  void load(const char* from, int64_t step, int64_t count, void* tile) const;

  const char* base_;
  Layout layout_;
  int64_t item_;
  int64_t period_ = 0;  // number of elements after which the input repeats; 0: it does not
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
  int64_t run = 0;                      // if not 0, a tile does not cross multiples of it

 private:
  void cut_tiles();
};

/// Elements of a tile unless an input requires fewer. Rows up to this length are cut into tiles of whole rows.
int64_t most_tile(const FusedProgram& program);

class FusedTiles {
 public:
  /// Ranges are consecutive up to element `end`, and the next tile before it is prefetched; 0: they are not.
  FusedTiles(const FusedRun& run, int64_t end);
  ~FusedTiles() { finish_streams(); }
  FusedTiles(const FusedTiles&) = delete;

  /// Sets the address of kept value i for the first element of a range.
  void set_kept(int i, char* at) { kept_[i] = at; }
  /// The address of the elements of a tile, after a pass.
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
