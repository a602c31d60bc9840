// The pool behind parallel_for: one loop at a time, any number of workers.
//
// The loop that runs now is described by fields of the Pool, all atomic, since a late worker may read them
// while they are rewritten. `ticket` holds the loop's number in its upper half and the next unclaimed chunk
// in its lower half; a chunk is claimed by adding 1 with compare-and-swap. A loop is published by closing the
// ticket (no chunk left), writing the other fields, and opening the ticket under a new number. So a worker
// that read a field of a newer loop than its ticket fails to claim, and nothing on the caller's stack is
// touched after the join: `remaining` counts chunks not yet finished, and the caller leaves when it is 0. A
// chunk that throws closes the ticket and takes the unclaimed chunks off `remaining`.
//
// Workers wait for `signal` to change: they spin for a while, since loops tend to follow each other, then
// sleep.
#include "cpu/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/error.h"

namespace retrograd::cpu {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kSpins = 4000;  // pauses, tens of microseconds
constexpr int64_t kMaxChunks = INT32_MAX;
constexpr uint64_t kChunkMask = 0xffffffff;

struct Pool {
  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<int> remaining{0};
  alignas(64) std::atomic<int> signal{0};
  alignas(64) std::atomic<bool> taken{false};
  std::atomic<int64_t> count{0};
  std::atomic<int> helpers{0};  // workers numbered below take part
  std::atomic<void (*)(void*, int64_t)> run{nullptr};
  std::atomic<void*> context{nullptr};
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by the thread that set failed, read after the join
  int workers = 0;           // started so far; only the thread that has taken the pool looks
};

constinit std::atomic<Pool*> the_pool{nullptr};
constinit std::atomic<int> thread_count{0};  // 0: not set, use the default

/// Spins until value differs from old, then sleeps; returns the new value.
int wait_for_change(const std::atomic<int>& value, int old) {
  for (int i = 0; i < kSpins; ++i) {
    const int now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    __builtin_ia32_pause();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

void finish_chunks(Pool& pool, int count) {
  if (pool.remaining.fetch_sub(count, std::memory_order_acq_rel) == count) pool.remaining.notify_all();
}

/// Leaves no chunk to claim; returns how many were left.
int close_ticket(Pool& pool) {
  const auto count = static_cast<uint64_t>(pool.count.load(std::memory_order_acquire));
  uint64_t ticket = pool.ticket.load(std::memory_order_acquire);
  uint64_t next;
  do {
    next = ticket & kChunkMask;
    if (next >= count) return 0;
  } while (!pool.ticket.compare_exchange_weak(ticket, ticket - next + count, std::memory_order_acq_rel));
  return static_cast<int>(count - next);
}

/// Claims and runs chunks until none is left. `number` is the thread's own, -1 for the caller.
void work(Pool& pool, int number) {
  for (;;) {
    uint64_t ticket = pool.ticket.load(std::memory_order_acquire);
    const int64_t chunk = static_cast<int64_t>(ticket & kChunkMask);
    const auto run = pool.run.load(std::memory_order_acquire);
    void* const context = pool.context.load(std::memory_order_acquire);
    if (chunk >= pool.count.load(std::memory_order_acquire)) return;
    if (number >= pool.helpers.load(std::memory_order_acquire)) return;
    if (!pool.ticket.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    int finished = 1;
    try {
      run(context, chunk);
    } catch (...) {
      if (!pool.failed.exchange(true, std::memory_order_acq_rel)) pool.error = std::current_exception();
      finished += close_ticket(pool);
    }
    finish_chunks(pool, finished);
  }
}

void worker_main(Pool* pool, int number, int seen) {
  loop_thread.inside = true;
  loop_thread.number = number + 1;
  for (;;) {
    seen = wait_for_change(pool->signal, seen);
    work(*pool, number);
  }
}

/// The parent's threads do not exist in the child, and the pool may have been forked in any state: start
/// afresh.
void renew_pool_in_child() {
  Pool* const pool = the_pool.load(std::memory_order_relaxed);
  if (pool != nullptr) new (pool) Pool;
}

Pool& get_pool() {
  Pool* pool = the_pool.load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  Pool* const fresh = new Pool;  // never freed: workers look at it until the process ends
  if (!the_pool.compare_exchange_strong(pool, fresh, std::memory_order_acq_rel)) {
    delete fresh;
    return *pool;
  }
  pthread_atfork(nullptr, nullptr, renew_pool_in_child);
  return *fresh;
}

void start_workers(Pool& pool, int wanted) {
  try {
    for (; pool.workers < wanted; ++pool.workers) {
      std::thread(worker_main, &pool, pool.workers, pool.signal.load(std::memory_order_relaxed)).detach();
    }
  } catch (const std::system_error&) {
    // The system gives no more threads. The loop is right with any number of them, so those that exist do the
    // work.
  }
}

void publish(Pool& pool, int64_t count, int helpers, ChunkFunction function) {
  const uint64_t number = (pool.ticket.load(std::memory_order_relaxed) >> 32) + 1;
  pool.ticket.store(number << 32 | kChunkMask, std::memory_order_release);
  pool.count.store(count, std::memory_order_release);
  pool.helpers.store(helpers, std::memory_order_release);
  pool.run.store(function.run, std::memory_order_release);
  pool.context.store(function.context, std::memory_order_release);
  pool.failed.store(false, std::memory_order_release);
  pool.remaining.store(static_cast<int>(count), std::memory_order_release);
  pool.ticket.store(number << 32, std::memory_order_release);
  pool.signal.fetch_add(1, std::memory_order_acq_rel);
  pool.signal.notify_all();
}

void join(const Pool& pool) {
  int left = pool.remaining.load(std::memory_order_acquire);
  while (left != 0) left = wait_for_change(pool.remaining, left);
}

// The calling thread while it works on a loop. A single chunk may use the pool itself.
class Inside {
 public:
  explicit Inside(int64_t count) : before_(loop_thread.inside) { loop_thread.inside = before_ || count > 1; }
  ~Inside() { loop_thread.inside = before_; }

 private:
  bool before_;
};

int default_threads() {
  const int hardware = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  return std::min({hardware, known ? std::max(1, CPU_COUNT(&allowed)) : hardware, kMaxThreads});
}

}  // namespace

constinit thread_local LoopThread loop_thread;

void set_num_threads(int count, SourceLocation where) {
  if (count < 1 || count > kMaxThreads)
    fail(Category::bad_argument, "set_num_threads",
         "there can be 1 to " + std::to_string(kMaxThreads) + " threads, not " + std::to_string(count),
         where);
  thread_count.store(count, std::memory_order_relaxed);
}

int get_num_threads() {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count != 0) return count;
  const int chosen = default_threads();
  // Another thread may have set a number meanwhile; then that one holds.
  return thread_count.compare_exchange_strong(count, chosen, std::memory_order_relaxed) ? chosen : count;
}

int loop_threads() { return loop_thread.inside ? 1 : std::min(get_num_threads(), loop_thread.most); }

void run_chunks(int64_t count, ChunkFunction function) {
  if (loop_thread.measures) return;
  const int helpers = static_cast<int>(std::min<int64_t>(loop_threads(), count)) - 1;
  const bool alone = helpers < 1 || count > kMaxChunks;
  Pool* const pool = alone ? nullptr : &get_pool();
  const Inside inside(count);
  if (alone || pool->taken.exchange(true, std::memory_order_acquire)) {
    for (int64_t chunk = 0; chunk < count; ++chunk) function.run(function.context, chunk);
    return;
  }
  start_workers(*pool, helpers);
  publish(*pool, count, helpers, function);
  work(*pool, -1);
  join(*pool);
  const std::exception_ptr error = std::exchange(pool->error, nullptr);
  pool->taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace retrograd::cpu
