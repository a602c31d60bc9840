// Allocator: memory of one device, kept for reuse, counted and limited.
//
//   segment  memory from the driver: 2 MiB for small blocks, 20 MiB for blocks up to 10 MiB, else the size rounded up
//   to 2 MiB
//   block    a part of a segment, a multiple of 512 bytes; free neighbours are merged
//
// The smallest free block that fits is taken and split; small blocks (up to 1 MiB) and large ones never share a
// segment.
//
// Order of streams: memory is handed out and taken back in the order of the compute stream. So a freed block can be
// reused immediately, even if the kernels that use it have not run yet. To use a block on another stream, let that
// stream follow the compute stream first, and call note_use() before the block is freed: it then rests until an event
// on that stream has fired.
//
// Out of memory: first, resting blocks are waited for, oldest first, until one is large enough. Then segments without a
// block in use are returned to the driver, and it is asked again. Then the callback, if there is one, may free memory
// and request another round. Then OutOfMemory is thrown, with a snapshot of the live blocks. A request beyond the limit
// is refused immediately.
//
// All functions may be called from several threads. Freeing blocks never throws, also on a lost device.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda/stream.h"

namespace retrograd::inline v0::cuda {

class Allocator {
 public:
  struct Stats {
    int64_t live_bytes = 0, peak_bytes = 0;         // handed out, as requested
    int64_t reserved_bytes = 0, peak_reserved = 0;  // taken from the driver
    int64_t resting_bytes = 0;                      // freed, but still in use on another stream
    int64_t allocations = 0, segments = 0;          // since the start; held now
    int64_t waits = 0, trims = 0;  // number of waits for resting blocks, and of returns to the driver
  };

  struct Block;
  struct Segment {
    void* memory;
    int64_t size;
    bool is_small;
    Block* first;
  };
  struct Block {
    char* data;
    int64_t size;           // of the block
    int64_t requested = 0;  // 0: free or resting
    std::string_view what;  // the op that it was allocated for
    Segment* segment;
    Block *before, *behind;         // neighbours in the segment
    std::vector<Event> other_uses;  // on streams other than compute
    bool is_free = true;
  };

  Allocator(Driver& driver, Health& health) : driver_(driver), health_(health) {}
  ~Allocator();
  Allocator(const Allocator&) = delete;

  /// `bytes` >= 0, at a multiple of 512. `what`: text of static lifetime, the name of an op, for snapshots.
  Block* allocate(int64_t bytes, std::string_view what);
  void free(Block* block) noexcept;
  /// Notes that `stream`, not compute, has been given work on the block.
  void note_use(Block* block, Stream& stream);
  /// Later work on `stream` runs after the noted uses, which are then forgotten.
  void follow_uses(Block* block, Stream& stream);

  Stats stats() const;
  /// Sets peak_bytes to live_bytes, or to `at_least` if that is higher. Returns the old value.
  int64_t reset_peak(int64_t at_least = 0);
  /// Refuses allocations that would raise live_bytes above `bytes`; 0: no limit.
  void set_limit(int64_t bytes);
  /// Returns segments without a block in use to the driver. Returns their bytes.
  int64_t trim();
  /// Called when nothing else helps, without a lock held: true if memory was freed and the allocation is to be tried
  /// again.
  void on_out_of_memory(std::function<bool(int64_t bytes)> callback);
  /// The live blocks, largest first, and the cached memory, as lines.
  std::string snapshot() const;

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->data < b->data;
    }
  };
  using Pool = std::set<Block*, BySize>;
  using Lock = std::unique_lock<std::mutex>;

  Block* try_allocate(int64_t size);
  Block* take(Pool& pool, int64_t size);
  Block* wait_for(Pool& pool, int64_t size);
  bool grow(Pool& pool, int64_t size);
  void split(Pool& pool, Block* block, int64_t size);
  void make_free(Block* block) noexcept;
  void wake_fired() noexcept;
  void wake_oldest();
  int64_t trim_pools() noexcept;
  void check_limit(int64_t bytes) const;
  [[noreturn]] void refuse(int64_t bytes) const;
  std::string snapshot_locked() const;
  static bool is_small(int64_t size);
  Pool& pool_of(int64_t size) { return is_small(size) ? small_ : large_; }

  Driver& driver_;
  Health& health_;
  mutable std::mutex mutex_;
  std::list<Segment> segments_;
  Pool small_, large_;          // free blocks
  std::deque<Block*> resting_;  // in the order in which they were freed
  Stats stats_;
  int64_t limit_ = 0;
  std::function<bool(int64_t)> callback_;
};

}  // namespace retrograd::cuda
