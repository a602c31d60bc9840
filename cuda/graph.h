// Graph: launches recorded as a CUDA graph (engine/executor.h: LaunchGraph), and what a recording needs of the device. Recorded again, its
// executable copy is updated; only if it has other nodes than before that is made anew.
//
//   Recording what this thread captures now. Launches find it through Gpu::compute(), which is its stream then, so that what other
//             threads put on the device is not captured. It keeps the pinned memory that uploads are to read whenever the graph runs.
//   Rooms     temporary memory of captured launches (cuda/scratch.h), the same for all graphs of a device: they run one after the other on the
//             compute stream, and so do their kernels. It goes back to the allocator with the last graph.
//
//   Table     bytes that launches read and that are the same in each run, such as the list of tensors of an optimizer's step: in memory of the
//             device that the graph keeps. Recorded again with the same bytes it finds them there, and nothing is copied.
//   HeldNumbers numbers that launches read and that are others from run to run: in memory of the device, too. Before a start they are made anew of
//             the attributes that they come from, and if some have changed all are written by one copy on the compute stream: behind the runs that
//             still read the old ones. Its source is pinned memory of its own for each copy, until that is done.
//
// Steps of optimizers and random draws hold their numbers so (cuda/numbers.h), and nothing is recorded again for them. Numbers of other launches
// are arguments of kernels, as they are without graphs: a plan records no such launch (tracer/plan_segments.cc).
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cuda/allocator.h"
#include "cuda/pinned.h"
#include "engine/executor.h"

namespace retrograd::cuda {

class Gpu;

class Rooms {
 public:
  explicit Rooms(Allocator& memory) : memory_(memory) {}
  Rooms(const Rooms&) = delete;

  /// At least `bytes`: a free one, or new memory. OutOfMemory.
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

/// Bytes in memory of the device, copied there when it is made.
class Table {
 public:
  /// OutOfMemory, DeviceError.
  Table(Gpu& gpu, std::span<const std::byte> bytes, std::string_view op);
  /// In the order of the compute stream: launches that read it may be under way.
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

/// Numbers of launches, made of attributes that change from run to run, but not their place.
class HeldNumbers {
 public:
  /// Makes a launch's numbers, all bytes of which have a value, of its attributes.
  using Write = void (*)(const void* attrs, void* to);
  static constexpr size_t kMost = 64;               // bytes of a launch
  static constexpr size_t kLaunchesOfAPiece = 256;  // a copy each

  explicit HeldNumbers(Gpu& gpu) : gpu_(gpu) {}
  /// In the order of the compute stream: launches that read them may be under way.
  ~HeldNumbers();
  HeldNumbers(const HeldNumbers&) = delete;

  /// Where a launch finds its numbers. OutOfMemory.
  const void* add(const void* attrs, size_t bytes, Write write, std::string_view op);
  /// Puts them there as they are now. DeviceError.
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
    bool is_there = false;            // `now` in the block
  };
  void renew(Piece& piece);

  Gpu& gpu_;
  std::vector<Piece> pieces_;
};

class Recording {
 public:
  /// What launches read whenever the graph runs.
  struct Kept {
    std::vector<PinnedPool::Block> pinned;
    std::vector<std::shared_ptr<const Table>> tables;
    std::unique_ptr<HeldNumbers> numbers;  // null: there are none
  };

  /// Begins with this thread's; ends with the object. `before`: what the graph has kept so far.
  Recording(Gpu& gpu, Stream& stream, Kept& kept, const Kept& before);
  ~Recording();
  Recording(const Recording&) = delete;
  Stream& stream() { return stream_; }
  void keep(PinnedPool::Block block) { kept_.pinned.push_back(block); }
  /// Where the graph finds these bytes. OutOfMemory, DeviceError.
  const void* table(std::span<const std::byte> bytes, std::string_view op);
  /// Where it finds numbers that `write` makes of the attributes, as these are whenever it is started. OutOfMemory.
  const void* numbers(const void* attrs, size_t bytes, HeldNumbers::Write write, std::string_view op);

  /// Of this thread on this device; null: there is none.
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
  /// DeviceError. There is one part.
  void begin(size_t part) override;
  /// DeviceError also where a launch did what cannot be captured, such as waiting for the device. Then the graph is not to be started.
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
  Recording::Kept kept_, recorded_;  // by exec_, by the recording
  std::unique_ptr<Recording> recording_;
};

}  // namespace retrograd::cuda
