// Matrix products of bfloat16 by AMX, a level of its own next to the three of cpu/gemm/levels and to AVX-512
// BF16: see cpu/gemm/levels/gemm_kernels.h.
//
// An AMX register ("tile") has 16 rows of 64 bytes. An instruction multiplies one of A, 16 rows with 16 pairs each,
// by one of B, 16 pairs with 16 columns each, and adds the 512 x 16 products to one of C. A register tile of this
// file is 2 x 2 of C, with two of A and two of B: all eight that exist. B comes in column panels of 32, as for
// AVX-512 BF16. A is read in place, or from row panels: sixteen pairs of all 32 rows, row by row, then the next
// sixteen; the last ones, where fewer are left, are padded with zeros, as B's are.
//
// Missing rows are not in the configuration, which sets the number of rows of each AMX register; setting it clears
// them. Sums are float, separate for low and high elements over sixteen pairs and then added; subnormal numbers are
// treated as zeros. Start reading at block().
#include "cpu/gemm/levels/gemm_pack_bfloat16.h"
#include "cpu/gemm/levels/gemm_stores.h"

#ifndef __AMX_BF16__
#error "this file needs AMX"
#endif

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int64_t kSide = 16;                  // of an AMX register, in rows, pairs or columns
constexpr int64_t kTileRows = 2 * kSide;       // and columns
constexpr int64_t kBlock = kSide * kTileRows;  // packed elements of a row panel, of sixteen pairs
static_assert(kTileRows == kColumns);

// Registers by number: C is 0 to 3, row by row, A 4 and 5, B 6 and 7.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  explicit Configuration(int64_t tile_rows) {
    const auto upper = static_cast<uint8_t>(least(kSide, tile_rows)),
               lower = static_cast<uint8_t>(tile_rows - upper);
    const uint8_t all[8] = {upper, upper, lower, lower, upper, lower, kSide, kSide};
    for (int i = 0; i < 8; ++i) {
      rows[i] = all[i];
      row_bytes[i] = all[i] > 0 ? 64 : 0;
    }
  }
};

// Sixteen pairs of a register tile's operands, and the distance to the next sixteen; steps in bytes.
struct Operands {
  const uint32_t* a;
  int64_t a_row, a_next;
  const uint32_t* b;
  int64_t b_row, b_next;
};

template <bool Lower, bool Right>
[[gnu::always_inline]] inline void add_products(const Operands& x) {
  _tile_loadd(6, x.b, x.b_row);
  if constexpr (Right) _tile_loadd(7, x.b + kSide, x.b_row);
  _tile_loadd(4, x.a, x.a_row);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (Right) _tile_dpbf16ps(1, 4, 7);
  if constexpr (Lower) {
    _tile_loadd(5, x.a + kSide * x.a_row / 4, x.a_row);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (Right) _tile_dpbf16ps(3, 5, 7);
  }
}

// The sums of a register tile, whose rows are contiguous in `sums`. Lower: there are more than 16 rows; Right: more
// than 16 columns. `rest` is added last, unless null.
template <bool Lower, bool Right>
void sum_products(Operands x, int64_t blocks, const Operands* rest, float* sums) {
  _tile_zero(0);
  if constexpr (Right) _tile_zero(1);
  if constexpr (Lower) _tile_zero(2);
  if constexpr (Lower && Right) _tile_zero(3);
  for (; blocks > 0; --blocks, x.a += x.a_next, x.b += x.b_next) add_products<Lower, Right>(x);
  if (rest) add_products<Lower, Right>(*rest);
  constexpr int64_t row = kTileRows * sizeof(float);
  _tile_stored(0, sums, row);
  if constexpr (Right) _tile_stored(1, sums + kSide, row);
  if constexpr (Lower) _tile_stored(2, sums + kSide * kTileRows, row);
  if constexpr (Lower && Right) _tile_stored(3, sums + kSide * kTileRows + kSide, row);
}

template <int R, int V>
void write_rows(const MicroTile<BFloat16>& t, const float* sums) {
  constexpr int L = kLanes<BFloat16>;
  Register<BFloat16> sum[R][V];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = load<BFloat16>(sums + i * kTileRows + v * L);
  write<BFloat16, R, V>(t, sum);
}

template <int R>
void write_rows(const MicroTile<BFloat16>& t, const float* sums) {
  t.columns > kSide ? write_rows<R, 2>(t, sums) : write_rows<R, 1>(t, sums);
}

class Block {
 public:
  explicit Block(const GemmBlock<BFloat16>& x)
      : x_(x),
        is_packed_(x.a_row == 1 && x.a_column == kTileRows),
        blocks_(x.k / kSide),
        left_(x.k % kSide),
        start_(x.start        ? x.start
               : x.accumulate ? x.c
                              : nullptr),
        start_row_(x.start ? x.start_row : x.c_row) {}

  void run() {
    int64_t configured = 0;
    for (int64_t j = 0; j < x_.n; j += kTileRows) {
      const uint32_t* const b = x_.b + j / kTileRows * x_.b_panel;
      if (left_ > 0) copy_rest_of_b(b + blocks_ * kSide * x_.b_row);
      for (int64_t i = 0; i < x_.m; i += kTileRows) {
        const int64_t rows = least(kTileRows, x_.m - i), columns = least(kTileRows, x_.n - j);
        if (rows != configured) {
          const Configuration configuration(rows);
          _tile_loadconfig(&configuration);
          configured = rows;
        }
        compute(i, rows, b, columns);
        write_tile(i, rows, j, columns);
      }
    }
    _tile_release();
  }

 private:
  void compute(int64_t i, int64_t rows, const uint32_t* b, int64_t columns) {
    const uint32_t* const a = x_.a + (is_packed_ ? i / kTileRows * x_.a_panel : i * x_.a_row);
    const int64_t a_row = is_packed_ ? kSide : x_.a_row, a_next = is_packed_ ? kBlock : kSide;
    const Operands all{a, 4 * a_row, a_next, b, 4 * x_.b_row, kSide * x_.b_row};
    const Operands rest{rest_of_a_, 4 * kSide, 0, rest_of_b_, 4 * kTileRows, 0};
    if (left_ > 0) copy_rest_of_a(a + blocks_ * a_next, is_packed_ ? left_ : x_.a_row, rows);
    const auto run = rows > kSide ? columns > kSide ? sum_products<true, true> : sum_products<true, false>
                     : columns > kSide ? sum_products<false, true>
                                       : sum_products<false, false>;
    run(all, blocks_, left_ > 0 ? &rest : nullptr, sums_);
  }
  void copy_rest_of_a(const uint32_t* from, int64_t row, int64_t rows) {
    const __mmask16 part = native_part_16(left_);
    for (int64_t i = 0; i < rows; ++i)
      _mm512_store_si512(rest_of_a_ + i * kSide, _mm512_maskz_loadu_epi32(part, from + i * row));
  }
  void copy_rest_of_b(const uint32_t* from) {
    for (int64_t l = 0; l < kSide; ++l)
      for (int64_t j = 0; j < kTileRows; ++j)
        rest_of_b_[l * kTileRows + j] = l < left_ ? from[l * x_.b_row + j] : 0;
  }

  void write_tile(int64_t i, int64_t rows, int64_t j, int64_t columns) {
    constexpr int kAtOnce = 8;
    MicroTile<BFloat16> t{};
    t.c = x_.c;
    t.c_row = x_.c_row;
    t.rounded = x_.rounded;
    t.rounded_row = x_.rounded_row;
    t.start_row = start_row_;
    t.alpha = x_.alpha;
    t.columns = static_cast<int>(columns);
    for (int64_t done = 0; done < rows;) {
      const int64_t row = i + done;
      if (x_.c) t.c = x_.c + row * x_.c_row + j;
      if (x_.rounded) t.rounded = x_.rounded + row * x_.rounded_row + j;
      if (start_) t.start = start_ + row * start_row_ + j;
      const bool many = rows - done >= kAtOnce;
      many ? write_rows<kAtOnce>(t, sums_ + done * kTileRows) : write_rows<1>(t, sums_ + done * kTileRows);
      done += many ? kAtOnce : 1;
    }
  }

  const GemmBlock<BFloat16>& x_;
  const bool is_packed_;  // A
  const int64_t blocks_, left_;
  const float* const start_;
  const int64_t start_row_;
  alignas(64) float sums_[kTileRows * kTileRows];
  alignas(64) uint32_t rest_of_a_[kBlock], rest_of_b_[kBlock];
};

void block(const GemmBlock<BFloat16>& x) { Block(x).run(); }

// Up to sixteen pairs of up to 32 rows.
void pack_block(const BFloat16* x, int64_t across, int64_t along, int64_t rows, int64_t k, uint32_t* out) {
  const int64_t pairs = (k + 1) / 2;
  if (across == 1 && pairs == kSide && k % 2 == 0) {
    alignas(64) uint32_t turned[kBlock];  // pairs of 32 neighbours
    pack_across<kTileRows>(x, along, rows, kSide, turned);
    for (int64_t i = 0; i < rows; i += kSide)
      turn_sixteen<kSide>(reinterpret_cast<const char*>(turned + i), 4 * kTileRows, kSide, out + i * kSide,
                          kSide);
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t l = 0; l < pairs; ++l) {
      const BFloat16* const low = x + i * across + 2 * l * along;
      out[i * pairs + l] = pair(low[0], 2 * l + 1 < k ? low[along] : BFloat16{});
    }
}

// Rows of pairs already in the required order, sixteen at a time.
void copy_block(const BFloat16* x, int64_t across, int64_t rows, uint32_t* out) {
  for (int64_t i = 0; i < rows; ++i) _mm512_storeu_si512(out + i * kSide, _mm512_loadu_si512(x + i * across));
}

void pack_a(const BFloat16* x, int64_t across, int64_t along, int64_t count, int, int64_t k, uint32_t* out,
            int64_t panel) {
  for (; count > 0; count -= kTileRows, x += kTileRows * across, out += panel) {
    const int64_t rows = least(kTileRows, count);
    for (int64_t l = 0; l < k; l += 2 * kSide) {
      const int64_t some = least(2 * kSide, k - l);
      uint32_t* const to = out + l / 2 * kTileRows;
      if (along == 1 && some == 2 * kSide)
        copy_block(x + l, across, rows, to);
      else
        pack_block(x + l * along, across, along, rows, some, to);
    }
  }
}

constexpr GemmKernels<BFloat16> kKernels{.rows = kTileRows,
                                         .columns = kTileRows,
                                         .row_panels = 12,
                                         .column_panels = kColumnPanels,
                                         .near_b = kNearB,
                                         .far_step = kFarStep,
                                         .block = block,
                                         .pack = pack,
                                         .pack_a = pack_a};

}  // namespace

const GemmKernels<BFloat16>& gemm_kernels() { return kKernels; }

}  // namespace retrograd::cpu::RG_ISA
