// save_on_cpu with tensors of a device: order of copies and events, memory that rests until a copy is done, the pool of pinned memory, peaks of
// backwards that bring values back ahead of their use. The device is the host's memory (tests/cuda/device_on_host.h).
//
// Streams are numbered as they are made: 1 computes, 2 copies to the device, 3 to the host.
#include "cuda/host_copy.h"
#include "tests/cuda/device_on_host.h"
#include "tests/hooks/pairs.h"

using namespace retrograd;
using retrograd::testing::is_left_as_it_is;
using retrograd::testing::same_bits;
using retrograd::testing::wave;

namespace {

constexpr int64_t kRows = 32, kWidth = 16, kBytes = kRows * kWidth * 4;

// Numbers of events by the order in which they occur in the text.
std::string renumbered(const std::string& log) {
  std::map<std::string, int> numbers;
  std::string out;
  for (size_t i = 0; i < log.size();) {
    const size_t end = log.find_first_not_of("0123456789", i + 1);
    if (log[i] == 'e' && i > 0 && log[i - 1] == ' ' && end > i + 1) {
      const int number =
          numbers.try_emplace(log.substr(i, end - i), static_cast<int>(numbers.size())).first->second;
      out += "e" + std::to_string(number);
      i = end;
    } else {
      out += log[i++];
    }
  }
  return out;
}

struct Fixture {
  cuda::HostDriver& driver = device_on_host();
  cuda::Gpu& gpu = cuda::gpu_of(0);
  const TensorOptions there{kFloat32, kCUDA};

  Fixture() { reset_offload_stats(); }
  ~Fixture() {
    driver.holds_events = false;
    driver.fire_all();
  }
  std::string copies_of(const std::function<void()>& f) {
    driver.log.clear();
    f();
    return renumbered(driver.log);
  }
  int64_t live() { return gpu.memory().stats().live_bytes; }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a tensor goes to pinned memory behind its producer, and nobody waits") {
  const auto hooks = save_on_cpu(true);
  const Tensor x = wave(512).to(kCUDA);
  const int waits = driver.synchronizations;
  std::any payload;
  // A copy of the tensor, the way to the host, the event of that copy, that of the memory that it reads.
  CHECK(copies_of([&] { payload = hooks->pack(x); }) == R"(copy 2048 on 1
record e0 on 1
wait e0 on 3
copy 2048 on 3
record e1 on 3
record e2 on 3
)");
  Tensor back;
  // Behind the copy to the host, and what was computed before; then computing goes on behind it.
  CHECK(copies_of([&] { back = hooks->unpack(payload); }) == R"(wait e0 on 2
record e1 on 1
wait e1 on 2
copy 2048 on 2
record e2 on 2
wait e2 on 1
)");
  CHECK(driver.synchronizations == waits);
  CHECK(back.device() == Device(kCUDA));
  CHECK(same_bits(back.cpu(), wave(512)));
}

TEST_CASE_METHOD(Fixture, "a copy that is begun ahead is waited for where it is unpacked") {
  const auto hooks = save_on_cpu(true);
  const Tensor x = wave(512).view({16, 32}).t().to(kCUDA);
  const std::any payload = hooks->pack(x);
  CHECK(copies_of([&] { hooks->prefetcher()->begin(payload); }) ==
        "wait e0 on 2\nrecord e1 on 1\nwait e1 on 2\ncopy 2048 on 2\nrecord e2 on 2\n");
  Tensor back;
  CHECK(copies_of([&] { back = hooks->unpack(payload); }) == "wait e0 on 1\n");
  CHECK(same_bits(back.cpu(), x.cpu()));
}

TEST_CASE_METHOD(Fixture, "what is dropped was waited for: its memory is handed on by the compute stream") {
  const auto hooks = save_on_cpu(true);
  const int64_t before = live();
  {
    const std::any payload = hooks->pack(wave(512).to(kCUDA));
    hooks->prefetcher()->begin(payload);
    CHECK(live() == before + 2048);
    CHECK(copies_of([&] { hooks->prefetcher()->drop(payload); }) == "wait e0 on 1\n");
    CHECK(live() == before);
    CHECK(same_bits(hooks->unpack(payload).cpu(), wave(512)));
  }
  CHECK(offload_stats().in_flight == 0);
}

TEST_CASE_METHOD(Fixture, "memory that a copy to the host reads rests until the copy is done") {
  const auto hooks = save_on_cpu(true);
  driver.holds_events = true;
  Tensor x = full({kRows, kWidth}, 2, there);
  const int64_t before = live(), resting = gpu.memory().stats().resting_bytes;
  const std::any payload = hooks->pack(x);
  CHECK(live() == before);  // what is copied belongs to nobody any more
  CHECK(gpu.memory().stats().resting_bytes == resting + kBytes);
  x.zero_();  // does not reach what was saved
  driver.fire_all();
  const Tensor other = zeros({kRows, kWidth}, there);
  CHECK(gpu.memory().stats().resting_bytes == 0);
  CHECK(hooks->unpack(payload).to_vector() == std::vector<double>(kRows * kWidth, 2.0));
}

TEST_CASE("a copy on a device that is lost is refused, and goes without an error") {
  cuda::HostDriver driver;
  const cuda::Launchers none{};
  cuda::Gpu gpu(driver, 0, none);
  cuda::Allocator::Block* block = gpu.memory().allocate(2048, "test");
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(kFloat32, kCUDA, {512});
  contiguous_strides(cell->shape(), cell->mutable_strides());
  cell->set_storage(Storage::wrap(block->data, 2048, nullptr, nullptr));
  std::unique_ptr<HostCopy> copy = cuda::copy_to_host(gpu, *cell, *block);
  copy->begin(*cell);
  driver.next_synchronize = 700;  // cudaErrorIllegalAddress
  CHECK_THROWS_AS(gpu.synchronize(), cuda::DeviceError);
  CHECK_THROWS_AS(copy->wait(), cuda::DeviceError);
  CHECK_THROWS_AS(copy->begin(*cell), cuda::DeviceError);
  CHECK_THROWS_AS(cuda::copy_to_host(gpu, *cell, *block), cuda::DeviceError);
  copy.reset();
  const cuda::PinnedPool::Block again = gpu.pinned().take(2048);
  CHECK(driver.pinned_made == 1);
  gpu.pinned().give(again);
  gpu.memory().free(block);
}

TEST_CASE_METHOD(Fixture, "layouts, dtypes and expanded tensors come back") {
  const Tensor base = wave(2400).view({20, 10, 12});
  for (const bool pinned : {true, false}) {
    const auto hooks = save_on_cpu(pinned);
    for (const Tensor& host : {base, base.transpose(0, 2), permute(base, {1, 2, 0}), base.narrow(0, 1, 9),
                               expand(wave(300), {7, 300}), base.to(kBFloat16), arange(0, 500)}) {
      INFO(describe(host));
      const Tensor x = with_layout_on_device(host);
      const std::any payload = hooks->pack(x);
      const Tensor y = hooks->unpack(payload);
      CHECK(y.device() == Device(kCUDA));
      CHECK(same_bits(y.cpu(), x.cpu()));
      CHECK(y.strides() == x.strides());
      CHECK_FALSE(y.impl().storage() == x.impl().storage());
    }
  }
}

TEST_CASE_METHOD(Fixture, "not pinned: on the host all the same, and waited for") {
  const auto hooks = save_on_cpu();
  const Tensor x = wave(512).to(kCUDA);
  const int64_t before = live(), host = memory::stats().live_bytes;
  const std::any payload = hooks->pack(x);
  CHECK(live() == before);
  CHECK(memory::stats().live_bytes == host + 2048);
}

TEST_CASE_METHOD(Fixture, "kept tensors, views of them and small ones stay where they are") {
  const Tensor weight = wave(1024).to(kCUDA);
  for (const bool pinned : {true, false}) {
    const auto hooks = save_on_cpu(pinned, {weight});
    CHECK(is_left_as_it_is(*hooks, weight));
    CHECK(is_left_as_it_is(*hooks, weight.view({32, 32}).t()));
    CHECK(is_left_as_it_is(*hooks, zeros({255}, there)));
    CHECK_FALSE(is_left_as_it_is(*hooks, zeros({256}, there)));
    CHECK(is_left_as_it_is(*hooks, expand(zeros({1}, there), {4096})));
  }
}

TEST_CASE_METHOD(Fixture, "pinned memory is used again, step after step") {
  const auto hooks = save_on_cpu(true, {}, {.nodes = 2});
  const Tensor w = full({kWidth, kWidth}, 0.25, there).requires_grad_(),
               x = wave(kRows * kWidth).view({kRows, kWidth}).to(kCUDA);
  CompiledBackward backward = compile_backward();
  int made = 0;
  for (int step = 0; step < 4; ++step) {
    w.set_grad({});
    SavedTensorHooksGuard guard(hooks);
    backward(sum(retrograd::tanh(mm(retrograd::tanh(mm(x, w)), w))));
    if (step == 1) made = driver.pinned_made;
  }
  CHECK(driver.pinned_made == made);
  CHECK(backward.stats().captures == 1);
}

namespace {

// A chain of layers, whose inputs and results are saved.
struct Chain {
  static constexpr int kLayers = 6;
  Tensors weights;
  Tensor x = wave(kRows * kWidth).view({kRows, kWidth}).to(kCUDA);

  Chain() {
    for (int i = 0; i < kLayers; ++i)
      weights.push_back(
          (wave(kWidth * kWidth, 0.3).view({kWidth, kWidth}) + 0.01 * i).to(kCUDA).requires_grad_());
  }
  Tensor loss() const { return loss(x); }
  Tensor loss(const Tensor& input) const {
    Tensor h = input;
    for (const Tensor& w : weights) h = retrograd::tanh(mm(h, w));
    return sum(h * h);
  }
  Tensors take_grads() const {
    Tensors grads;
    for (const Tensor& w : weights) {
      grads.push_back(w.grad());
      w.set_grad({});
    }
    return grads;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "backwards with values begun ahead: the same bits, and no higher peak than the room") {
  const Chain chain;
  chain.loss().backward();
  const Tensors want = chain.take_grads();
  const auto peak_of = [&](PrefetchOptions options, const std::function<void(const Tensor&)>& backward) {
    Tensor loss;
    {
      SavedTensorHooksGuard guard(save_on_cpu(true, chain.weights, options));
      loss = chain.loss();
    }
    reset_offload_stats();
    gpu.memory().reset_peak();
    backward(loss);
    const int64_t peak = gpu.memory().stats().peak_bytes;
    const Tensors found = chain.take_grads();
    for (size_t i = 0; i < want.size(); ++i) CHECK(same_bits(found[i].cpu(), want[i].cpu()));
    CHECK(offload_stats().in_flight == 0);
    CHECK(offload_stats().bytes_back >= 2 * Chain::kLayers * kBytes - kBytes);
    return peak;
  };
  CompiledBackward compiled = compile_backward();
  const auto traced = [&](const Tensor& loss) { compiled(loss); };
  const int64_t eager = peak_of({}, [](const Tensor& loss) { loss.backward(); });
  CHECK(offload_stats().early == 0);
  const int64_t unmoved = peak_of({.nodes = 0}, traced);
  CHECK(unmoved <= eager);
  CHECK(offload_stats().early == 0);
  for (const int nodes : {1, 4, 64}) {
    INFO(nodes << " nodes ahead");
    CHECK(peak_of({.nodes = nodes}, traced) == unmoved);
    CHECK(offload_stats().early > 0);
    for (const int64_t room : {kBytes, 2 * kBytes, 3 * kBytes + 100, 100 * kBytes}) {
      INFO("room " << room);
      CHECK(peak_of({.nodes = nodes, .room_bytes = room}, traced) <= unmoved + room);
      CHECK(offload_stats().most_bytes_in_flight > 0);
    }
  }
  const OffloadStats all =
      offload_stats();  // with 64 nodes and room for everything, all is begun at the beginning
  CHECK(all.early == all.most_in_flight);
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE_METHOD(Fixture, "compiled functions and steps with values begun ahead: the same bits and peaks") {
  const Chain chain;
  chain.loss().backward();
  const Tensors want = chain.take_grads();
  const auto step = [&](const Tensor& x) {
    for (const Tensor& w : chain.weights) w.set_grad({});
    const Tensor loss = chain.loss(x);
    loss.backward();
    return loss;
  };
  const auto peak_of = [&](bool is_step, PrefetchOptions options) {
    const SavedTensorHooksGuard guard(save_on_cpu(true, chain.weights, options));
    auto compiled_step = compile_step(step);
    auto compiled_loss = compile([&](const Tensor& x) { return chain.loss(x); });
    int64_t peak = 0;
    for (int i = 0; i < 2; ++i) {  // the first time, it is recorded
      gpu.memory().reset_peak();
      reset_offload_stats();
      const Tensor loss = is_step ? compiled_step(chain.x) : compiled_loss(chain.x);
      if (!is_step) loss.backward();
      peak = gpu.memory().stats().peak_bytes;
      const Tensors found = chain.take_grads();
      for (size_t k = 0; k < want.size(); ++k) CHECK(same_bits(found[k].cpu(), want[k].cpu()));
      CHECK(offload_stats().in_flight == 0);
      CHECK(offload_stats().bytes_to_host == offload_stats().bytes_back);
    }
    return peak;
  };
  for (const bool is_step : {false, true}) {
    INFO((is_step ? "step" : "function"));
    const int64_t unmoved = peak_of(is_step, {.nodes = 0});
    CHECK(offload_stats().early == 0);
    for (const int nodes : {1, 4, 64})
      for (const int64_t room : {int64_t{0}, 2 * kBytes, 100 * kBytes}) {
        INFO(nodes << " nodes ahead, room " << room);
        CHECK(peak_of(is_step, {.nodes = nodes, .room_bytes = room}) <= unmoved + room);
        CHECK(offload_stats().early > 0);
      }
  }
}

TEST_CASE_METHOD(Fixture, "in a backward, copies are begun between launches and waited for at the unpack") {
  const Tensor w = full({kWidth, kWidth}, 0.25, there).requires_grad_();
  const Tensor x = wave(kRows * kWidth).view({kRows, kWidth}).to(kCUDA);
  // Launches, copies back as "begin", and the compute stream's waits for them as "wait".
  const auto order = [&](int nodes) {
    const Tensor loss = [&] {
      SavedTensorHooksGuard guard(save_on_cpu(true, {w, x}, {.nodes = nodes, .room_bytes = 1 << 20}));
      return sum(retrograd::tanh(mm(retrograd::tanh(mm(x, w)), w)));
    }();
    driver.logs_launches = true;
    std::istringstream log(copies_of([&] { compile_backward()(loss); }));
    driver.logs_launches = false;
    std::string text;
    for (std::string line; std::getline(log, line);)
      text += line == "launch"                                      ? "launch "
              : line == "copy 2048 on 2"                            ? "begin "
              : line.ends_with(" on 1") && line.starts_with("wait") ? "wait "
                                                                    : "";
    return text;
  };
  // The first launch makes the cotangent. With 1, a launch stands between each copy and its wait, but for the first.
  CHECK(order(0) == "launch begin wait launch launch begin wait launch begin wait launch launch launch ");
  CHECK(order(1) ==
        "launch begin wait launch begin launch wait begin launch wait launch launch launch launch ");
  CHECK(order(64) ==
        "launch begin begin begin wait launch launch wait launch wait launch launch launch launch ");
}
