// See cuda/on_host/scheduler.h. Order: annotations for the sanitizers, a block's state, fibers, barriers, launches.
#include "cuda/on_host/scheduler.h"

#if !defined(__x86_64__)
#error "stacks are switched with x86-64 code"
#endif

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "cuda/on_host/sanitizers.h"

namespace on_host {
namespace {

constexpr size_t kStack = 64 << 10;

struct Barrier {
  unsigned arrived = 0, generation = 0;
  char order[2];
};
// Lanes that synchronise; disjoint groups of a warp may do so at the same time.
struct Group {
  unsigned mask = 0;
  Barrier barrier;
};
struct Warp {
  Group groups[kWarp];
  unsigned live = 0;
  alignas(8) unsigned char value[kWarp][kShown];
};

struct Running : Thread {
  Warp* warp;
  AsyncCopies copies;
  const Barrier* waits = nullptr;
  unsigned seen = 0;
};

struct Fiber {
  void* sp = nullptr;
  std::unique_ptr<char[]> stack;
  Running thread;
  bool busy = false, used = false;
  void* fake = nullptr;  // of AddressSanitizer, as the next two
  const void* bottom = nullptr;
  size_t size = 0;
  void* tsan = nullptr;
};

struct Block : Place {
  unsigned total = 0, next = 0, live = 0;
  std::unique_ptr<char[]> memory;
  std::function<void()> kernel;
  std::vector<unsigned> order;
  std::vector<Warp> warps;
  Barrier barrier;
  Fiber scheduler, *current = &scheduler;
  std::exception_ptr error;
  char start, end;
};

Block* block = nullptr;
Running* self = nullptr;
std::mutex one_launch;
// Kept for all launches.
std::vector<std::unique_ptr<Fiber>>& fibers = *new std::vector<std::unique_ptr<Fiber>>;
std::atomic<unsigned> seed_of_all{0};
Gate* gate = nullptr;
thread_local const void* kept_stream = nullptr;
thread_local std::function<void(std::function<void()>)> keep;

// ---- fibers ----

extern "C" void on_host_switch(void** save, void* load);
asm(".text\n.type on_host_switch,@function\non_host_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size on_host_switch,.-on_host_switch\n");

ON_HOST_QUIET void switch_to(Fiber& to) {
  Fiber& from = *block->current;
  block->current = &to;
  self = &to.thread;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.size);
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.tsan, __tsan_switch_to_fiber_no_sync);
#endif
  on_host_switch(&from.sp, to.sp);
#if defined(__SANITIZE_ADDRESS__)
  // A fiber is always entered from the scheduler, of this launch or of a later one.
  Fiber& scheduler = block->scheduler;
  const bool is_fiber = &from != &scheduler;
  __sanitizer_finish_switch_fiber(from.fake, is_fiber ? &scheduler.bottom : nullptr,
                                  is_fiber ? &scheduler.size : nullptr);
#endif
}

ON_HOST_QUIET void begin_next_thread(Fiber& me) {
  Quiet quiet;
  const unsigned t = block->order[block->next++];
  const dim3 d = block->dim;
  Warp& warp = block->warps[t / kWarp];
  me.thread = {{{t % d.x, t / d.x % d.y, t / (d.x * d.y)}, t % kWarp}, &warp, {}};
  self = &me.thread;
  me.busy = me.used = true;
}

ON_HOST_QUIET void run_next_thread(Fiber& me) {
  begin_next_thread(me);
  __tsan_acquire(&block->start);
  try {
    block->kernel();
  } catch (...) {
    Quiet quiet;
    if (!block->error) block->error = std::current_exception();
  }
  __tsan_release(&block->end);
  me.busy = false;
  block->live--;
  me.thread.warp->live &= ~(1u << me.thread.lane);
}

ON_HOST_QUIET void fiber_main() {
  Fiber& me = *block->current;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &block->scheduler.bottom, &block->scheduler.size);
#endif
  for (;; switch_to(block->scheduler)) {
    do run_next_thread(me);
    while (!kFiberPerThread && block->next < block->total && !block->error);
  }
}

ON_HOST_QUIET Fiber& idle_fiber() {
  for (auto& f : fibers)
    if (!f->busy && !(kFiberPerThread && f->used)) return *f;
  Fiber& f = *fibers.emplace_back(new Fiber);
  f.stack.reset(new char[kStack]);
  f.bottom = f.stack.get();
  f.size = kStack;
  const uintptr_t top = (reinterpret_cast<uintptr_t>(f.stack.get()) + kStack) & ~uintptr_t{15};
  void** sp = reinterpret_cast<void**>(top);
  *--sp = nullptr;
  *--sp = reinterpret_cast<void*>(fiber_main);
  f.sp = sp - 6;  // the registers that on_host_switch takes off the stack
#if defined(__SANITIZE_THREAD__)
  f.tsan = __tsan_create_fiber(0);
#endif
  return f;
}

// ---- barriers ----

// Releases all threads if all have arrived. Also called after a thread has ended: then fewer are expected.
ON_HOST_QUIET bool open(Barrier& b, unsigned expected) {
  if (b.arrived == 0 || b.arrived < expected) return false;
  b.arrived = 0;
  b.generation++;
  return true;
}

ON_HOST_QUIET void wait(Barrier& b, unsigned expected) {  // until `expected` threads are here
  Quiet quiet;
  Running& t = *self;
  const unsigned turn = b.generation;
  b.arrived++;
  __tsan_release(&b.order[turn % 2]);
  if (!open(b, expected)) {
    t.waits = &b;
    t.seen = turn;
    switch_to(block->scheduler);
    t.waits = nullptr;
  }
  __tsan_acquire(&b.order[turn % 2]);
  if (block->error) throw std::runtime_error("stopped");
}

// ---- launches ----

ON_HOST_QUIET void begin_block(Block& b, unsigned i, size_t shared) {
  b.id = {i % b.grid.x, i / b.grid.x % b.grid.y, i / (b.grid.x * b.grid.y)};
  b.next = 0;
  b.live = b.total;
  b.barrier = {};
  b.memory.reset(new char[shared]);
  b.shared = b.memory.get();
  std::memset(b.shared, 0xff, shared);
  b.warps.assign((b.total + kWarp - 1) / kWarp, {});
  for (unsigned t = 0; t < b.total; t++) b.warps[t / kWarp].live |= 1u << t % kWarp;
  for (auto& f : fibers) f->used = false;
  __tsan_release(&b.start);
}

// Resumes every thread that can run. False when none can.
ON_HOST_QUIET bool advance(Block& b) {
  bool moved = false;
  for (size_t f = 0; f < fibers.size(); f++) {
    Fiber& fiber = *fibers[f];
    const Running& t = fiber.thread;
    if (fiber.busy && (b.error || t.waits->generation != t.seen)) switch_to(fiber), moved = true;
  }
  while (b.next < b.total && !b.error) switch_to(idle_fiber()), moved = true;
  moved |= open(b.barrier, b.live);
  for (Warp& w : b.warps)
    for (Group& g : w.groups)
      moved |= open(g.barrier, static_cast<unsigned>(__builtin_popcount(g.mask & w.live)));
  return moved;
}

ON_HOST_QUIET void run_block(Block& b) {
  while (b.live) {
    const bool had_error = static_cast<bool>(b.error);
    if (advance(b)) continue;
    if (had_error) break;
    b.error = std::make_exception_ptr(
        std::logic_error("a barrier is not reached by every live thread of its block or warp"));
  }
  __tsan_acquire(&b.end);
}

ON_HOST_QUIET void run_grid(Block& b, const Launch& at) {
  const unsigned seed = at.seed ? at.seed : seed_of_all.load();
  std::mt19937 random(seed);
  std::vector<unsigned> blocks(size_t{at.grid.x} * at.grid.y * at.grid.z);
  std::iota(blocks.begin(), blocks.end(), 0u);
  std::iota(b.order.begin(), b.order.end(), 0u);
  if (seed) std::shuffle(blocks.begin(), blocks.end(), random);
  for (unsigned i : blocks) {
    if (seed) std::shuffle(b.order.begin(), b.order.end(), random);
    begin_block(b, i, at.shared);
    run_block(b);
    if (b.error) break;
  }
}

// Launches that a device would refuse: cudaErrorInvalidConfiguration.
void check_launch(const Launch& at) {
  constexpr uint64_t kMostBlocks = (uint64_t{1} << 31) - 1, kMostAcross = 65535;
  constexpr size_t kMostShared = 99 << 10;  // on every device of compute capability 8.0 or more
  const uint64_t threads = uint64_t{at.block.x} * at.block.y * at.block.z;
  if (threads == 0 || threads > 1024) throw std::invalid_argument("a block has 1 to 1024 threads");
  if (uint64_t{at.grid.x} * at.grid.y * at.grid.z == 0)
    throw std::invalid_argument("a grid has at least one block");
  if (at.grid.x > kMostBlocks || at.grid.y > kMostAcross || at.grid.z > kMostAcross)
    throw std::invalid_argument("a grid has at most 2^31 - 1, 65535 and 65535 blocks");
  if (at.shared > kMostShared) throw std::invalid_argument("a block has at most 99 KiB of shared memory");
}

}  // namespace

const Thread& thread() { return *self; }
const Place& place() { return *block; }
AsyncCopies& copies() { return self->copies; }
void set_seed(unsigned seed) { seed_of_all = seed; }
void set_gate(Gate& g) { gate = &g; }

void keep_launches(const void* stream, std::function<void(std::function<void()>)> function) {
  kept_stream = stream;
  keep = std::move(function);
}

ON_HOST_QUIET void launch(const Launch& at, std::function<void()> kernel) {
  check_launch(at);
  if (keep && at.stream == kept_stream) return keep([at, kernel] { launch(at, kernel); });
  std::lock_guard lock(one_launch);
  Quiet quiet;
  Block b;
  b.dim = at.block;
  b.grid = at.grid;
  b.kernel = std::move(kernel);
  b.total = at.block.x * at.block.y * at.block.z;
  b.order.resize(b.total);
  block = &b;
#if defined(__SANITIZE_THREAD__)
  b.scheduler.tsan = __tsan_get_current_fiber();
#endif
  if (gate) gate->open();
  run_grid(b, at);
  if (gate) gate->close();
  block = nullptr;
  self = nullptr;
  if (b.error) std::rethrow_exception(b.error);
}

void wait_block() { wait(block->barrier, block->live); }

ON_HOST_QUIET void wait_warp(unsigned mask) {
  Warp& w = *self->warp;
  if (!(mask >> self->lane & 1))
    throw std::logic_error("a lane calls a *_sync function whose mask leaves it out");
  Group *g = nullptr, *unused = nullptr;
  for (Group& c : w.groups) {
    if (!c.barrier.arrived)
      unused = &c;
    else if (c.mask == mask)
      g = &c;
  }
  if (!g) {
    g = unused;
    g->mask = mask;
  }
  wait(g->barrier, static_cast<unsigned>(__builtin_popcount(mask & w.live)));
}

ON_HOST_QUIET unsigned live_lanes() { return self->warp->live; }
void show(const void* value, size_t bytes) { std::memcpy(self->warp->value[self->lane], value, bytes); }
void look(void* value, size_t bytes, unsigned lane) { std::memcpy(value, self->warp->value[lane], bytes); }

}  // namespace on_host
