// See benchmarks/gemm_sides/turns.h. Messages between the processes: to the side's process, the number of runs of a
// turn; from it, the seconds of a run, before the first turn 0, or NaN without a kernel. Its first result is passed in
// shared memory.
#include "benchmarks/gemm_sides/turns.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace bench {
namespace {

using Run = std::function<rg::Tensor()>;

// Seconds of a run from which on other programs are likely to interrupt it: then the processor time of one thread is
// used.
constexpr double kLongRun = 1e-3;
constexpr double kLongTurn = 20e-3;  // seconds after which a turn ends, whatever its number of runs

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Runs on a device overlap: it is waited for once.
double mean_of_turn(const Run& run, int runs, const Place& place) {
  for (int i = 0; i < runs / 2 + 1; ++i) run();
  place.synchronize();
  const auto begin = Clock::now();
  for (int i = 0; i < runs; ++i) run();
  place.synchronize();
  return since(begin) / runs;
}

// Of the whole process. A virtual machine's clock for it is off by microseconds.
double processor_time() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double least_of_turn(const Run& run, int runs, int threads) {
  const auto turn = Clock::now();
  for (int i = 0; i == 0 || (i < runs / 2 && since(turn) < kLongTurn / 2); ++i) run();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i == 0 || (i < runs && since(turn) < kLongTurn); ++i) {
    const double processor = processor_time();
    const auto begin = Clock::now();
    run();
    double time = since(begin);
    if (threads == 1 && time > kLongRun) time = std::min(time, processor_time() - processor);
    least = std::min(least, time);
  }
  return least;
}

// Pins each thread of this process to a processor of its own, while there are enough: on a machine with other work,
// threads that wait for each other would otherwise share one.
void pin_threads() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  std::vector<int> processors, threads;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    threads.push_back(std::stoi(task.path().filename().string()));
  std::ranges::sort(threads);
  for (size_t i = 0; i < threads.size(); ++i) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processors[i % processors.size()], &one);
    sched_setaffinity(threads[i], sizeof(one), &one);
  }
}

int checked(const char* what, int result) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

// Floats in shared memory.
class SharedFloats {
 public:
  explicit SharedFloats(size_t count) : count_(count) {
    void* const data = mmap(nullptr, count * sizeof(float), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    data_ = static_cast<float*>(data);
  }
  SharedFloats(const SharedFloats&) = delete;
  ~SharedFloats() { munmap(data_, count_ * sizeof(float)); }
  float* begin() const { return data_; }
  float* end() const { return data_ + count_; }

 private:
  size_t count_;
  float* data_;
};

class Process {
 public:
  Process(const Side& side, const Problem& problem, int threads, const SharedFloats& result)
      : name_(side.name) {
    int ends[2];
    checked("socketpair", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
    parent_ = getpid();
    process_ = checked("fork", fork());
    socket_ = ends[process_ == 0];
    close(ends[process_ != 0]);
    if (process_ == 0) serve(side, problem, threads, result);
  }
  Process(const Process&) = delete;
  ~Process() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(socket_);
  }

  double turn(int runs) const {
    kill(process_, SIGCONT);
    send(socket_, &runs, sizeof(runs), MSG_NOSIGNAL);
    return answer();
  }

  /// The message that it sends; then it is stopped.
  double answer() const {
    double seconds;
    if (recv(socket_, &seconds, sizeof(seconds), 0) != sizeof(seconds))
      throw std::runtime_error("the process of " + name_ + " has ended");
    kill(process_, SIGSTOP);
    int status;
    waitpid(process_, &status, WUNTRACED);
    return seconds;
  }

 private:
  // The child's part. It ends with its parent, whether stopped or not.
  [[noreturn]] void serve(const Side& side, const Problem& problem, int threads,
                          const SharedFloats& result) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent_) _exit(1);
    try {
      side.set_threads(threads);
      const Run run = side.prepare(problem);
      if (run) {
        const rg::Tensor first = run().to(rg::kFloat32);
        std::copy_n(first.data_ptr<float>(), first.numel(), result.begin());
        if (threads > 1) pin_threads();
      }
      double seconds = run ? 0 : std::numeric_limits<double>::quiet_NaN();
      for (int runs; send(socket_, &seconds, sizeof(seconds), MSG_NOSIGNAL) == sizeof(seconds);) {
        if (recv(socket_, &runs, sizeof(runs), 0) != sizeof(runs)) break;
        seconds = least_of_turn(run, runs, threads);
      }
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: %s\n", name_.c_str(), e.what());
    }
    _exit(1);
  }

  std::string name_;
  pid_t parent_, process_;
  int socket_;
};

}  // namespace

Contender contender_here(const Side& side, const Problem& problem, const Place& place) {
  const Run run = side.prepare(problem);
  if (!run) return {side.name, {}, {}};
  const rg::Tensor first = run().to(rg::kFloat32).to(rg::kCPU);
  const float* const values = first.data_ptr<float>();
  return {side.name,
          [run, &place](int runs) { return mean_of_turn(run, runs, place); },
          {values, values + first.numel()}};
}

Contender contender_in_process(const Side& side, const Problem& problem, int threads) {
  const SharedFloats result(static_cast<size_t>(problem.c.numel()));
  const auto process = std::make_shared<const Process>(side, problem, threads, result);
  if (std::isnan(process->answer())) return {side.name, {}, {}};
  return {side.name, [process](int runs) { return process->turn(runs); }, {result.begin(), result.end()}};
}

void check_results(const std::vector<Contender>& contenders, const Problem& problem) {
  // Elements are sums of k products of normal variables.
  const double spread = std::sqrt(static_cast<double>(problem.product.k)),
               allowed = spread * (problem.dtype() == rg::kFloat32 ? 1e-4 : 5e-2);
  const std::vector<float>& expected = contenders.front().result;
  for (const Contender& other : contenders) {
    if (!other.turn) continue;
    bool near = other.result.size() == expected.size();
    for (size_t i = 0; near && i < expected.size(); ++i)
      near = std::abs(other.result[i] - expected[i]) <= allowed;
    if (!near)
      throw std::runtime_error(contenders.front().name + " and " + other.name +
                               " compute different products");
  }
}

}  // namespace bench
