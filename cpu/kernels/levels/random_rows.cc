// Runs of a Philox stream for one instruction-set level: see cpu/kernels/levels/random_rows.h.
//
// kLanes blocks are computed side by side, word by word (Words); with AVX-512 each word is one register.
// interleave() then brings the four words of each block next to each other. Normals are made in pairs by Box
// and Muller's method. Choices of dropout take 16 bits each, and one word more where these do not decide.
// Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/random_rows.h"

#include "cpu/vec/vec_math.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int kLanes = 16;

/// Words 0 to 3 of kLanes blocks.
struct Words {
  alignas(64) uint32_t w[4][kLanes];
};

#if defined(__AVX512F__)
// The upper and lower halves of the products of all lanes with m: even and odd lanes are multiplied apart.
struct Products {
  __m512i high, low;

  Products(__m512i x, uint32_t m) {
    const __m512i factor = _mm512_set1_epi64(m);
    const __m512i even = _mm512_mul_epu32(x, factor),
                  odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), factor);
    high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    low = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
  }
};

[[gnu::always_inline]] inline __m512i exclusive_or(__m512i a, __m512i b, __m512i c) {
  return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}

// The rounds of philox() below in one register a word.
[[gnu::always_inline]] inline void rounds(uint32_t key0, uint32_t key1, Words& x) {
  __m512i w[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) w[i] = _mm512_load_si512(x.w[i]);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const Products a(w[0], 0xd2511f53), b(w[2], 0xcd9e8d57);
    w[0] = exclusive_or(b.high, w[1], _mm512_set1_epi32(static_cast<int>(key0)));
    w[2] = exclusive_or(a.high, w[3], _mm512_set1_epi32(static_cast<int>(key1)));
    w[1] = b.low;
    w[3] = a.low;
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) _mm512_store_si512(x.w[i], w[i]);
}
#else
[[gnu::always_inline]] inline void rounds(uint32_t key0, uint32_t key1, Words& x) {
  for (int round = 0; round < 10; ++round) {
    for (int k = 0; k < kLanes; ++k) {
      const uint64_t a = uint64_t{0xd2511f53} * x.w[0][k], b = uint64_t{0xcd9e8d57} * x.w[2][k];
      x.w[0][k] = static_cast<uint32_t>(b >> 32) ^ x.w[1][k] ^ key0;
      x.w[2][k] = static_cast<uint32_t>(a >> 32) ^ x.w[3][k] ^ key1;
      x.w[1][k] = static_cast<uint32_t>(b);
      x.w[3][k] = static_cast<uint32_t>(a);
    }
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
}
#endif

// Philox4x32-10 as in engine/philox.h.
[[gnu::always_inline]] inline void philox(PhiloxKey key, uint64_t first, Words& x) {
  for (int k = 0; k < kLanes; ++k) {
    const uint64_t counter = first + static_cast<uint64_t>(k);
    x.w[0][k] = static_cast<uint32_t>(counter);
    x.w[1][k] = static_cast<uint32_t>(counter >> 32);
    x.w[2][k] = static_cast<uint32_t>(key.offset);
    x.w[3][k] = static_cast<uint32_t>(key.offset >> 32);
  }
  rounds(static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32), x);
}

// put(k, count, words) for every kLanes blocks, of which `count` are wanted.
template <class F>
[[gnu::always_inline]] inline void for_blocks(PhiloxKey key, uint64_t first, int64_t blocks, const F& put) {
  Words x;
  int64_t at = 0;
  for (; at + kLanes <= blocks; at += kLanes) {
    philox(key, first + static_cast<uint64_t>(at), x);
    put(at, kLanes, x);
  }
  if (at == blocks) return;
  philox(key, first + static_cast<uint64_t>(at), x);
  put(at, static_cast<int>(blocks - at), x);
}

// out[4 * k + i] = x[i][k] for k < count. Four words of 4 bytes each move as squares within 16 bytes, and
// these among registers.
template <class T>
[[gnu::always_inline]] inline void interleave(const T (&x)[4][kLanes], int count, T* out) {
#if defined(__AVX512F__)
  if (count == kLanes) {
    __m512i w[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) w[i] = _mm512_loadu_si512(x[i]);
    const __m512i a = _mm512_unpacklo_epi32(w[0], w[1]), b = _mm512_unpackhi_epi32(w[0], w[1]),
                  c = _mm512_unpacklo_epi32(w[2], w[3]), d = _mm512_unpackhi_epi32(w[2], w[3]);
    const __m512i u[4] = {_mm512_unpacklo_epi64(a, c), _mm512_unpackhi_epi64(a, c),
                          _mm512_unpacklo_epi64(b, d), _mm512_unpackhi_epi64(b, d)};
    const __m512i low = _mm512_shuffle_i32x4(u[0], u[1], 0x44), low2 = _mm512_shuffle_i32x4(u[2], u[3], 0x44),
                  high = _mm512_shuffle_i32x4(u[0], u[1], 0xee),
                  high2 = _mm512_shuffle_i32x4(u[2], u[3], 0xee);
    _mm512_storeu_si512(out, _mm512_shuffle_i32x4(low, low2, 0x88));
    _mm512_storeu_si512(out + 16, _mm512_shuffle_i32x4(low, low2, 0xdd));
    _mm512_storeu_si512(out + 32, _mm512_shuffle_i32x4(high, high2, 0x88));
    _mm512_storeu_si512(out + 48, _mm512_shuffle_i32x4(high, high2, 0xdd));
    return;
  }
#endif
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < 4; ++i) out[4 * k + i] = x[i][k];
}

void words(PhiloxKey key, uint64_t first, int64_t blocks, uint32_t* out) {
  for_blocks(key, first, blocks,
             [&](int64_t at, int count, const Words& x) { interleave(x.w, count, out + 4 * at); });
}

float uniform(uint32_t word) { return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f; }
double uniform(uint32_t high, uint32_t low) {
  const uint64_t bits = uint64_t{high} << 32 | low;
  return static_cast<double>(static_cast<int64_t>(bits >> 11)) * 0x1p-53;
}

void uniform_floats(PhiloxKey key, uint64_t first, int64_t blocks, float* out) {
  for_blocks(key, first, blocks, [&](int64_t at, int count, const Words& x) {
    float u[4][kLanes];
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < kLanes; ++k) u[i][k] = uniform(x.w[i][k]);
    interleave(u, count, out + 4 * at);
  });
}

void uniform_doubles(PhiloxKey key, uint64_t first, int64_t blocks, double* out) {
  for_blocks(key, first, blocks, [&](int64_t at, int count, const Words& x) {
    for (int k = 0; k < count; ++k)
      for (int i = 0; i < 2; ++i) out[2 * (at + k) + i] = uniform(x.w[2 * i][k], x.w[2 * i + 1][k]);
  });
}

// Box-Muller: `radius` holds numbers in (0, 1], `angle` some in [0, 1); become the two normals of each pair.
template <class T>
[[gnu::always_inline]] inline void box_muller(T* radius, T* angle) {
  using V = Vec<T>;
  for (int k = 0; k < kLanes; k += V::size) {
    const V r = sqrt(log(V::load(radius + k)) * V(T(-2)));
    const V turn = V::load(angle + k) * V(static_cast<T>(2 * 3.141592653589793238463));
    (r * cos(turn)).store(radius + k);
    (r * sin(turn)).store(angle + k);
  }
}

void normal_floats(PhiloxKey key, uint64_t first, int64_t blocks, float* out) {
  for_blocks(key, first, blocks, [&](int64_t at, int count, const Words& x) {
    float pair[4][kLanes];
    for (int i = 0; i < 4; i += 2) {
      for (int k = 0; k < kLanes; ++k) {
        pair[i][k] = (static_cast<float>(x.w[i][k]) + 1.0f) * 0x1p-32f;
        pair[i + 1][k] = uniform(x.w[i + 1][k]);
      }
      box_muller(pair[i], pair[i + 1]);
    }
    interleave(pair, count, out + 4 * at);
  });
}

void normal_doubles(PhiloxKey key, uint64_t first, int64_t blocks, double* out) {
  for_blocks(key, first, blocks, [&](int64_t at, int count, const Words& x) {
    double pair[2][kLanes];
    for (int k = 0; k < kLanes; ++k) {
      pair[0][k] = 1.0 - uniform(x.w[0][k], x.w[1][k]);
      pair[1][k] = uniform(x.w[2][k], x.w[3][k]);
    }
    box_muller(pair[0], pair[1]);
    for (int k = 0; k < count; ++k)
      for (int i = 0; i < 2; ++i) out[2 * (at + k) + i] = pair[i][k];
  });
}

// Choices of dropout: 0 where an element is dropped. One in 2^16 needs a word more.
constexpr int64_t kChoices = 2048;

void settle(PhiloxKey key, uint64_t element, uint32_t low, uint16_t* choice) {
  Words x;
  philox(key, element / 4 | uint64_t{1} << 63, x);
  *choice = x.w[element % 4][0] < low ? 0 : 1;
}

void choose(PhiloxKey key, uint64_t first, int64_t n, DropChance chance, uint16_t* choices) {
  alignas(64) uint32_t bits[kChoices / 2];
  words(key, first, (n + 7) / 8, bits);
  if (chance.high > 0xffff) {  // all
    for (int64_t i = 0; i < n; ++i) choices[i] = 0;
    return;
  }
  typedef uint16_t Half __attribute__((may_alias));
  const Half* const halves = reinterpret_cast<const Half*>(bits);
  const auto high = static_cast<uint16_t>(chance.high);
  uint16_t open = 0;
  for (int64_t i = 0; i < n; ++i) {
    choices[i] = halves[i] >= high ? 0xffff : 0;
    open |= halves[i] == high ? 0xffff : 0;
  }
  if (!open) return;
  for (int64_t i = 0; i < n; ++i)
    if (halves[i] == high) settle(key, 8 * first + static_cast<uint64_t>(i), chance.low, choices + i);
}

template <class T>
void dropout(PhiloxKey key, uint64_t first, int64_t n, DropChance chance, const T* x, T scale, T* y) {
  alignas(64) uint16_t kept[kChoices];
  for (int64_t begin = 0; begin < n; begin += kChoices) {
    const int64_t count = n - begin < kChoices ? n - begin : kChoices;
    choose(key, first + static_cast<uint64_t>(begin / 8), count, chance, kept);
    for (int64_t i = 0; i < count; ++i) {
      const T scaled = x[begin + i] * scale;  // of all, so that there is no branch
      y[begin + i] = kept[i] ? scaled : T(0);
    }
  }
}

}  // namespace

const RandomTable& random_table() {
  static constexpr RandomTable table{words,          uniform_floats, uniform_doubles, normal_floats,
                                     normal_doubles, dropout<float>, dropout<double>};
  return table;
}

}  // namespace retrograd::cpu::RG_ISA
