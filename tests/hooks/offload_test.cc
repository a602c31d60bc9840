// save_on_cpu(pinned = true) on the CPU: copies both ways, prefetches, counters. stock_more_test.cc tests that each
// layout is restored, tests/tracer/prefetch_test.cc when backwards begin prefetches, tests/cuda/offload_test.cc streams
// and events.
#include <catch2/catch.hpp>
#include <thread>

#include "retrograd/retrograd.h"
#include "tests/hooks/pairs.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::testing::same_bits;
using rg::testing::wave;

namespace {

struct Pair {
  rg::RefPtr<rg::SavedTensorHooks> hooks = rg::save_on_cpu(true, {}, {.nodes = 3, .room_bytes = 7});
  rg::Prefetcher& prefetcher = *hooks->prefetcher();
  Pair() { rg::reset_offload_stats(); }
};

}  // namespace

TEST_CASE_METHOD(Pair, "unpack gives a copy of its own, each time") {
  const Tensor x = wave(300);
  const std::any payload = hooks->pack(x);
  const Tensor a = hooks->unpack(payload), b = hooks->unpack(payload);
  CHECK(same_bits(a, x));
  CHECK(same_bits(b, x));
  CHECK(a.raw_data() != b.raw_data());
  a.zero_();
  CHECK(same_bits(hooks->unpack(payload), x));
  const rg::OffloadStats stats = rg::offload_stats();
  CHECK(stats.bytes_to_host == 1200);
  CHECK(stats.bytes_back == 3600);
  CHECK(stats.early == 0);
  CHECK(stats.most_in_flight == 0);
}

TEST_CASE_METHOD(Pair, "what was begun is what the next unpack gives") {
  const Tensor x = wave(300).view({20, 15}).t();
  const std::any payload = hooks->pack(x);
  CHECK(prefetcher.bytes(payload) == 1200);
  CHECK(prefetcher.options().nodes == 3);
  CHECK(prefetcher.options().room_bytes == 7);
  const int64_t live = rg::memory::stats().live_bytes;
  prefetcher.begin(payload);
  prefetcher.begin(payload);  // it is there already
  CHECK(rg::memory::stats().live_bytes == live + 1200);
  CHECK(rg::offload_stats().in_flight == 1);
  CHECK(rg::offload_stats().bytes_in_flight == 1200);
  CHECK(rg::offload_stats().bytes_back == 1200);
  const Tensor y = hooks->unpack(payload);
  CHECK(same_bits(y, x));
  CHECK(y.strides() == x.strides());
  CHECK(rg::memory::stats().live_bytes == live + 1200);
  CHECK(rg::offload_stats().in_flight == 0);
  CHECK(rg::offload_stats().early == 1);
  CHECK(same_bits(hooks->unpack(payload), x));
  CHECK(rg::offload_stats().bytes_back == 2400);
}

TEST_CASE_METHOD(Pair, "what was begun and not unpacked is dropped, by hand or with the payload") {
  const int64_t live = rg::memory::stats().live_bytes;
  {
    const Tensor x = wave(300);
    const std::any payload = hooks->pack(x);
    prefetcher.begin(payload);
    prefetcher.drop(payload);
    prefetcher.drop(payload);
    CHECK(rg::memory::stats().live_bytes == live + 2400);
    CHECK(same_bits(hooks->unpack(payload), x));
    prefetcher.begin(payload);
  }
  CHECK(rg::memory::stats().live_bytes == live);
  CHECK(rg::offload_stats().in_flight == 0);
  CHECK(rg::offload_stats().most_in_flight == 1);
}

TEST_CASE_METHOD(Pair, "there is nothing to begin of what is kept, or has no elements") {
  const Tensor weight = wave(64);
  const auto keeps = rg::save_on_cpu(true, {weight});
  const std::any kept = keeps->pack(weight.view({8, 8}).t()), empty = hooks->pack(rg::zeros({0, 4}));
  CHECK(keeps->prefetcher()->bytes(kept) == 0);
  CHECK(prefetcher.bytes(empty) == 0);
  keeps->prefetcher()->begin(kept);
  keeps->prefetcher()->drop(kept);
  CHECK(keeps->unpack(kept).raw_data() == weight.raw_data());
  CHECK(rg::offload_stats().bytes_to_host == 0);
  CHECK(rg::offload_stats().early == 0);
  CHECK(rg::save_on_cpu()->prefetcher() == nullptr);
}

TEST_CASE_METHOD(Pair, "an expanded tensor goes once") {
  const Tensor x = rg::expand(wave(20), {50, 20});
  const std::any payload = hooks->pack(x);
  CHECK(prefetcher.bytes(payload) == 80);
  prefetcher.begin(payload);
  CHECK(same_bits(hooks->unpack(payload), x));
  CHECK(rg::offload_stats().bytes_to_host == 80);
}

TEST_CASE_METHOD(Pair, "100: where memory is short, begin fails and the payload is as before") {
  const Tensor x = wave(300);
  const std::any payload = hooks->pack(x);
  rg::memory::fail_allocation_after(1);
  CHECK_THROWS_AS(prefetcher.begin(payload), rg::OutOfMemory);
  rg::memory::fail_allocation_after(0);
  CHECK(rg::offload_stats().in_flight == 0);
  CHECK(same_bits(hooks->unpack(payload), x));
}

TEST_CASE_METHOD(Pair, "several threads begin and unpack one payload") {
  const Tensor x = wave(3000);
  const std::any payload = hooks->pack(x);
  std::atomic<int> same{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        prefetcher.begin(payload);
        same += same_bits(hooks->unpack(payload), x);
        if (k % 7 == 0) prefetcher.drop(payload);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(same == 200);
  prefetcher.drop(payload);
  CHECK(rg::offload_stats().in_flight == 0);
}
