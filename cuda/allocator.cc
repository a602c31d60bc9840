// See cuda/allocator.h. Order: segments and blocks, resting blocks, out-of-memory handling, the public functions.
#include "cuda/allocator.h"

#include <algorithm>

#include <fmt/format.h>

namespace retrograd::inline v0::cuda {
namespace {

constexpr int64_t kGranule = 512, kMiB = int64_t{1} << 20;
constexpr int64_t kSmall = kMiB;             // blocks up to this size come from small segments
constexpr int64_t kMost = int64_t{1} << 48;  // of one allocation: sums of such sizes do not overflow
constexpr size_t kListed = 16;               // blocks in a snapshot

int64_t rounded(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

int64_t segment_size(int64_t size) {
  if (size <= kSmall) return 2 * kMiB;
  return size <= 10 * kMiB ? 20 * kMiB : rounded(size, 2 * kMiB);
}

}  // namespace

bool Allocator::is_small(int64_t size) { return size <= kSmall; }

Allocator::~Allocator() {
  for (Segment& segment : segments_) {
    for (Block* b = segment.first; b;) delete std::exchange(b, b->behind);
    driver_.free(segment.memory);
  }
}

// ---- segments and blocks ----

// A new segment, as one free block. False when the driver has no memory for it.
bool Allocator::grow(Pool& pool, int64_t size) {
  const int64_t bytes = segment_size(size);
  void* memory = nullptr;
  const Status status = driver_.allocate(&memory, static_cast<size_t>(bytes));
  if (status == kMemoryAllocation) return false;
  health_.check(status, "allocating memory");
  segments_.push_back({memory, bytes, &pool == &small_, nullptr});
  Segment& segment = segments_.back();
  segment.first = new Block{static_cast<char*>(memory), bytes, 0, {}, &segment, nullptr, nullptr, {}, true};
  pool.insert(segment.first);
  stats_.reserved_bytes += bytes;
  stats_.peak_reserved = std::max(stats_.peak_reserved, stats_.reserved_bytes);
  ++stats_.segments;
  return true;
}

// The smallest free block that fits, cut to size; null when there is none.
Allocator::Block* Allocator::take(Pool& pool, int64_t size) {
  Block wanted{nullptr, size, 0, {}, nullptr, nullptr, nullptr, {}, true};
  const auto it = pool.lower_bound(&wanted);
  if (it == pool.end()) return nullptr;
  Block* block = *it;
  pool.erase(it);
  split(pool, block, size);
  block->is_free = false;
  return block;
}

// A large block keeps a remainder that would be too small for other large blocks.
void Allocator::split(Pool& pool, Block* block, int64_t size) {
  const int64_t rest = block->size - size;
  if (rest < (&pool == &small_ ? kGranule : kSmall + 1)) return;
  auto* behind = new Block{block->data + size, rest, 0, {}, block->segment, block, block->behind, {}, true};
  if (behind->behind) behind->behind->before = behind;
  block->behind = behind;
  block->size = size;
  pool.insert(behind);
}

// Joins the block with free neighbours.
void Allocator::make_free(Block* block) noexcept {
  Pool& pool = block->segment->is_small ? small_ : large_;
  block->is_free = true;
  if (Block* next = block->behind; next && next->is_free) {
    pool.erase(next);
    block->size += next->size;
    block->behind = next->behind;
    if (next->behind) next->behind->before = block;
    delete next;
  }
  if (Block* previous = block->before; previous && previous->is_free) {
    pool.erase(previous);
    previous->size += block->size;
    previous->behind = block->behind;
    if (block->behind) block->behind->before = previous;
    delete block;
    block = previous;
  }
  pool.insert(block);
}

// ---- resting blocks ----

// Oldest first, up to the first one that still rests: checking many blocks would cost more than it gains. An event on a
// lost device counts as fired: nothing runs there any more.
void Allocator::wake_fired() noexcept {
  for (; !resting_.empty(); resting_.pop_front()) {
    Block* block = resting_.front();
    for (const Event& event : block->other_uses)
      if (driver_.query(event.handle()) == kNotReady) return;
    block->other_uses.clear();
    stats_.resting_bytes -= block->size;
    make_free(block);
  }
}

void Allocator::wake_oldest() {
  for (const Event& event : resting_.front()->other_uses)
    health_.check(driver_.synchronize(event.handle()), "waiting for memory");
  wake_fired();
}

// ---- out-of-memory handling ----

Allocator::Block* Allocator::wait_for(Pool& pool, int64_t size) {
  while (!resting_.empty()) {
    ++stats_.waits;
    wake_oldest();
    if (Block* block = take(pool, size)) return block;
  }
  return nullptr;
}

int64_t Allocator::trim_pools() noexcept {
  int64_t bytes = 0;
  for (auto it = segments_.begin(); it != segments_.end();) {
    Block* block = it->first;
    if (!block->is_free || block->behind) {
      ++it;
      continue;
    }
    (it->is_small ? small_ : large_).erase(block);
    delete block;
    health_.note(driver_.free(it->memory), "giving memory back");
    bytes += it->size;
    --stats_.segments;
    it = segments_.erase(it);
  }
  stats_.reserved_bytes -= bytes;
  return bytes;
}

// Null when the driver has no memory, even after everything possible was returned to it.
Allocator::Block* Allocator::try_allocate(int64_t size) {
  wake_fired();
  Pool& pool = pool_of(size);
  if (Block* block = take(pool, size)) return block;
  if (grow(pool, size)) return take(pool, size);
  if (Block* block = wait_for(pool, size)) return block;
  ++stats_.trims;
  trim_pools();
  return grow(pool, size) ? take(pool, size) : nullptr;
}

Allocator::Block* Allocator::allocate(int64_t bytes, std::string_view what) {
  health_.require();
  Lock lock(mutex_);
  check_limit(bytes);
  const int64_t size = rounded(std::max<int64_t>(bytes, 1), kGranule);
  Block* block;
  while (!(block = try_allocate(size))) {
    const std::function<bool(int64_t)> callback = callback_;
    lock.unlock();
    const bool again = callback && callback(bytes);
    lock.lock();
    if (!again) refuse(bytes);
    check_limit(bytes);
  }
  block->requested = bytes;
  block->what = what;
  ++stats_.allocations;
  stats_.live_bytes += bytes;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  return block;
}

void Allocator::check_limit(int64_t bytes) const {
  if (bytes > kMost || (limit_ > 0 && stats_.live_bytes + bytes > limit_)) refuse(bytes);
}

void Allocator::refuse(int64_t bytes) const {
  OutOfMemory error(bytes, stats_.live_bytes, limit_);
  error.add_context(snapshot_locked());
  throw error;
}

// ---- public functions ----

void Allocator::free(Block* block) noexcept {
  std::lock_guard lock(mutex_);
  stats_.live_bytes -= block->requested;
  block->requested = 0;
  block->what = {};
  if (block->other_uses.empty()) return make_free(block);
  stats_.resting_bytes += block->size;
  resting_.push_back(block);
}

void Allocator::note_use(Block* block, Stream& stream) {
  Event event(driver_, health_);
  stream.record(event);
  std::lock_guard lock(mutex_);
  block->other_uses.push_back(std::move(event));
}

void Allocator::follow_uses(Block* block, Stream& stream) {
  std::vector<Event> uses;
  {
    std::lock_guard lock(mutex_);
    uses.swap(block->other_uses);
  }
  for (const Event& event : uses) stream.wait(event);
}

Allocator::Stats Allocator::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

int64_t Allocator::reset_peak(int64_t at_least) {
  std::lock_guard lock(mutex_);
  return std::exchange(stats_.peak_bytes, std::max(stats_.live_bytes, at_least));
}

void Allocator::set_limit(int64_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
}

int64_t Allocator::trim() {
  std::lock_guard lock(mutex_);
  wake_fired();
  return trim_pools();
}

void Allocator::on_out_of_memory(std::function<bool(int64_t)> callback) {
  std::lock_guard lock(mutex_);
  callback_ = std::move(callback);
}

std::string Allocator::snapshot() const {
  std::lock_guard lock(mutex_);
  return snapshot_locked();
}

std::string Allocator::snapshot_locked() const {
  std::vector<const Block*> live;
  int64_t free_bytes = 0, largest_free = 0;
  for (const Segment& segment : segments_)
    for (const Block* b = segment.first; b; b = b->behind) {
      if (!b->is_free && !std::ranges::count(resting_, b)) live.push_back(b);
      if (!b->is_free) continue;
      free_bytes += b->size;
      largest_free = std::max(largest_free, b->size);
    }
  std::ranges::stable_sort(live, [](const Block* a, const Block* b) { return a->requested > b->requested; });
  std::string text = fmt::format("{} bytes live in {} blocks, {} reserved, {} free (largest {}), {} resting",
                                 stats_.live_bytes, live.size(), stats_.reserved_bytes, free_bytes,
                                 largest_free, stats_.resting_bytes);
  for (size_t i = 0; i < std::min(live.size(), kListed); ++i)
    text += fmt::format("\n  {} bytes: {}", live[i]->requested, live[i]->what);
  if (live.size() > kListed) text += fmt::format("\n  and {} more", live.size() - kListed);
  return text;
}

}  // namespace retrograd::cuda
