// Sorting of lines: see cuda/kernels/sort_call.h. CUB sorts (cuda/kernels/library_sort.h); the kernels here convert
// elements to keys and write results to their positions.
#include "cuda/kernels/sort_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
// Included after it, since they need RG_TARGET.
#include "cuda/kernels/grid.h"
#include "cuda/kernels/library_sort.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

// Nan is the largest, -0 counts as 0. `infinity`: the bits of the largest number.
template <class U>
RG_HD uint64_t key_of_float(const void* x, int64_t at, U infinity) {
  constexpr U sign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  const U bits = static_cast<const U*>(x)[at], magnitude = bits & static_cast<U>(~sign);
  if (magnitude > infinity) return static_cast<U>(~U{0});
  if (magnitude == 0) return sign;
  return bits & sign ? static_cast<U>(~bits) : static_cast<U>(bits | sign);
}

RG_HD uint64_t ascending_key(const SortCall& call, int64_t at) {
  const void* const x = call.x;
  switch (call.element) {
    case Element::f64: return key_of_float<uint64_t>(x, at, uint64_t{0x7ff} << 52);
    case Element::f32: return key_of_float<uint32_t>(x, at, 0x7f800000u);
    case Element::f16: return key_of_float<uint16_t>(x, at, 0x7c00);
    case Element::bf16: return key_of_float<uint16_t>(x, at, 0x7f80);
    case Element::f8e4m3: return key_of_float<uint8_t>(x, at, 0x7e);
    case Element::f8e5m2: return key_of_float<uint8_t>(x, at, 0x7c);
    case Element::i64: {
      const uint64_t v = static_cast<const uint64_t*>(x)[at];
      return call.is_plain ? v + 1 : v ^ (uint64_t{1} << 63);
    }
    case Element::i32: return static_cast<const uint32_t*>(x)[at] ^ (uint32_t{1} << 31);
    case Element::u8: return static_cast<const uint8_t*>(x)[at];
    case Element::b8: return static_cast<const uint8_t*>(x)[at] != 0;
  }
  return 0;
}

RG_HD uint64_t key_of(const SortCall& call, int64_t at) {
  const uint64_t key = ascending_key(call, at);
  return call.descending ? ~key & (~uint64_t{0} >> (64 - call.bits)) : key;
}

// The k-th entry of a line that begins at at[0] in x and at at[1] in the results.
RG_HD void put(const SortCall& call, const Offsets<2>& at, int64_t k, int64_t place) {
  const int64_t to = at[1] + k * call.result_step, from = at[0] + place * call.x_step;
  call.places[to] = place;
  if (!call.values) return;
  switch (call.width) {
    case 1: static_cast<uint8_t*>(call.values)[to] = static_cast<const uint8_t*>(call.x)[from]; break;
    case 2: static_cast<uint16_t*>(call.values)[to] = static_cast<const uint16_t*>(call.x)[from]; break;
    case 4: static_cast<uint32_t*>(call.values)[to] = static_cast<const uint32_t*>(call.x)[from]; break;
    default: static_cast<uint64_t*>(call.values)[to] = static_cast<const uint64_t*>(call.x)[from];
  }
}

// ---- choosing ---------------------------------------------------------------------------------------------

// Entries with keys of up to 32 bits, and with longer ones. No two are equal.
struct Narrow {
  uint64_t bits;
  RG_HD static Narrow of(uint64_t key, int64_t place) { return {key << 32 | static_cast<uint64_t>(place)}; }
  RG_HD static Narrow last() { return {~uint64_t{0}}; }
  RG_HD int64_t place() const { return static_cast<int64_t>(bits & 0xffffffffu); }
  RG_HD bool operator<(const Narrow& b) const { return bits < b.bits; }
};

struct Wide {
  uint64_t key, where;
  RG_HD static Wide of(uint64_t key, int64_t place) { return {key, static_cast<uint64_t>(place)}; }
  RG_HD static Wide last() { return {~uint64_t{0}, ~uint64_t{0}}; }
  RG_HD int64_t place() const { return static_cast<int64_t>(where); }
  RG_HD bool operator<(const Wide& b) const { return key != b.key ? key < b.key : where < b.where; }
};

// How lines are divided, in numbers that are known before the launch.
struct TileGrid {
  StridedGrid<2> lines;
  Divider of_line;
  int64_t tiles_of_line, tiles;
};

template <int T>
constexpr int kThreadsOfTeams = T > 32 ? T : kThreads;

template <class E, int T>
__global__ void __launch_bounds__(kThreadsOfTeams<T>)
    choose_kernel(const SortCall call, const SortRound round, const TileGrid grid) {
  using Sort = TeamSort<E, T>;
  constexpr int kTeams = kThreadsOfTeams<T> / T, kTile = T * kSortItems;
  __shared__ typename Sort::Room rooms[kTeams];
  const int team = static_cast<int>(threadIdx.x) / T, lane = static_cast<int>(threadIdx.x) % T;
  E* const own = rooms[team].tile;
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * kTeams + team;
  const bool is_there = tile < grid.tiles;
  const int64_t line = is_there ? grid.of_line(tile) : 0;
  const int64_t first = (tile - line * grid.tiles_of_line) * kTile;
  const Offsets<2> at(grid.lines, line);
  for (int s = lane; s < kTile; s += T) {
    const int64_t i = first + s;
    E e = E::last();
    if (is_there && i < round.length)
      e = round.from ? static_cast<const E*>(round.from)[line * round.length + i]
                     : E::of(key_of(call, at[0] + i * call.x_step), i);
    own[s] = e;
  }
  __syncthreads();
  Sort::run(rooms[team], lane);
  __syncthreads();
  if (!is_there) return;
  for (int s = lane; s < kTile && s < call.count; s += T)
    if (round.to)
      static_cast<E*>(round.to)[tile * call.count + s] = own[s];
    else
      put(call, at, s, own[s].place());
}

template <class E, int T>
void choose_tiles(const SortCall& call, const SortRound& round, StreamHandle stream) {
  constexpr int kTeams = kThreadsOfTeams<T> / T;
  const int64_t of_line = round.tiles(), tiles = call.lines.numel * of_line;
  const TileGrid grid{grid_of(call.lines), Divider(of_line, tiles), of_line, tiles};
  launch(choose_kernel<E, T>,
         {static_cast<unsigned>((tiles + kTeams - 1) / kTeams), 1, static_cast<unsigned>(kThreadsOfTeams<T>)},
         stream, call, round, grid);
}

template <class E>
void choose_entries(const SortCall& call, const SortRound& round, StreamHandle stream) {
  if (round.length <= 4 * kSortItems) return choose_tiles<E, 4>(call, round, stream);
  if (round.length <= 16 * kSortItems) return choose_tiles<E, 16>(call, round, stream);
  if (round.length <= 64 * kSortItems) return choose_tiles<E, 64>(call, round, stream);
  static_assert(256 * kSortItems == kSortTile);
  choose_tiles<E, 256>(call, round, stream);
}

void launch_choose(const SortCall& call, const SortRound& round, StreamHandle stream) {
  call.entry_bytes() == 8 ? choose_entries<Narrow>(call, round, stream)
                          : choose_entries<Wide>(call, round, stream);
}

// ---- sorting ----------------------------------------------------------------------------------------------

// Elements of a group, line by line.
struct GroupGrid {
  StridedGrid<2> lines;
  Divider of_line;
  int64_t first, length, numel;
};

template <class Key>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(const SortCall call, const GroupGrid grid, Key* keys, uint32_t* numbers, bool has_line) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= grid.numel) return;
  const int64_t line = grid.of_line(i), place = i - line * grid.length;
  uint64_t key = key_of(call, Offsets<2>(grid.lines, grid.first + line)[0] + place * call.x_step);
  if (has_line) key |= static_cast<uint64_t>(line) << call.bits;
  keys[i] = static_cast<Key>(key);
  numbers[i] = static_cast<uint32_t>(i);
}

__global__ void __launch_bounds__(kThreads)
    line_keys_kernel(const GroupGrid grid, const uint32_t* numbers, uint32_t* keys) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < grid.numel) keys[i] = static_cast<uint32_t>(grid.of_line(numbers[i]));
}

// The first call.count of each line of `numbers`, in order.
__global__ void __launch_bounds__(kThreads)
    finish_kernel(const SortCall call, const GroupGrid grid, const uint32_t* numbers, const Divider of_result,
                  int64_t results) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= results) return;
  const int64_t line = of_result(i), k = i - line * call.count, start = line * grid.length;
  put(call, Offsets<2>(grid.lines, grid.first + line), k, numbers[start + k] - start);
}

template <class Key>
Pairs<Key> pairs_of(const SortGroup& group, int64_t n, int bits, int from) {
  Pairs<Key> pairs{};
  for (int side = 0; side < 2; ++side) {
    pairs.keys[side] = static_cast<Key*>(group.keys[side]);
    pairs.numbers[side] = group.numbers[side ^ from];
  }
  pairs.n = static_cast<uint32_t>(n);
  pairs.bits = bits;
  return pairs;
}

template <class Key>
int sort_group(const SortCall& call, const SortGroup& group, StreamHandle stream) {
  const int64_t n = group.lines * call.length, results = group.lines * call.count;
  const GroupGrid grid{grid_of(call.lines), Divider(call.length, n), group.first, call.length, n};
  auto bytes = static_cast<size_t>(group.room_bytes);
  const bool joined = group.is_joined(call);
  const auto pairs = pairs_of<Key>(group, n, call.bits + (joined ? group.line_bits : 0), 0);
  launch(keys_kernel<Key>, threads_for(n), stream, call, grid, pairs.keys[0], pairs.numbers[0],
         joined && group.line_bits > 0);
  Sorted sorted = sort_pairs(group.room, bytes, pairs, stream);
  if (sorted.status == 0 && !joined) {
    const int now = sorted.side;
    const auto lines = pairs_of<uint32_t>(group, n, group.line_bits, now);
    const uint32_t* by_key = lines.numbers[0];
    launch(line_keys_kernel, threads_for(n), stream, grid, by_key, lines.keys[0]);
    sorted = sort_pairs(group.room, bytes, lines, stream);
    sorted.side ^= now;
  }
  if (sorted.status != 0) return sorted.status;
  const uint32_t* numbers = group.numbers[sorted.side];
  launch(finish_kernel, threads_for(results), stream, call, grid, numbers, Divider(call.count, results),
         results);
  return 0;
}

int launch_sort(const SortCall& call, const SortGroup& group, StreamHandle stream) {
  return group.key_bytes(call) == 4 ? sort_group<uint32_t>(call, group, stream)
                                    : sort_group<uint64_t>(call, group, stream);
}

template <class Key>
int64_t room_for(int64_t n, int bits) {
  size_t bytes = 0;
  sort_pairs(nullptr, bytes, pairs_of<Key>(SortGroup(), n, bits, 0), nullptr);
  return static_cast<int64_t>(bytes);
}

int64_t room(const SortCall& call, const SortGroup& group) {
  const int64_t n = group.lines * call.length;
  if (group.key_bytes(call) == 4) return room_for<uint32_t>(n, call.bits + group.line_bits);
  if (group.is_joined(call)) return room_for<uint64_t>(n, call.bits + group.line_bits);
  const int64_t first = room_for<uint64_t>(n, call.bits), second = room_for<uint32_t>(n, group.line_bits);
  return first > second ? first : second;
}

// ---- partitioning -----------------------------------------------------------------------------------------

struct GoesInFront {
  const uint8_t* x;
  int64_t step;
  bool marked;
  RG_HD bool operator()(int64_t place) const { return (x[place * step] != 0) == marked; }
};

// The positions that are not in front are in `places` from the last to the first.
__global__ void __launch_bounds__(kThreads)
    finish_partition_kernel(const SortCall call, const StridedGrid<2> lines, const uint32_t* places,
                            const int64_t* front) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= call.count) return;
  const int64_t behind = k - *front;
  put(call, Offsets<2>(lines, 0), k, places[behind < 0 ? k : call.length - 1 - behind]);
}

int partition(void* room, size_t& bytes, const SortCall& call, uint32_t* places, int64_t* front,
              StreamHandle stream) {
  const GoesInFront goes_in_front{static_cast<const uint8_t*>(call.x), call.x_step, call.descending};
  const int status = partition_places(room, bytes, goes_in_front, places, front, call.length, stream);
  if (!room || status != 0) return status;
  launch(finish_partition_kernel, threads_for(call.count), stream, call, grid_of(call.lines), places, front);
  return 0;
}

}  // namespace

void add_sort_launchers(Launchers& all) {
  static constexpr SortLaunchers own{launch_choose, room, launch_sort, partition};
  all.sort = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
