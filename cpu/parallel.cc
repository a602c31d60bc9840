// The thread pool of parallel_for: one loop at a time, any number of workers.
//
// Chunks, in units of one (of several where they are very many), are cut into a share for each thread. A Share is a
// line of the cache that holds all a thread needs to begin: the units, what to run, and a `ticket` with the loop's
// number and how many units were claimed from the front of the share, by its thread, and from the back, by others;
// one is claimed by compare-and-swap. All fields are atomic, since a late worker may read them while they are
// rewritten. A loop is published by closing the tickets of the last loop (no unit left; all others are closed),
// writing the other fields, opening the tickets under a new number, and telling it to the workers in `loop`: who is
// told finds all shares open. A worker reads fields after the ticket: none is of an older loop, and where one is of a
// newer it fails to claim. So nothing on the caller's stack is touched after the join: `remaining` counts units not
// yet finished, and the caller leaves when it is 0. A thread subtracts its finished units of a share before it goes
// to the next. A chunk that throws closes the tickets and subtracts the unclaimed units from `remaining`.
//
// A cache-line transfer between cores takes 30 to 150 ns, so there are few: a worker spins on its own share, since
// loops tend to follow each other; then it sleeps until `signal` changes. Limit: at the end of a loop each thread
// scans the shares of all others, which is meant for some tens of threads.
#include "cpu/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "engine/lifetime.h"

namespace retrograd::inline v0::cpu {
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
constexpr uint64_t number_of(uint64_t ticket) { return ticket >> kNumberShift; }
constexpr int64_t claimed_from_front(uint64_t ticket) { return static_cast<int64_t>(ticket & kMostUnits); }
constexpr int64_t claimed_from_back(uint64_t ticket) {
  return static_cast<int64_t>(ticket >> kUnitBits & kMostUnits);
}

// The units of one thread, how many of them were claimed, and what they run.
struct alignas(64) Share {
  std::atomic<uint64_t> ticket{closed_ticket(0)};
  std::atomic<int32_t> begin{0}, end{0};   // units
  std::atomic<int64_t> count{0}, unit{1};  // chunks of the loop; of them in a unit
  std::atomic<void (*)(void*, int64_t)> run{nullptr};
  std::atomic<void*> context{nullptr};
  std::atomic<int> threads{0};    // that have shares
  std::atomic<uint32_t> loop{0};  // the last one that the thread has a part in
};
static_assert(sizeof(Share) == 64);

struct Pool {
  Share shares[kMaxThreads];  // the caller's first
  alignas(64) std::atomic<int> remaining{0};
  alignas(64) std::atomic<int> signal{0};
  alignas(64) std::atomic<bool> taken{false};
  std::atomic<bool> failed{false};
  std::exception_ptr error;          // written by the thread that set failed, read after the join
  std::vector<std::thread> workers;  // as the next, accessed only by the thread that has taken the pool
  int opened = 0;                    // tickets of the last loop
  std::atomic<bool> ends{false};     // workers that are told of a loop return
};

// In static memory of the library; never destroyed.
alignas(Pool) std::byte place_of_pool[sizeof(Pool)];
constinit std::atomic<Pool*> the_pool{nullptr};
constinit std::atomic<bool> is_pool_made{false};
constinit std::atomic<int> thread_count{0};  // 0: not set, use the default

/// Spins until is_over(); false if that takes too long.
template <class F>
bool spin(const F& is_over) {
  for (int i = 0; i < kSpins; ++i) {
    if (is_over()) return true;
    __builtin_ia32_pause();
  }
  return false;
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
    if (units_left(share, ticket) == 0 || thread >= share.threads.load(std::memory_order_acquire))
      return false;
    first = from_front ? share.begin.load(std::memory_order_acquire) + claimed_from_front(ticket)
                       : share.end.load(std::memory_order_acquire) - 1 - claimed_from_back(ticket);
    unit = share.unit.load(std::memory_order_acquire);
    count = share.count.load(std::memory_order_acquire);
    claimed.run = share.run.load(std::memory_order_acquire);
    claimed.context = share.context.load(std::memory_order_acquire);
  } while (!share.ticket.compare_exchange_weak(ticket, ticket + (from_front ? kFromFront : kFromBack),
                                               std::memory_order_acq_rel));
  claimed.begin = first * unit;
  claimed.end = std::min(count, claimed.begin + unit);
  return true;
}

/// Leaves no unit to claim; returns how many were left.
int close_tickets(Pool& pool) {
  int64_t units = 0;
  const int threads = pool.shares[0].threads.load(std::memory_order_acquire);
  for (int thread = 0; thread < threads; ++thread) {
    Share& share = pool.shares[thread];
    units += units_left(share, share.ticket.fetch_or(kMostUnits, std::memory_order_acq_rel));
  }
  return static_cast<int>(units);
}

/// Runs the claimed chunks; returns the number of units that need no longer be waited for.
int run_claimed(Pool& pool, const Claim& claimed) {
  try {
    for (int64_t chunk = claimed.begin; chunk < claimed.end; ++chunk) claimed.run(claimed.context, chunk);
    return 1;
  } catch (...) {
    if (!pool.failed.exchange(true, std::memory_order_acq_rel)) pool.error = std::current_exception();
    return 1 + close_tickets(pool);
  }
}

/// Runs the units that `thread` can claim from a share. Returns whether the loop is over.
bool work_on(Pool& pool, int thread, int owner) {
  int finished = 0;
  Claim claimed;
  while (claim(pool, thread, owner, claimed)) finished += run_claimed(pool, claimed);
  if (finished == 0 || pool.remaining.fetch_sub(finished, std::memory_order_acq_rel) != finished)
    return false;
  pool.remaining.notify_all();
  return true;
}

/// Runs the share of a thread, and then the rest of the others' shares.
void work(Pool& pool, int thread) {
  if (work_on(pool, thread, thread)) return;
  const int threads = pool.shares[thread].threads.load(std::memory_order_acquire);
  for (int next = 1; next < threads; ++next)
    if (work_on(pool, thread, (thread + next) % threads)) return;
}

/// Waits for a loop in which the thread has a part, other than `seen`; returns its number.
uint32_t wait_for_loop(const Pool& pool, int thread, uint32_t seen) {
  uint32_t loop = seen;
  const auto is_told = [&] {
    loop = pool.shares[thread].loop.load(std::memory_order_acquire);
    return loop != seen;
  };
  while (!spin(is_told)) {
    const int before = pool.signal.load(std::memory_order_acquire);
    if (!is_told()) pool.signal.wait(before, std::memory_order_acquire);
  }
  return loop;
}

void worker_main(Pool* pool, int thread, uint32_t seen) {
  loop_thread.inside = true;
  loop_thread.number = thread;
  for (;;) {
    seen = wait_for_loop(*pool, thread, seen);
    if (pool->ends.load(std::memory_order_acquire)) return;
    work(*pool, thread);
  }
}

/// The parent's threads do not exist in the child, and the pool may have been forked in any state: start
/// again.
void renew_pool_in_child() {
  Pool* const pool = the_pool.load(std::memory_order_relaxed);
  if (pool != nullptr) new (pool) Pool;
}

void wake_workers(Pool& pool) {
  pool.signal.fetch_add(1, std::memory_order_acq_rel);
  pool.signal.notify_all();
}

/// Ensures that no thread is left in the library's code. If another thread runs a loop, the process exits, and
/// nothing is done.
void end_workers() noexcept {
  Pool& pool = *the_pool.load(std::memory_order_acquire);
  if (pool.taken.exchange(true, std::memory_order_acquire)) return;
  pool.ends.store(true, std::memory_order_release);
  constexpr uint32_t kNoLoop = uint32_t{1} << 31;  // far from the number of the last
  for (size_t thread = 1; thread <= pool.workers.size(); ++thread)
    pool.shares[thread].loop.fetch_xor(kNoLoop, std::memory_order_release);
  wake_workers(pool);
  for (std::thread& worker : pool.workers) worker.join();
  std::vector<std::thread>().swap(pool.workers);
  pool.ends.store(false, std::memory_order_release);
  pool.taken.store(false, std::memory_order_release);
}

constinit retrograd::detail::AtEnd at_unload{&end_workers};

/// Null while another thread creates the pool (after a fork, possibly a thread that no longer exists): then a loop
/// runs alone.
Pool* get_pool() {
  Pool* pool = the_pool.load(std::memory_order_acquire);
  if (pool != nullptr || is_pool_made.exchange(true, std::memory_order_acq_rel)) return pool;
  pool = new (place_of_pool) Pool;
  the_pool.store(pool, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, renew_pool_in_child);
  retrograd::detail::at_unload(at_unload);
  return pool;
}

// The loop is correct with any number of workers: if the system provides no more, the existing ones do the work.
void start_workers(Pool& pool, size_t wanted) {
  if (pool.workers.size() >= wanted) return;
  try {
    pool.workers.reserve(wanted);
    while (pool.workers.size() < wanted) {
      const int thread = static_cast<int>(pool.workers.size()) + 1;
      const uint32_t seen = pool.shares[thread].loop.load(std::memory_order_relaxed);
      pool.workers.emplace_back(worker_main, &pool, thread, seen);
    }
  } catch (const std::exception&) {
  }
}

void publish(Pool& pool, int64_t count, int threads, ChunkFunction function) {
  const uint64_t last = number_of(pool.shares[0].ticket.load(std::memory_order_relaxed)), number = last + 1;
  for (int thread = 0; thread < pool.opened; ++thread)
    pool.shares[thread].ticket.store(closed_ticket(last), std::memory_order_release);
  pool.opened = threads;
  const int64_t unit = 1 + (count - 1) / static_cast<int64_t>(kMostUnits), units = ceil_div(count, unit);
  pool.failed.store(false, std::memory_order_release);
  pool.remaining.store(static_cast<int>(units), std::memory_order_release);
  for (int thread = 0; thread < threads; ++thread) {
    Share& share = pool.shares[thread];
    share.begin.store(static_cast<int32_t>(units * thread / threads), std::memory_order_release);
    share.end.store(static_cast<int32_t>(units * (thread + 1) / threads), std::memory_order_release);
    share.count.store(count, std::memory_order_release);
    share.unit.store(unit, std::memory_order_release);
    share.run.store(function.run, std::memory_order_release);
    share.context.store(function.context, std::memory_order_release);
    share.threads.store(threads, std::memory_order_release);
  }
  for (int thread = 0; thread < threads; ++thread)
    pool.shares[thread].ticket.store(open_ticket(number), std::memory_order_release);
  for (int thread = 1; thread < threads; ++thread)
    pool.shares[thread].loop.store(static_cast<uint32_t>(number), std::memory_order_release);
  wake_workers(pool);
}

void join(const Pool& pool) {
  const auto is_over = [&] { return pool.remaining.load(std::memory_order_acquire) == 0; };
  while (!spin(is_over))
    if (const int left = pool.remaining.load(std::memory_order_acquire); left != 0)
      pool.remaining.wait(left, std::memory_order_acquire);
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
  // If another thread has set a number meanwhile, that number is used.
  return thread_count.compare_exchange_strong(count, chosen, std::memory_order_relaxed) ? chosen : count;
}

int loop_threads() { return loop_thread.inside ? 1 : std::min(get_num_threads(), loop_thread.most); }

void run_chunks(int64_t count, ChunkFunction function) {
  if (loop_thread.measures) return;
  const int threads = static_cast<int>(std::min<int64_t>(loop_threads(), count));
  const bool alone = threads <= 1;
  Pool* const pool = alone ? nullptr : get_pool();
  const Inside inside(count);
  if (!pool || pool->taken.exchange(true, std::memory_order_acquire)) {
    for (int64_t chunk = 0; chunk < count; ++chunk) function.run(function.context, chunk);
    return;
  }
  start_workers(*pool, static_cast<size_t>(threads - 1));
  publish(*pool, count, threads, function);
  work(*pool, 0);
  join(*pool);
  const std::exception_ptr error = std::exchange(pool->error, nullptr);
  pool->taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace retrograd::cpu
