// HostDriver: a Driver without a device, for tests. Memory is the host's, of a size that the test chooses; copies run
// immediately; each call can be made to fail. Events fire when they are recorded, or, with `holds_events`, when the
// test releases them. With `lags` the host is ahead of the device: copies, started graphs and events wait, in the order
// of the calls, until a stream is waited for (kernels that are launched outside of graphs do not: there must be none).
//
// With guard() the memory is accessible only within copies, and between open() and close(): any other access ends with
// a segmentation fault, as for a device's memory.
//
// Work on a captured stream is kept and not run: copies here, kernels by `on_capture` (tests/cuda/device_on_host.h). As
// on a device, such a stream can neither be waited for nor recorded by an event, nor wait for an event of another
// stream, and a capture with such an attempt is an error at its end.
//
// `log` has the requests to streams, a line each ("copy 16 on 1", "record e0 on 2", "wait e0 on 1"): streams and events
// are numbered in the order of their creation, and so are graphs ("capture on 4", "graph g1 of 3", "instantiate g1 as
// x1", "launch x1 on 1").
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver.h"

namespace retrograd::cuda {

class HostDriver final : public Driver {
 public:
  explicit HostDriver(size_t bytes = size_t{1} << 30, int devices = 1) : capacity(bytes), devices(devices) {}

  size_t capacity, used = 0;
  int devices;
  Status count_status = kSuccess;
  Status next_launch = kSuccess;  // what last_error() gives once
  Status next_synchronize = kSuccess;
  Status next_instantiate = kSuccess, next_graph_launch = kSuccess;
  Status next_copy = kSuccess;  // of one that is not captured
  bool holds_events = false, lags = false;
  bool logs_launches = false;
  std::string log;
  int synchronizations = 0;

  /// To be called before memory is allocated.
  void guard() { is_guarded_ = true; }
  void open() { protect(PROT_READ | PROT_WRITE); }
  void close() { protect(PROT_NONE); }

  /// Fires the events that were held back.
  void fire_all() {
    for (auto& [event, fired] : fired_) fired = true;
  }
  void fire(EventHandle event) { fired_[event] = true; }
  /// Runs what waits.
  void catch_up() {
    for (const auto& run : std::exchange(waiting_, {})) run();
  }
  size_t events() const { return fired_.size(); }
  size_t blocks() const { return sizes_.size(); }
  /// Whether these bytes are the device's.
  bool owns(const void* memory, size_t bytes) const {
    const auto* const at = static_cast<const char*>(memory);
    for (const auto& [block, size] : sizes_) {
      const auto* const begin = static_cast<const char*>(block);
      if (at >= begin && at + bytes <= begin + size) return true;
    }
    return false;
  }

  Status device_count(int* count) override {
    *count = count_status == kSuccess ? devices : 0;
    return count_status;
  }
  const char* text(Status status) override {
    return status == kMemoryAllocation ? "out of memory" : "something failed";
  }
  Status use(int device) override {
    std::lock_guard lock(uses_);  // threads that compile use it, too
    used_devices.push_back(device);
    return kSuccess;
  }
  Status memory_info(size_t* free, size_t* total) override {
    *free = capacity - used;
    *total = capacity;
    return kSuccess;
  }
  Status allocate(void** memory, size_t bytes) override {
    if (used + bytes > capacity) return kMemoryAllocation;
    *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    used += bytes;
    sizes_[*memory] = bytes;
    close();
    return kSuccess;
  }
  Status free(void* memory) override {
    open();
    used -= sizes_.at(memory);
    sizes_.erase(memory);
    std::free(memory);
    close();
    return kSuccess;
  }
  Status allocate_pinned(void** memory, size_t bytes) override {
    if (!has_pinned) return kMemoryAllocation;
    *memory = std::malloc(bytes);
    ++pinned_made;
    return kSuccess;
  }
  Status free_pinned(void* memory) override {
    std::free(memory);
    return kSuccess;
  }
  Status create_stream(StreamHandle* stream) override {
    *stream = reinterpret_cast<StreamHandle>(++streams_);
    return kSuccess;
  }
  Status destroy_stream(StreamHandle) override { return kSuccess; }
  Status synchronize(StreamHandle stream) override {
    if (breaks_capture(stream)) return kCaptureUnsupported;
    catch_up();
    ++synchronizations;
    return std::exchange(next_synchronize, kSuccess);
  }
  Status create_event(EventHandle* event) override {
    *event = reinterpret_cast<EventHandle>(++made_);
    fired_[*event] = true;
    return kSuccess;
  }
  Status destroy_event(EventHandle event) override {
    fired_.erase(event);
    return kSuccess;
  }
  Status record(EventHandle event, StreamHandle stream) override {
    if (breaks_capture(stream)) return kCaptureUnsupported;
    fired_[event] = false;
    later([this, event] {
      if (const auto at = fired_.find(event); at != fired_.end()) at->second = !holds_events;
    });
    note("record e" + number(event) + " on " + number(stream));
    return kSuccess;
  }
  Status wait(StreamHandle stream, EventHandle event) override {
    if (breaks_capture(stream)) return kCaptureIsolation;
    note("wait e" + number(event) + " on " + number(stream));
    return kSuccess;
  }
  Status query(EventHandle event) override { return fired_.at(event) ? kSuccess : kNotReady; }
  Status synchronize(EventHandle event) override {
    catch_up();
    fired_.at(event) = true;
    note("synchronize e" + number(event));
    return kSuccess;
  }
  Status copy(void* to, const void* from, size_t bytes, StreamHandle stream) override {
    if (stream == captured_) {
      capture([=] { std::memcpy(to, from, bytes); });
      return kSuccess;
    }
    if (next_copy != kSuccess) return std::exchange(next_copy, kSuccess);
    later([=, this] {
      open();
      std::memcpy(to, from, bytes);
      close();
    });
    note("copy " + std::to_string(bytes) + " on " + number(stream));
    return kSuccess;
  }
  Status last_error() override {
    if (logs_launches) note("launch");
    return std::exchange(next_launch, kSuccess);
  }
  Status begin_capture(StreamHandle stream) override {
    if (captured_) return kCaptureUnsupported;
    captured_ = stream;
    is_broken_ = false;
    work_.clear();
    if (on_capture) on_capture(stream);
    note("capture on " + number(stream));
    return kSuccess;
  }
  Status end_capture(StreamHandle stream, GraphHandle* graph) override {
    *graph = nullptr;
    if (on_capture) on_capture(nullptr);
    if (std::exchange(captured_, nullptr) != stream || is_broken_) {
      note("capture failed");
      return kCaptureInvalidated;
    }
    *graph = reinterpret_cast<GraphHandle>(++graphs_made_);
    note("graph g" + number(*graph) + " of " + std::to_string(work_.size()));
    graphs_[*graph] = std::move(work_);
    return kSuccess;
  }
  Status destroy_graph(GraphHandle graph) override { return graphs_.erase(graph) ? kSuccess : kInvalidValue; }
  Status instantiate(GraphHandle graph, GraphExecHandle* exec) override {
    if (next_instantiate != kSuccess) return std::exchange(next_instantiate, kSuccess);
    *exec = reinterpret_cast<GraphExecHandle>(++execs_made_);
    execs_[*exec] = graphs_.at(graph);
    note("instantiate g" + number(graph) + " as x" + number(*exec));
    return kSuccess;
  }
  Status update(GraphExecHandle exec, GraphHandle graph) override {
    if (execs_.at(exec).size() != graphs_.at(graph).size()) return kUpdateFailure;
    execs_.at(exec) = graphs_.at(graph);
    note("update x" + number(exec) + " by g" + number(graph));
    return kSuccess;
  }
  Status launch(GraphExecHandle exec, StreamHandle stream) override {
    if (next_graph_launch != kSuccess) return std::exchange(next_graph_launch, kSuccess);
    note("launch x" + number(exec) + " on " + number(stream));
    const Work& work = execs_.at(exec);
    if (lags)
      waiting_.insert(waiting_.end(), work.begin(), work.end());
    else
      for (const auto& run : work) run();
    return kSuccess;
  }
  Status destroy_exec(GraphExecHandle exec) override { return execs_.erase(exec) ? kSuccess : kInvalidValue; }

  bool captures(StreamHandle stream) const { return captured_ && stream == captured_; }
  /// To be called by a kernel in place of running, while its stream is captured.
  void capture(std::function<void()> run) { work_.push_back(std::move(run)); }
  std::function<void(StreamHandle)> on_capture;  // null: it ends
  size_t graphs() const { return graphs_.size() + execs_.size(); }

  Status load(CodeHandle* code, const void*) override {
    *code = nullptr;
    return next_load;
  }
  Status find_kernel(KernelHandle* kernel, CodeHandle, const char* name) override {
    const auto found = kernels.find(name);
    if (found == kernels.end()) return kNoSuchKernel;
    *kernel = reinterpret_cast<KernelHandle>(&found->second);
    return kSuccess;
  }
  Status launch(KernelHandle kernel, const LaunchShape& shape, void** arguments,
                StreamHandle stream) override {
    (*reinterpret_cast<const HostKernel*>(kernel))(shape, arguments[0], stream);
    return kSuccess;
  }
  std::unique_ptr<Blas> open_blas() override { return make_blas ? make_blas() : nullptr; }
  std::unique_ptr<Dnn> open_dnn(std::string& problem) override {
    if (make_dnn) return make_dnn(problem);
    problem = "the host has none";
    return nullptr;
  }
  std::unique_ptr<Solver> open_solver(SolverProblem& problem) override {
    if (make_solver) return make_solver(problem);
    problem.text = "the host has none";
    return nullptr;
  }
  Status describe(int, DeviceDescription* d) override {
    *d = {.name = "the host in a device's place", .major = 9, .memory_bytes = capacity};
    return kSuccess;
  }

  std::function<std::unique_ptr<Blas>()> make_blas;                    // what open_blas() gives
  std::function<std::unique_ptr<Dnn>(std::string& problem)> make_dnn;  // and open_dnn()
  std::function<std::unique_ptr<Solver>(SolverProblem& problem)> make_solver;

  /// Replacements for the kernels of loaded code, by name; they have one parameter.
  using HostKernel = std::function<void(const LaunchShape&, const void* parameter, StreamHandle)>;
  static constexpr Status kNoSuchKernel = 500;
  std::map<std::string, HostKernel, std::less<>> kernels;
  Status next_load = kSuccess;

  int pinned_made = 0;
  bool has_pinned = true;         // false: no more is given
  std::vector<int> used_devices;  // of the calls of use()

 private:
  std::mutex uses_;
  static constexpr size_t kPage = 4096;

  void protect(int access) {
    if (!is_guarded_) return;
    for (const auto& [memory, bytes] : sizes_)
      ::mprotect(memory, (bytes + kPage - 1) / kPage * kPage, access);
  }

  template <class H>
  static std::string number(H* handle) {
    return std::to_string(reinterpret_cast<uintptr_t>(handle));
  }
  void note(const std::string& line) { log += line + "\n"; }
  void later(std::function<void()> run) {
    if (lags)
      waiting_.push_back(std::move(run));
    else
      run();
  }
  bool breaks_capture(StreamHandle stream) {
    if (!captured_ || stream != captured_) return false;
    return is_broken_ = true;
  }

  static constexpr Status kInvalidValue = 1, kCaptureUnsupported = 900, kCaptureInvalidated = 901,
                          kCaptureIsolation = 905, kUpdateFailure = 910;
  using Work = std::vector<std::function<void()>>;

  bool is_guarded_ = false;
  uintptr_t streams_ = 0, made_ = 0, graphs_made_ = 0, execs_made_ = 0;
  StreamHandle captured_ = nullptr;
  bool is_broken_ = false;
  Work work_, waiting_;
  std::map<GraphHandle, Work> graphs_;
  std::map<GraphExecHandle, Work> execs_;
  std::map<EventHandle, bool> fired_;
  std::map<void*, size_t> sizes_;
};

}  // namespace retrograd::cuda
