// The pool behind parallel_for: one loop at a time, any number of workers.
//
// The loop that runs now is described by fields of the Pool, all atomic, since a late worker may read them
// while they are rewritten. Its chunks, in units of one (of several where they are very many), are cut into a
// share for each thread. A share's `ticket` holds the loop's number and how many units were claimed from the
// front of the share, by its thread, and from the back, by others; one is claimed by compare-and-swap. A loop
// is published by closing all tickets of the last loop and of this one (no unit left), writing the other
// fields, and opening the tickets under a new number. A worker reads fields behind the ticket: none is of an
// older loop, and where one is of a newer it fails to claim. So nothing on the caller's stack is touched after
// the join: `remaining` counts units not yet finished, and the caller leaves when it is 0. A thread takes off
// what it has finished when it finds no more to claim. A chunk that throws closes the tickets and takes the
// unclaimed units off `remaining`.
//
// Workers wait for `signal` to change: they spin for a while, since loops tend to follow each other, then
// sleep. Limit: at the end of a loop each thread looks at the shares of all others, which is for some tens of
// threads.
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
// Of a ticket: the number of the loop, units claimed from the back, units claimed from the front.
constexpr int kUnitBits = 18;
constexpr uint64_t kMostUnits = (uint64_t{1} << kUnitBits) - 1;
constexpr uint64_t kFromFront = 1, kFromBack = uint64_t{1} << kUnitBits;
constexpr int kNumberShift = 2 * kUnitBits;

constexpr uint64_t open_ticket(uint64_t number) { return number << kNumberShift; }
constexpr uint64_t closed_ticket(uint64_t number) { return open_ticket(number) | kMostUnits; }
constexpr int64_t claimed_from_front(uint64_t ticket) { return static_cast<int64_t>(ticket & kMostUnits); }
constexpr int64_t claimed_from_back(uint64_t ticket) {
  return static_cast<int64_t>(ticket >> kUnitBits & kMostUnits);
}

// The units of one thread, and how many of them were claimed.
struct alignas(64) Share {
  std::atomic<uint64_t> ticket{closed_ticket(0)};
  std::atomic<int64_t> begin{0}, end{0};
};

struct Pool {
  Share shares[kMaxThreads];  // the caller's first
  alignas(64) std::atomic<int> remaining{0};
  alignas(64) std::atomic<int> signal{0};
  alignas(64) std::atomic<bool> taken{false};
  std::atomic<int64_t> count{0}, unit{1};  // chunks; of them in a unit
  std::atomic<int> threads{0};             // that have shares
  std::atomic<void (*)(void*, int64_t)> run{nullptr};
  std::atomic<void*> context{nullptr};
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by the thread that set failed, read after the join
  int workers = 0;           // started so far; as the next, only the thread that has taken the pool looks
  int opened = 0;            // tickets of the last loop
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

int64_t units_left(const Share& share, uint64_t ticket) {
  const int64_t units =
      share.end.load(std::memory_order_acquire) - share.begin.load(std::memory_order_acquire);
  return std::max<int64_t>(0, units - claimed_from_front(ticket) - claimed_from_back(ticket));
}

// Chunks that a thread has claimed.
struct Claim {
  void (*run)(void*, int64_t);
  void* context;
  int64_t begin, end;
};

/// Claims for `thread` a unit of the share of `owner`: from its front if that is itself, else from its back. False if
/// none is left, or the thread has no part in the loop: kernels have room for those that have.
bool claim(Pool& pool, int thread, int owner, Claim& claimed) {
  Share& share = pool.shares[owner];
  const bool from_front = thread == owner;
  uint64_t ticket = share.ticket.load(std::memory_order_acquire);
  int64_t first, unit, count;
  do {
    if (units_left(share, ticket) == 0 || thread >= pool.threads.load(std::memory_order_acquire))
      return false;
    first = from_front ? share.begin.load(std::memory_order_acquire) + claimed_from_front(ticket)
                       : share.end.load(std::memory_order_acquire) - 1 - claimed_from_back(ticket);
    unit = pool.unit.load(std::memory_order_acquire);
    count = pool.count.load(std::memory_order_acquire);
    claimed.run = pool.run.load(std::memory_order_acquire);
    claimed.context = pool.context.load(std::memory_order_acquire);
  } while (!share.ticket.compare_exchange_weak(ticket, ticket + (from_front ? kFromFront : kFromBack),
                                               std::memory_order_acq_rel));
  claimed.begin = first * unit;
  claimed.end = std::min(count, claimed.begin + unit);
  return true;
}

/// Leaves no unit to claim; returns how many were left.
int close_tickets(Pool& pool) {
  int64_t units = 0;
  for (int thread = 0; thread < pool.threads.load(std::memory_order_acquire); ++thread) {
    Share& share = pool.shares[thread];
    units += units_left(share, share.ticket.fetch_or(kMostUnits, std::memory_order_acq_rel));
  }
  return static_cast<int>(units);
}

/// Runs what was claimed; returns the units that need not be waited for any more.
int run_claimed(Pool& pool, const Claim& claimed) {
  try {
    for (int64_t chunk = claimed.begin; chunk < claimed.end; ++chunk) claimed.run(claimed.context, chunk);
    return 1;
  } catch (...) {
    if (!pool.failed.exchange(true, std::memory_order_acq_rel)) pool.error = std::current_exception();
    return 1 + close_tickets(pool);
  }
}

/// Runs the share of a thread, and then what is left of the others'.
void work(Pool& pool, int thread) {
  int finished = 0;
  Claim claimed;
  for (int next = 0, threads = pool.threads.load(std::memory_order_acquire);
       thread < threads && next < threads;)
    if (claim(pool, thread, (thread + next) % threads, claimed))
      finished += run_claimed(pool, claimed);
    else
      ++next;
  if (finished > 0 && pool.remaining.fetch_sub(finished, std::memory_order_acq_rel) == finished)
    pool.remaining.notify_all();
}

void worker_main(Pool* pool, int number, int seen) {
  loop_thread.inside = true;
  loop_thread.number = number + 1;
  for (;;) {
    seen = wait_for_change(pool->signal, seen);
    work(*pool, number + 1);
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

void publish(Pool& pool, int64_t count, int threads, ChunkFunction function) {
  const uint64_t number = (pool.shares[0].ticket.load(std::memory_order_relaxed) >> kNumberShift) + 1;
  for (int thread = 0; thread < std::max(threads, pool.opened); ++thread)
    pool.shares[thread].ticket.store(closed_ticket(number), std::memory_order_release);
  pool.opened = threads;
  const int64_t unit = 1 + (count - 1) / static_cast<int64_t>(kMostUnits), units = count_chunks(count, unit);
  for (int thread = 0; thread < threads; ++thread) {
    pool.shares[thread].begin.store(units * thread / threads, std::memory_order_release);
    pool.shares[thread].end.store(units * (thread + 1) / threads, std::memory_order_release);
  }
  pool.count.store(count, std::memory_order_release);
  pool.unit.store(unit, std::memory_order_release);
  pool.threads.store(threads, std::memory_order_release);
  pool.run.store(function.run, std::memory_order_release);
  pool.context.store(function.context, std::memory_order_release);
  pool.failed.store(false, std::memory_order_release);
  pool.remaining.store(static_cast<int>(units), std::memory_order_release);
  for (int thread = 0; thread < threads; ++thread)
    pool.shares[thread].ticket.store(open_ticket(number), std::memory_order_release);
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
  const int threads = static_cast<int>(std::min<int64_t>(loop_threads(), count));
  const bool alone = threads <= 1;
  Pool* const pool = alone ? nullptr : &get_pool();
  const Inside inside(count);
  if (alone || pool->taken.exchange(true, std::memory_order_acquire)) {
    for (int64_t chunk = 0; chunk < count; ++chunk) function.run(function.context, chunk);
    return;
  }
  start_workers(*pool, threads - 1);
  publish(*pool, count, threads, function);
  work(*pool, 0);
  join(*pool);
  const std::exception_ptr error = std::exchange(pool->error, nullptr);
  pool->taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace retrograd::cpu
