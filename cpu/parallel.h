// Parallel loops over chunks, run by a small fork-join pool of threads.
//
// The caller cuts the work into chunks from sizes alone; the assignment of chunks to threads is not deterministic. So
// results that are kept per chunk and combined in chunk order do not depend on the number of threads. Each thread
// begins with its own share of the chunks, neighbours of each other: successive loops over the rows of a batch find
// the rows in the thread's caches, with little traffic between cores. When its share is done, it takes chunks from
// the ends of others' shares. The caller also works, and the join waits only for threads that have claimed a chunk: a
// descheduled thread delays only its own chunks.
//
// Start reading at parallel_for. No thread exists before the first loop that needs one. The calling thread
// runs alone: loops within a chunk of another loop of several chunks, and loops of a second host thread while
// the pool is taken. A child process after fork gets a fresh pool; fork inside a chunk
// is only good for exec or _exit. Workers live until the process exits, or the library is unloaded.
//
// Files that are built for several instruction sets do not include this: the linker would choose one of their
// copies of an inline function for all.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/division.h"
#include "engine/location.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::cpu {

/// Threads that a parallel loop may use, the calling one included; holds from the next loop on.
/// Error(bad_argument) unless 1 <= count <= 1024.
void set_num_threads(int count, SourceLocation where = SourceLocation::current());

/// By default the number of processors that the process may run on.
int get_num_threads();

/// The state of this thread in parallel loops.
struct LoopThread {
  int number = 0;         // among the threads of the loop that it works for, the caller being 0
  int most = INT32_MAX;   // threads that take part in loops that begin here
  bool inside = false;    // in a chunk of a loop of several chunks: loops run alone
  bool measures = false;  // loops run no chunk (cpu/scratch.h)
};
extern constinit thread_local LoopThread loop_thread;

/// The number of threads that a loop of this thread may use now: thread numbers are below it.
int loop_threads();

/// During its lifetime, loops of at most `chunks` chunks that begin on this thread use at most threads() threads,
/// even if set_num_threads() is called meanwhile.
class ThreadLimit {
 public:
  explicit ThreadLimit(int64_t chunks) : before_(loop_thread.most) {
    if (chunks <= 1) return;  // one chunk runs here, and its own loops are none of ours
    const int most = loop_threads();
    loop_thread.most = threads_ = chunks < most ? static_cast<int>(chunks) : most;
  }
  ~ThreadLimit() { loop_thread.most = before_; }
  ThreadLimit(const ThreadLimit&) = delete;
  int threads() const { return threads_; }

 private:
  int threads_ = 1, before_;
};

/// A chunk function without its type: run(context, chunk).
struct ChunkFunction {
  void (*run)(void* context, int64_t chunk);
  void* context;
};

/// parallel_for, compiled once.
void run_chunks(int64_t count, ChunkFunction function);

/// Calls f(chunk) for each chunk in [0, count), in any order and on any thread, and returns when all are done. If a
/// chunk throws, chunks not yet claimed are left out and the first exception is rethrown here.
template <class F>
void parallel_for(int64_t count, const F& f) {
  const auto run = [](void* context, int64_t chunk) { (*static_cast<const F*>(context))(chunk); };
  run_chunks(count, {run, const_cast<F*>(&f)});
}

/// The grain for cutting [0, size): `most`, or less if that yields only few pieces, so that two or four threads have
/// about equal work. A multiple of `step`, as `most` must be.
inline int64_t even_grain(int64_t size, int64_t most, int64_t step = 1) {
  if (size <= most) return most;
  const int64_t chunks = (ceil_div(size, most) + 3) / 4 * 4;
  return std::min(most, ceil_div(ceil_div(size, chunks), step) * step);
}

/// Calls f(begin, end) for the pieces of [0, size) cut at multiples of grain, which must be at least 1.
template <class F>
void parallel_range(int64_t size, int64_t grain, const F& f) {
  parallel_for(ceil_div(size, grain), [&](int64_t chunk) {
    const int64_t begin = chunk * grain;
    f(begin, size - begin < grain ? size : begin + grain);
  });
}

}  // namespace retrograd::cpu
#pragma GCC visibility pop
