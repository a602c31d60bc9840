// Runs of a draw's Philox stream (engine/philox.h): one table of functions per instruction-set level.
// Implemented by random_rows.cc.
//
// Words and uniforms have the bits of engine/philox.h; normals are made with the CPU's own log, sine and
// cosine, and may differ from it, and between levels, in the last bits. A function takes whole blocks, so
// that a run may begin at any block and runs may be computed by different threads.
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

/// Which stream: see engine/philox.h.
struct PhiloxKey {
  uint64_t seed, offset;
};

/// Which elements are dropped: see Chance in engine/philox.h.
struct DropChance {
  uint32_t high, low;
};

/// Each function takes whole blocks from block `first` on: of four words or floats, two doubles, or eight
/// elements of dropout, of which the last one may have fewer.
struct RandomTable {
  void (*words)(PhiloxKey key, uint64_t first, int64_t blocks, uint32_t* out);
  void (*uniform_floats)(PhiloxKey key, uint64_t first, int64_t blocks, float* out);
  void (*uniform_doubles)(PhiloxKey key, uint64_t first, int64_t blocks, double* out);
  void (*normal_floats)(PhiloxKey key, uint64_t first, int64_t blocks, float* out);
  void (*normal_doubles)(PhiloxKey key, uint64_t first, int64_t blocks, double* out);
  /// y[i] = x[i] * scale, or 0 where element i is dropped, for i < n. y may be x.
  void (*dropout_floats)(PhiloxKey key, uint64_t first, int64_t n, DropChance chance, const float* x,
                         float scale, float* y);
  void (*dropout_doubles)(PhiloxKey key, uint64_t first, int64_t n, DropChance chance, const double* x,
                          double scale, double* y);
};

RG_EACH_LEVEL(const RandomTable& random_table();)
/// The table of the best level.
inline const RandomTable& random_table() { RG_RETURN_BEST_LEVEL(random_table()); }

}  // namespace retrograd::cpu
