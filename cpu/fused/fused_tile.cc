// Tiles of a fused program: see cpu/fused/fused_tile.h.
//
// FusedSide::read() copies the elements of an input to a tile, unless they can be read in place.
// FusedRun::cut_tiles() decides once per run the length of tiles. FusedTiles::pass() computes one tile: it reads the
// inputs, points the outputs at their memory, and runs the instructions, while it prefetches the memory that the next
// tile reads and writes.
//
// Invariant: all tiles together have at most kBudget bytes, so that they stay in the first-level cache. Start reading
// at FusedTiles::pass.
#include "cpu/fused/fused_tile.h"

#include <algorithm>

#include "cpu/division.h"
#include "engine/prefetch.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kLeastFetched = 16;                         // elements, a line of floats
constexpr int64_t kMostElements = 1024, kLeastElements = 64;  // of a tile
constexpr int64_t kBudget =
    24576;  // bytes of all tiles: with what is read and written they stay in the first-level cache

// The tile length that cuts n elements into as few tiles as `most` allows, of nearly equal length.
int64_t even_tile(int64_t n, int64_t most, int64_t step) {
  return std::min(most, round_up(ceil_div(n, ceil_div(n, most)), step));
}

}  // namespace

FusedSide::FusedSide(const TensorImpl& x, const Shape& shape, bool wide)
    : base_(static_cast<const char*>(x.data())),
      layout_(x, shape),
      item_(static_cast<int64_t>(element_size(x.dtype()))),
      dtype_(x.dtype()),
      wide_(wide),
      native_(x.dtype() == (wide ? kFloat64 : kFloat32)) {
  if (layout_.rank == 1 && (layout_.stride[0] == 0 || layout_.size[0] == 1))
    kind_ = Kind::one;
  else if (layout_.rank == 1 && layout_.stride[0] == 1)
    kind_ = native_ ? Kind::direct : Kind::converted;
  else
    kind_ = Kind::strided;
  if (kind_ == Kind::strided && layout_.stride[0] == 0) period_ = layout_.numel() / layout_.size[0];
}

void FusedSide::load(const char* from, int64_t step, int64_t count, void* tile) const {
  const int dtype = static_cast<int>(dtype_);
  if (wide_)
    convert_table<double>().load[dtype](from, step, count, static_cast<double*>(tile));
  else
    convert_table<float>().load[dtype](from, step, count, static_cast<float*>(tile));
}

const void* FusedSide::read(int64_t at, int64_t count, void* tile, int64_t room, Filled& filled) const {
  switch (kind_) {
    case Kind::direct: return base_ + at * item_;
    case Kind::converted: load(base_ + at * item_, 1, count, tile); return tile;
    case Kind::one:
      if (!filled.from) load(base_, 0, room, tile);
      filled.from = base_;
      return tile;
    case Kind::strided: break;
  }
  return read_strided(at, count, tile, room, filled);
}

const void* FusedSide::read_strided(int64_t at, int64_t count, void* tile, int64_t room,
                                    Filled& filled) const {
  const int64_t step = layout_.stride[layout_.rank - 1], size = layout_.size[layout_.rank - 1];
  if (at % size + count <= size) {
    const char* from = base_ + layout_.offset(at) * item_;
    if (native_ && step == 1) return from;
    if (step != 0)
      load(from, step, count, tile);
    else if (filled.from != from)
      load(from, 0, room, tile);
    filled.from = step == 0 ? from : nullptr;
    return tile;
  }
  const int64_t phase = period_ ? at % period_ : -1;
  if (phase >= 0 && filled.phase == phase && filled.count >= count) return tile;
  filled = {nullptr, phase, count};
  const int64_t width = wide_ ? 8 : 4;
  layout_.for_runs(at, at + count, [&](int64_t offset, int64_t stride, int64_t n, int64_t to) {
    load(base_ + offset * item_, stride, n, static_cast<char*>(tile) + to * width);
  });
  return tile;
}

FusedRun::FusedRun(const FusedProgram& p, TensorImpl* const* inputs, TensorImpl* const* outs,
                   const void* const* attrs)
    : program(p) {
  sides.reserve(p.sources.size());
  for (const FusedDraft::Source& s : p.sources) sides.emplace_back(*inputs[s.input], p.shape, s.wide);
  for (size_t o = 0; o < p.output_items.size(); ++o) outputs.push_back(static_cast<char*>(outs[o]->data()));
  for (const FusedDraft::Number& n : p.numbers)
    numbers.push_back(
        reinterpret_cast<const Scalar*>(static_cast<const char*>(attrs[n.node]) + n.offset)->to_double());
  for (uint16_t node : p.parts) part_attrs.push_back(attrs[node]);
  cut_tiles();
}

int64_t most_tile(const FusedProgram& program) {
  const int64_t fit = kBudget / (std::max(1, program.tiles()) * program.item);
  return std::clamp(fit / kLeastElements * kLeastElements, kLeastElements, kMostElements);
}

// Runs and rows nest: each covers the last dims of the shape.
void FusedRun::cut_tiles() {
  tile = most_tile(program);
  int64_t shortest = 0;
  for (const FusedSide& side : sides)
    if (side.run() > 0 && (shortest == 0 || side.run() < shortest)) shortest = side.run();
  const int64_t row = program.reduces == FusedRole::reduce_rows ? program.columns : 1;
  if (row > tile) {  // then in pieces of kPieceLanes
    if (shortest % kPieceLanes == 0 || shortest >= row) run = shortest;
    tile = even_tile(std::min(row, kChunk), tile, kPieceLanes);
  } else if (shortest > tile) {
    tile = row > 1 ? tile / row * row : even_tile(shortest, tile, 16);
    run = shortest;
  } else {
    const int64_t whole = std::max({row, shortest, int64_t{1}});
    tile = tile / whole * whole;
  }
}

FusedTiles::FusedTiles(const FusedRun& run, int64_t end) : run_(run), end_(end) {
  const FusedProgram& p = run.program;
  static_assert(kMaxFusedTiles * kLeastElements * 8 <= kRoom && kBudget <= kRoom);
  static_assert(kLeastElements % kPieceLanes == 0);
  const int64_t width = run.tile * p.item;
  char* next = room_;
  for (int i = 0; i < p.first_output(); ++i, next += width) place_[i] = next;
  for (int i = p.first_register(); i < p.slots(); ++i, next += width) place_[i] = next;
  const int64_t used = std::min(run.tile, p.numel);
  for (size_t i = 0; i < p.numbers.size(); ++i) {
    void* tile = const_cast<void*>(place_[static_cast<size_t>(p.first_number()) + i]);
    if (p.numbers[i].wide)
      std::fill_n(static_cast<double*>(tile), used, run.numbers[i]);
    else
      std::fill_n(static_cast<float*>(tile), used, static_cast<float>(run.numbers[i]));
  }
}

int64_t FusedTiles::next(int64_t at, int64_t end) const {
  const int64_t count = std::min(run_.tile, end - at);
  return run_.run > 0 ? std::min(count, run_.run - at % run_.run) : count;
}

// Prefetches the memory that the program reads and writes for elements [begin, end).
[[gnu::always_inline]] inline void FusedTiles::fetch(int64_t begin, int64_t end) const {
  for (const FusedSide& side : run_.sides)
    if (const char* from = side.lies(begin)) prefetch<CacheLevel::second>(from, (end - begin) * side.item());
  if (!run_.program.fetches_outputs) return;
  for (size_t o = 0; o < run_.outputs.size(); ++o)
    if (const int64_t item = run_.program.output_items[o])
      prefetch<CacheLevel::second>(run_.outputs[o] + begin * item, (end - begin) * item);
}

void FusedTiles::pass(int64_t at, int64_t count, int64_t from_begin) {
  const FusedProgram& p = run_.program;
  const int64_t width = run_.tile * p.item;
  for (size_t i = 0; i < run_.sides.size(); ++i)
    place_[i] = run_.sides[i].read(at, count, room_ + static_cast<int64_t>(i) * width, run_.tile, filled_[i]);
  for (size_t o = 0; o < run_.outputs.size(); ++o)
    place_[static_cast<size_t>(p.first_output()) + o] = run_.outputs[o] + at * p.output_items[o];
  for (size_t k = 0; k < p.kept_wide.size(); ++k)
    place_[static_cast<size_t>(p.first_kept()) + k] = kept_[k] + from_begin * (p.kept_wide[k] ? 8 : 4);
  // A group may consist of a single reduction.
  const int64_t instructions = std::max<int64_t>(1, static_cast<int64_t>(p.code.size())),
                share = round_up(count / instructions + 1, kLeastFetched);
  int64_t ahead = at + count;
  const int64_t ahead_end = std::min(ahead + count, end_);
  for (const FusedInstruction& i : p.code) {
    if (ahead < ahead_end) fetch(ahead, std::min(ahead + share, ahead_end));
    ahead += share;
    const void* in[kMaxSpanInputs];
    for (int k = 0; k < i.inputs; ++k) in[k] = place_[i.in[k]];
    const void* const* parts = run_.part_attrs.data() + i.first_part;
    i.span(const_cast<void*>(place_[i.out]), in, count, i.composed ? parts : i.parts ? *parts : nullptr);
  }
}

}  // namespace retrograd::cpu
