// Graph: launches recorded as a CUDA graph (engine/executor.h: LaunchGraph), and the resources of a recording. When it
// is recorded again, its executable copy is updated; it is made again only if the graph has other nodes.
//
//   Recording   the capture in progress on this thread. Launches find it through Gpu::compute(), which is its stream
//               then, so that work of other threads is not captured. It keeps the pinned memory that uploads read
//               whenever the graph runs.
//   Rooms       temporary memory of captured launches (cuda/scratch.h), shared by all graphs of a device: they run one
//               after the other on the compute stream, and so do their kernels. It is returned to the allocator with
//               the last graph.
//   Table       bytes that launches read and that are the same in each run, such as the list of tensors of an
//               optimizer's step: in device memory that the graph owns. When the graph is recorded again with the same
//               bytes, they are reused without a copy.
//   HeldNumbers numbers that launches read and that change from run to run: also in device memory. Before a start they
//               are computed again from their attributes. If some have changed, one copy on the compute stream writes
//               all of them, after the runs that still read the old ones. The source of each copy is pinned memory of
//               its own, until the copy is done.
//
// Steps of optimizers and random draws keep their numbers this way (cuda/numbers.h), and are not recorded again when
// these change. Numbers of other launches are kernel arguments, as without graphs: a plan does not record such launches
// (tracer/plan/program_segments.cc).
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cuda/allocator.h"
#include "cuda/pinned.h"
#include "engine/executor.h"

namespace retrograd::inline v0::cuda {

class Gpu;

class Rooms {
 public:
  explicit Rooms(Allocator& memory) : memory_(memory) {}
  Rooms(const Rooms&) = delete;

  /// At least `bytes`: a free block, or new memory. OutOfMemory.
  Allocator::Block* take(int64_t bytes, std::string_view op);
  void give(Allocator::Block* block) noexcept;
  void add_graph();
  void drop_graph() noexcept;

 private:
  Allocator& memory_;
  std::mutex mutex_;
  int graphs_ = 0;
  size_t taken_ = 0;
  std::vector<Allocator::Block*> free_;
};

/// Bytes in device memory, copied there on construction.
class Table {
 public:
  /// OutOfMemory, DeviceError.
  Table(Gpu& gpu, std::span<const std::byte> bytes, std::string_view op);
  /// In the order of the compute stream: launches that read it may still be running.
  ~Table();
  Table(const Table&) = delete;

  bool holds(std::span<const std::byte> bytes) const {
    return bytes.size() == bytes_.size() && std::memcmp(bytes.data(), bytes_.data(), bytes.size()) == 0;
  }
  const void* data() const { return block_->data; }

 private:
  Gpu& gpu_;
  const std::vector<std::byte> bytes_;
  Allocator::Block* block_;
};

/// Numbers of launches, computed from attributes whose values, but not addresses, change from run to run.
class HeldNumbers {
 public:
  /// Computes a launch's numbers from its attributes; all bytes of the numbers must be initialised.
  using Write = void (*)(const void* attrs, void* to);
  static constexpr size_t kMost = 128;              // bytes of a launch
  static constexpr size_t kLaunchesOfAPiece = 256;  // launches per copy

  explicit HeldNumbers(Gpu& gpu) : gpu_(gpu) {}
  /// In the order of the compute stream: launches that read them may still be running.
  ~HeldNumbers();
  HeldNumbers(const HeldNumbers&) = delete;

  /// The address at which a launch finds its numbers. OutOfMemory.
  const void* add(const void* attrs, size_t bytes, Write write, std::string_view op);
  /// Writes their present values. DeviceError.
  void renew();

 private:
  struct Launch {
    const void* attrs;
    Write write;
    size_t bytes;
  };
  struct Piece {
    Allocator::Block* block;
    std::vector<Launch> launches = {};
    std::vector<std::byte> now = {};  // kMost for each launch
    bool is_there = false;            // `now` is in the block
  };
  void renew(Piece& piece);

  Gpu& gpu_;
  std::vector<Piece> pieces_;
};

class Recording {
 public:
  /// Data that launches read whenever the graph runs.
  struct Kept {
    std::vector<PinnedPool::Block> pinned;
    std::vector<std::shared_ptr<const Table>> tables;
    std::unique_ptr<HeldNumbers> numbers;  // null: there are none
  };

  /// Begins the recording of this thread; ends with the object. `before`: what the graph has kept so far.
  Recording(Gpu& gpu, Stream& stream, Kept& kept, const Kept& before);
  ~Recording();
  Recording(const Recording&) = delete;
  Stream& stream() { return stream_; }
  void keep(PinnedPool::Block block) { kept_.pinned.push_back(block); }
  /// The address at which the graph finds these bytes. OutOfMemory, DeviceError.
  const void* table(std::span<const std::byte> bytes, std::string_view op);
  /// The address at which it finds the numbers that `write` computes from the attributes, with their values at each
  /// start. OutOfMemory.
  const void* numbers(const void* attrs, size_t bytes, HeldNumbers::Write write, std::string_view op);

  /// The recording of this thread on this device; null: there is none.
  static Recording* of(const Gpu& gpu);

 private:
  Gpu& gpu_;
  Stream& stream_;
  Kept& kept_;
  const Kept& before_;
};

class Graph final : public LaunchGraph {
 public:
  explicit Graph(Gpu& gpu);
  /// Waits for the device.
  ~Graph() override;
  /// DeviceError.
  void begin() override;
  /// DeviceError, also when a launch did something that cannot be captured, such as waiting for the device. Then the
  /// graph must not be started.
  void end() override;
  void cancel() noexcept override;
  void start() override;

 private:
  Status make(GraphHandle graph);
  void drop_exec() noexcept;
  void let_go(Recording::Kept& kept) noexcept;

  Gpu& gpu_;
  Stream stream_;  // on which launches are captured
  GraphExecHandle exec_ = nullptr;
  Recording::Kept kept_, recorded_;  // of exec_, of the recording
  std::unique_ptr<Recording> recording_;
};

}  // namespace retrograd::cuda
