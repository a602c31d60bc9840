// save_on_cpu with tensors of a device: order of copies and events, memory that rests until a copy is done, what stays
// where it is. The device is the host's memory (tests/cuda/device_on_host.h). Backwards: offload_plans_test.cc.
//
// Streams are numbered as they are made: 1 computes, 2 copies to the device, 3 to the host.
#include "cuda/host_copy.h"
#include "tests/cuda/offload_fixture.h"

using namespace retrograd;
using namespace retrograd::testing;

TEST_CASE_METHOD(OffloadFixture, "a tensor goes to pinned memory after its producer, without a wait") {
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
  // After the copy to the host and all earlier computations; then computing continues after it.
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

TEST_CASE_METHOD(OffloadFixture, "a copy that is begun ahead is waited for where it is unpacked") {
  const auto hooks = save_on_cpu(true);
  const Tensor x = wave(512).view({16, 32}).t().to(kCUDA);
  const std::any payload = hooks->pack(x);
  CHECK(copies_of([&] { hooks->prefetcher()->begin(payload); }) ==
        "wait e0 on 2\nrecord e1 on 1\nwait e1 on 2\ncopy 2048 on 2\nrecord e2 on 2\n");
  Tensor back;
  CHECK(copies_of([&] { back = hooks->unpack(payload); }) == "wait e0 on 1\n");
  CHECK(same_bits(back.cpu(), x.cpu()));
}

TEST_CASE_METHOD(OffloadFixture,
                 "what is dropped was waited for: its memory is handed on by the compute stream") {
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

TEST_CASE_METHOD(OffloadFixture, "98: memory that a copy to the host reads rests until the copy is done") {
  const auto hooks = save_on_cpu(true);
  driver.holds_events = true;
  Tensor x = full({kRows, kWidth}, 2.0, there);
  const int64_t before = live(), resting = gpu.memory().stats().resting_bytes;
  const std::any payload = hooks->pack(x);
  CHECK(live() == before);  // nobody owns the copied tensor any more
  CHECK(gpu.memory().stats().resting_bytes == resting + kBytes);
  x.zero_();  // does not change the saved value
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

TEST_CASE_METHOD(OffloadFixture, "layouts, dtypes and expanded tensors come back") {
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

TEST_CASE_METHOD(OffloadFixture, "not pinned: on the host all the same, and waited for") {
  const auto hooks = save_on_cpu();
  const Tensor x = wave(512).to(kCUDA);
  const int64_t before = live(), host = memory::stats().live_bytes;
  const std::any payload = hooks->pack(x);
  CHECK(live() == before);
  CHECK(memory::stats().live_bytes == host + 2048);
}

TEST_CASE_METHOD(OffloadFixture, "97: kept tensors, views of them and small ones stay where they are") {
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

TEST_CASE_METHOD(OffloadFixture, "100: without pinned memory a tensor stays on the device") {
  const auto hooks = save_on_cpu(true);
  const Tensor x =
      zeros({1 << 22}, there);  // made there, and larger than any block that other tests have left
  driver.has_pinned = false;
  const std::any payload = hooks->pack(x);
  driver.has_pinned = true;
  CHECK(offload_stats().stayed == 1);
  CHECK(offload_stats().bytes_to_host == 0);
  CHECK(hooks->prefetcher()->bytes(payload) == 0);
  CHECK(hooks->unpack(payload).raw_data() == x.raw_data());
}
