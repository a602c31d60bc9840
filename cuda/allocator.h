// Allocator: memory of one device, kept for reuse, counted and limited.
//
//   segment  what the driver gave: 2 MiB for small blocks, 20 MiB for those up to 10 MiB, else the size rounded up to 2 MiB
//   block    a part of a segment, a multiple of 512 bytes; neighbours that are free become one
//
// The smallest free block that fits is taken and split; small blocks (up to 1 MiB) and large ones never share a segment.
//
// Order of streams: memory is handed out and taken back in the order of the compute stream. So a block that was freed can be given away at
// once, though the kernels that use it have not run yet. Who uses a block on another stream lets that stream follow the compute stream
// first, and calls note_use() before the block is freed: it then rests until an event on that stream has fired.
//
// When there is no memory (the ladder): resting blocks are waited for, oldest first, until one is large enough; segments without a block in
// use go back to the driver, and it is asked again; the callback, if there is one, may free something and ask for another round; then
// OutOfMemory, with a snapshot of what is live. What is beyond the limit is refused at once.
//
// All functions may be called from several threads. Blocks are freed without exceptions, also on a device that is lost.
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

namespace retrograd::cuda {

class Allocator {
 public:
  struct Stats {
    int64_t live_bytes = 0, peak_bytes = 0;         // handed out, as requested
    int64_t reserved_bytes = 0, peak_reserved = 0;  // taken from the driver
    int64_t resting_bytes = 0;                      // freed, and not yet done with on another stream
    int64_t allocations = 0, segments = 0;          // since the start; held now
    int64_t waits = 0, trims = 0;                   // how often each step of the ladder was taken
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
    int64_t requested = 0;  // 0: it is free or rests
    std::string_view what;  // whom it was handed to
    Segment* segment;
    Block *before, *behind;         // neighbours in the segment
    std::vector<Event> other_uses;  // on streams beside compute
    bool is_free = true;
  };

  Allocator(Driver& driver, Health& health) : driver_(driver), health_(health) {}
  ~Allocator();
  Allocator(const Allocator&) = delete;

  /// `bytes` >= 0, at a multiple of 512. `what`: text of static lifetime, the name of an op, for snapshots.
  Block* allocate(int64_t bytes, std::string_view what);
  void free(Block* block) noexcept;
  /// `stream`, not compute, has been given work on the block.
  void note_use(Block* block, Stream& stream);
  /// What is put on `stream` from now on comes behind the uses that were noted, which are then forgotten.
  void follow_uses(Block* block, Stream& stream);

  Stats stats() const;
  /// peak_bytes becomes live_bytes, or `at_least` if that is higher. Returns what it was.
  int64_t reset_peak(int64_t at_least = 0);
  /// Refuses what would lift live_bytes above `bytes`; 0: no limit.
  void set_limit(int64_t bytes);
  /// Gives segments without a block in use back to the driver. Returns their bytes.
  int64_t trim();
  /// Asked when nothing else helps, without a lock held: true if memory was freed and it is to be tried again.
  void on_out_of_memory(std::function<bool(int64_t bytes)> callback);
  /// What is live, largest first, and what is kept, as lines.
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
