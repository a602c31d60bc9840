// Temporary memory of kernels (cpu/scratch.h): its source, what is counted, the computed need of a call; the executor's
// scratch_bytes() and launches in an area of that size.
//
// That every op uses what was computed for it is checked where every op runs: tests/ops/derivatives and the conformance
// runner, by cpu/scratch_check.h.
#include "cpu/scratch.h"

#include <cstring>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

#include "cpu/scratch_check.h"
#include "engine/runner.h"
#include "ops/arithmetic.h"
#include "ops/attention.h"
#include "ops/index_ops.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "retrograd/retrograd.h"
#include "tests/cpu/threads.h"

namespace retrograd::cpu {
namespace {

int64_t live() { return memory::stats().live_bytes; }
int64_t allocations() { return memory::stats().allocations; }

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 64 == 0; }

struct alignas(64) Block {
  std::byte bytes[64];
};

class Area {
 public:
  explicit Area(int64_t bytes) : blocks_(static_cast<size_t>((bytes + 63) / 64)), bytes_(bytes) {}
  std::span<std::byte> span() { return {blocks_.data()->bytes, static_cast<size_t>(bytes_)}; }
  bool contains(const void* p) const {
    const auto* at = static_cast<const std::byte*>(p);
    return at >= blocks_.data()->bytes && at < blocks_.data()->bytes + bytes_;
  }

 private:
  std::vector<Block> blocks_;
  int64_t bytes_;
};

// ---- sources ------------------------------------------------------------------------------------------------

TEST_CASE("without an area, memory is counted as that of tensors, in units of 64 bytes") {
  const int64_t before = live();
  memory::reset_peak();
  {
    const Scratch<float> a(10);
    const Scratch<double> b(9);
    CHECK(live() == before + 64 + 128);
    CHECK(is_aligned(a.data()));
    CHECK(is_aligned(b.data()));
    a[9] = 1;
    b[8] = 2;
  }
  CHECK(live() == before);
  CHECK(memory::stats().peak_bytes == before + 192);
}

TEST_CASE("no elements take no memory") {
  const int64_t before = allocations();
  const Scratch<float> none(0);
  const ThreadScratch<float> nones(0);
  CHECK(none.data() == nullptr);
  CHECK(nones.mine() == nullptr);
  CHECK(allocations() == before);
}

TEST_CASE("pieces are contiguous in the area, and what does not fit is allocated") {
  Area memory(256);
  const int64_t before = allocations();
  const ScratchArea area(memory.span());
  {
    const Scratch<char> a(1), b(100);
    CHECK(memory.contains(a.data()));
    CHECK(b.data() == a.data() + 64);
    CHECK(area.peak() == 192);
    CHECK(allocations() == before);
    {
      const Scratch<char> too_large(65);
      CHECK_FALSE(memory.contains(too_large.data()));
      CHECK(is_aligned(too_large.data()));
      const Scratch<char> behind(1);
      CHECK_FALSE(memory.contains(behind.data()));
    }
    const Scratch<char> fits(64);
    CHECK(fits.data() == a.data() + 192);
    CHECK(allocations() == before + 2);
  }
  CHECK(area.peak() == 192 + 128 + 64);
  const Scratch<char> again(1);
  CHECK(again.data() == reinterpret_cast<char*>(memory.span().data()));
}

TEST_CASE("areas nest") {
  Area outer_memory(128), inner_memory(64);
  const ScratchArea outer(outer_memory.span());
  const Scratch<char> a(1);
  {
    const ScratchArea inner(inner_memory.span());
    const Scratch<char> b(1);
    CHECK(inner_memory.contains(b.data()));
    CHECK(inner.peak() == 64);
  }
  const Scratch<char> c(1);
  CHECK(c.data() == a.data() + 64);
  CHECK(outer.peak() == 128);
}

TEST_CASE("sizes without a number of bytes are refused") {
  const int64_t before = live();
  CHECK_THROWS_AS(Scratch<double>(int64_t{1} << 61), OutOfMemory);
  CHECK_THROWS_AS(Scratch<double>(int64_t{1} << 47), OutOfMemory);
  CHECK_THROWS_AS(ThreadScratch<double>(int64_t{1} << 47), OutOfMemory);
  CHECK_THROWS_AS(measure_scratch([] { Scratch<double>(int64_t{1} << 60); }), OutOfMemory);
  CHECK_FALSE(measuring());
  CHECK(live() == before);
}

TEST_CASE("memory that runs out leaves nothing behind") {
  const int64_t before = live();
  const auto take_three = [] { const Scratch<char> a(64), b(64), c(64); };
  for (int64_t after = 1; after <= 3; ++after) {
    memory::fail_allocation_after(after);
    CHECK_THROWS_AS(take_three(), OutOfMemory);
    CHECK(live() == before);
  }
  memory::fail_allocation_after(0);
  memory::set_limit(before + 128);
  CHECK_THROWS_AS(take_three(), OutOfMemory);
  memory::set_limit(0);
  CHECK(live() == before);
  Area memory(192);
  const ScratchArea area(memory.span());
  take_three();
  CHECK(area.peak() == 192);
}

// ---- threads ------------------------------------------------------------------------------------------------

constexpr int64_t kApart = 4096;  // bytes between parts

TEST_CASE("each thread of a loop has its part") {
  for (int count : {1, 2, 3}) {
    const Threads threads(count);
    const int64_t before = live();
    const ThreadScratch<int64_t> parts(100);
    CHECK(live() == before + count * 832 + (count - 1) * kApart);
    std::vector<int> failures(1000);
    parallel_for(1000, [&](int64_t chunk) {
      int64_t* const mine = parts.mine();
      failures[static_cast<size_t>(chunk)] = !is_aligned(mine) || loop_thread.number >= count;
      for (int i = 0; i < 100; ++i) mine[i] = chunk;
      for (int i = 0; i < 100; ++i) failures[static_cast<size_t>(chunk)] += mine[i] != chunk;
    });
    CHECK(failures == std::vector<int>(1000));
  }
}

TEST_CASE("no more parts than chunks") {
  const Threads threads(3);
  CHECK(measure_scratch([] { ThreadScratch<char>(64, 2); }) == 128 + kApart);
  CHECK(measure_scratch([] { ThreadScratch<char>(64, 1); }) == 64);
  CHECK(measure_scratch([] { ThreadScratch<char>(64, 0); }) == 64);
  CHECK(measure_scratch([] { ThreadScratch<char>(64, 9); }) == 192 + 2 * kApart);
}

TEST_CASE("a loop has no more threads than there are parts, whatever is set meanwhile") {
  const Threads threads(2);
  const ThreadScratch<char> parts(1, 100);
  set_num_threads(8);
  std::vector<int> numbers(100);
  parallel_for(100, [&](int64_t chunk) { numbers[static_cast<size_t>(chunk)] = loop_thread.number; });
  for (int number : numbers) CHECK(number < 2);
}

TEST_CASE("loops in chunks run alone, in the memory that the chunk was lent") {
  const Threads threads(3);
  const auto inner = [] {
    const ThreadScratch<char> parts(64);
    const Scratch<char> more(1);
    parallel_for(5, [&](int64_t) {
      if (!is_aligned(parts.mine())) throw std::logic_error("not aligned");
      std::memset(parts.mine(), 0, 64);
    });
  };
  CHECK(measure_chunk(4, inner) == 128);
  CHECK(measure_chunk(1, inner) == 3 * 64 + 2 * kApart + 64);  // it may use the pool itself
  for (int64_t chunks : {1, 4}) {
    const ScratchRoom room(measure_chunk(chunks, inner), chunks);
    const int64_t before = allocations();
    parallel_for(chunks, [&](int64_t) {
      const ScratchArea area = room.lend();
      inner();
    });
    CHECK(allocations() == before);
  }
}

// ---- measuring ----------------------------------------------------------------------------------------------

TEST_CASE("a call that is measured takes no memory and runs no chunk") {
  const Threads threads(2);
  const int64_t before = allocations();
  Area memory(64);
  const ScratchArea area(memory.span());
  const Scratch<char> held(1);
  const int64_t bytes = measure_scratch([&] {
    CHECK(measuring());
    const Scratch<float> a(100);
    { const Scratch<float> b(1000); }
    const Scratch<float> c(16);
    CHECK(a.data() == kNowhere);
    CHECK_FALSE(memory.contains(c.data()));
    parallel_for(10, [&](int64_t) { throw std::logic_error("a chunk ran"); });
  });
  CHECK(bytes == 448 + 4032);
  CHECK_FALSE(measuring());
  CHECK(area.peak() == 64);
  CHECK(allocations() == before);
}

TEST_CASE("an exception ends measuring") {
  CHECK_THROWS_AS(measure_scratch([] { throw std::logic_error("x"); }), std::logic_error);
  CHECK_FALSE(measuring());
  int runs = 0;
  parallel_for(1, [&](int64_t) { ++runs; });
  CHECK(runs == 1);
}

// ---- calls of the executor ----------------------------------------------------------------------------------

/// A call of an op, and cells for its results.
struct Launch {
  template <class Op>
  static Launch of(std::vector<Tensor> inputs, typename Op::Attrs attrs = {}) {
    Launch launch{&ops::info<Op>, std::move(inputs), std::vector<std::byte>(sizeof(attrs))};
    std::memcpy(launch.attrs.data(), &attrs, sizeof(attrs));
    return launch;
  }

  /// Calls f(kernel, call, outputs) with operands and outputs that have no storage.
  template <class F>
  auto typed(const F& f) {
    std::vector<RefPtr<TensorImpl>> cells;
    std::vector<TensorImpl*> pointers;
    for (const Tensor& x : inputs) {
      cells.push_back(TensorImpl::make());
      cells.back()->alias(x.impl());
      cells.back()->set_storage({});
    }
    for (int i = 0; i < op->outputs; ++i) cells.push_back(TensorImpl::make());
    for (const RefPtr<TensorImpl>& cell : cells) pointers.push_back(cell.get());
    const std::span all(pointers);
    const Call call{op, all.first(inputs.size()), attrs.data(), {}, op->outputs};
    TensorImpl* const* outputs = pointers.data() + inputs.size();
    op->infer(call, outputs);
    for (int i = 0; i < op->outputs; ++i)
      contiguous_strides(outputs[i]->shape(), outputs[i]->mutable_strides());
    return f(cpu_executor().find(op), call, outputs);
  }
  int64_t bytes() {
    return typed([](Kernel kernel, const Call& call, TensorImpl* const* outputs) {
      return cpu_executor().scratch_bytes(kernel, call, outputs);
    });
  }
  /// The results; how high live bytes rose above the live bytes with them, and the number of allocations.
  struct Result {
    Tensors values;
    int64_t peak, allocations;
  };
  Result run(std::span<std::byte> scratch = {}) {
    return typed([&](Kernel kernel, Call call, TensorImpl* const* outputs) {
      for (size_t i = 0; i < inputs.size(); ++i) call.operands[i]->set_storage(inputs[i].impl().storage());
      for (int i = 0; i < call.outputs; ++i) cpu_executor().allocate(*outputs[i]);
      const int64_t before = live(), count = allocations();
      memory::reset_peak();
      cpu_executor().launch(kernel, call, outputs, scratch);
      Result result{{}, memory::stats().peak_bytes - before, allocations() - count};
      CHECK(live() == before);
      for (int i = 0; i < call.outputs; ++i) result.values.push_back(Tensor(RefPtr<TensorImpl>(outputs[i])));
      return result;
    });
  }

  const OpInfo* op;
  std::vector<Tensor> inputs;
  std::vector<std::byte> attrs;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto bytes = static_cast<size_t>(a.numel()) * element_size(a.dtype());
  return std::memcmp(a.impl().data(), b.impl().data(), bytes) == 0;
}

std::vector<Launch> launches() {
  const Tensor a = randn({70, 90}), b = randn({90, 110}), wide = randn({300, 200}),
               half = randn({300, 200}).to(kBFloat16), batch = randn({3, 2, 40, 16}),
               rows = randn({3, 40, 2, 16}), lse = randn({3, 2, 40});
  ops::Sort::Attrs first_dim{};
  first_dim.dim = 0;
  first_dim.count = 300;
  ops::ReduceAttrs over_rows{};
  over_rows.dim = {0};
  ops::AttentionAttrs masked{};
  masked.scale = 0.25;
  masked.is_causal = true;
  ops::AttentionAttrs interleaved = masked;
  interleaved.interleaved = true;
  return {
      Launch::of<ops::Mm>({a, b}),
      Launch::of<ops::Mm>({a.to(kBFloat16), b.to(kBFloat16)}),
      Launch::of<ops::Mm>({transpose(b, 0, 1), transpose(a, 0, 1)}),
      Launch::of<ops::Sort>({wide}, first_dim),
      Launch::of<ops::Sum>({half}, over_rows),
      Launch::of<ops::Softmax>({transpose(wide, 0, 1)}, {0}),
      Launch::of<ops::SoftmaxBackward>({transpose(batch, 0, 2), transpose(batch, 0, 2)}, {3}),
      Launch::of<ops::Softmax>({half}, {0}),
      Launch::of<ops::IndexSelect>({wide, arange(200)}, {1}),
      Launch::of<ops::Attention>({batch, batch, batch}, masked),
      Launch::of<ops::Attention>({batch, batch, batch}, interleaved),
      Launch::of<ops::Attention>({batch.to(kBFloat16), batch.to(kBFloat16), batch.to(kBFloat16)}, masked),
      Launch::of<ops::AttentionBackwardJoined>({batch, batch, batch, rows, lse, rows}, interleaved),
      Launch::of<ops::AttentionBackwardJoined>({batch.to(kBFloat16), batch.to(kBFloat16), batch.to(kBFloat16),
                                                rows.to(kBFloat16), lse, rows.to(kBFloat16)},
                                               interleaved)};
}

TEST_CASE("a launch asks for what scratch_bytes() says, from types alone") {
  for (int count : {1, 2, 3}) {
    const Threads threads(count);
    for (Launch& launch : launches()) {
      const int64_t bytes = launch.bytes();
      INFO(launch.op->name << ", " << count << " threads, " << bytes << " bytes");
      CHECK(bytes > 0);
      const Launch::Result alone = launch.run();
      CHECK(alone.peak == bytes);
      Area memory(bytes);
      const Launch::Result lent = launch.run(memory.span());
      CHECK(lent.allocations == 0);
      for (size_t i = 0; i < alone.values.size(); ++i) CHECK(same_bits(alone.values[i], lent.values[i]));
      Area small(bytes / 2 / 64 * 64);
      const Launch::Result half = launch.run(small.span());
      for (size_t i = 0; i < alone.values.size(); ++i) CHECK(same_bits(alone.values[i], half.values[i]));
    }
  }
}

TEST_CASE("ops without temporary memory need none") {
  CHECK(Launch::of<ops::Mm>({randn({64, 64}), randn({64, 64})}).bytes() == 0);
  CHECK(Launch::of<ops::Neg>({randn({1000, 1000})}).bytes() == 0);
}

TEST_CASE("a launch that runs out of memory gives back what it had") {
  for (Launch& launch : launches()) {
    const int64_t before = live(), needed = launch.run().allocations;
    for (int64_t after = 1; after <= needed; ++after) {
      // The results are allocated first.
      CHECK_THROWS_AS((memory::fail_allocation_after(launch.op->outputs + after), launch.run()), OutOfMemory);
      CHECK(live() == before);
    }
    memory::fail_allocation_after(0);
  }
}

TEST_CASE("the check sees a call that asks for something else than it was measured to") {
  const auto take = [](int64_t bytes) { return [=] { Scratch<char>{bytes}; }; };
  run_checked("right", 128, take(100));
  CHECK_THROWS_AS(run_checked("more", 128, take(200)), InternalError);
  CHECK_THROWS_AS(run_checked("less", 128, take(10)), InternalError);
  CHECK_THROWS_AS(run_checked("tensors", 0, [] { randn({3}); }), InternalError);
}

}  // namespace
}  // namespace retrograd::cpu
