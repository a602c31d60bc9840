// Backwards that prefetch values and do not end normally: saved tensors that were written to, hooks that throw or
// change what is to come, allocations that fail.
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/own_folder.h"
#include "tests/tracer/offloaded_model.h"

namespace rg = retrograd;
using namespace retrograd::testing;
using rg::PrefetchOptions;
using rg::Tensor;
using rg::Tensors;

TEST_CASE("a kept tensor that was written to is still found out") {
  const Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  for (const PrefetchOptions& options : kOptions) {
    const Tensor loss = model.packed_loss(options);
    {
      rg::NoGradGuard no_grad;
      model.weights[1].mul_(1);
    }
    try {
      backward(loss);
      FAIL("nothing was thrown");
    } catch (const rg::Error& e) {
      CHECK(e.category() == rg::Category::version_mismatch);
    }
    CHECK(rg::offload_stats().in_flight == 0);
    model.take_grads();
  }
}

TEST_CASE("a hook that throws loses nothing: what was begun is dropped, and comes again") {
  const Model model;
  const Tensors want = model.plain_grads();
  rg::CompiledBackward backward = rg::compile_backward();
  for (const PrefetchOptions& options : kOptions) {
    bool throws = true;
    Tensor middle;
    const auto loss_of = [&] {
      rg::SavedTensorHooksGuard guard(rg::save_on_cpu(true, model.weights, options));
      Tensor h = model.x;
      for (size_t i = 0; i < model.weights.size(); ++i) {
        h = rg::gelu(rg::mm(h, model.weights[i])) + h.narrow(1, 0, kWidth);
        if (i != 1) continue;
        middle = h;
        h.register_hook([&](const Tensor&) -> Tensor {
          if (throws) throw std::logic_error("the hook's");
          return {};
        });
      }
      return rg::mean(rg::square(h) * rg::sigmoid(h));
    };
    const int64_t live = rg::memory::stats().live_bytes;
    {
      const Tensor loss = loss_of();
      throws = true;
      CHECK_THROWS_AS(backward.backward({loss}, {}, true), std::logic_error);
      CHECK(rg::offload_stats().in_flight == 0);
      model.take_grads();
      throws = false;
      backward(loss);
      CHECK(same(model.take_grads(), want));
    }
    {  // not retained: what had not been unpacked is as it was
      const Tensor loss = loss_of();
      throws = true;
      CHECK_THROWS_AS(backward(loss), std::logic_error);
      model.take_grads();
      throws = false;
      const Tensor part = rg::sum(middle);
      backward(part);
      const Tensors found = model.take_grads();
      Tensor h = model.x;
      for (size_t i = 0; i < 2; ++i) h = rg::gelu(rg::mm(h, model.weights[i])) + h.narrow(1, 0, kWidth);
      rg::sum(h).backward();
      CHECK(same_bits(found[0], model.weights[0].grad()));
      CHECK(same_bits(found[1], model.weights[1].grad()));
      model.take_grads();
    }
    middle = {};
    CHECK(rg::memory::stats().live_bytes == live);
  }
}

namespace {

// A folder for files of saved tensors, whose files can be put aside and put back.
struct Folder : rg::testing::OwnFolder {
  void rename(const char* from, const char* to) const {
    std::vector<std::filesystem::path> files;
    for (const auto& f : std::filesystem::directory_iterator(path)) files.push_back(f.path());
    for (const auto& f : files) {
      const std::string name = f.filename().string();
      if (name.starts_with(from))
        std::filesystem::rename(f, path + "/" + to + name.substr(std::strlen(from)));
    }
  }
};

}  // namespace

TEST_CASE("files are read ahead, and what is wrong with one is said where it is unpacked") {
  const Model model;
  const Tensors want = model.plain_grads();
  rg::CompiledBackward backward = rg::compile_backward();
  int64_t least = 0;  // live in the hook when nothing is prefetched
  for (const PrefetchOptions& options : kOptions) {
    INFO(options.nodes << " nodes, room " << options.room_bytes);
    const Folder folder;
    bool hides = false, was_hooked = false;
    int64_t live = 0;
    const auto loss_of = [&] {
      rg::SavedTensorHooksGuard guard(rg::save_to_file(folder.path, model.weights, options));
      Tensor h = model.x;
      for (size_t i = 0; i < model.weights.size(); ++i) {
        h = rg::gelu(rg::mm(h, model.weights[i])) + h.narrow(1, 0, kWidth);
        if (i != 2) continue;
        h.register_hook([&](const Tensor&) -> Tensor {
          if (hides) folder.rename("saved", "hidden");
          was_hooked = true;
          live = rg::memory::stats().live_bytes;
          return {};
        });
      }
      return rg::mean(rg::square(h) * rg::sigmoid(h));
    };
    const Tensor loss = loss_of();
    backward.backward({loss}, {}, true);
    CHECK(same(model.take_grads(), want));
    if (options.nodes == 0) least = live;
    if (options.nodes == 64 && options.room_bytes > 0) CHECK(live > least);  // they have memory already
    // Missing before the backward: the error occurs at the first unpack.
    folder.rename("saved", "hidden");
    was_hooked = false;
    CHECK_THROWS_AS(backward.backward({loss}, {}, true), rg::FileError);
    CHECK_FALSE(was_hooked);
    model.take_grads();
    folder.rename("hidden", "saved");
    // Missing when some are unpacked and others begun. An error loses nothing.
    hides = true;
    bool is_there = true;
    try {
      backward.backward({loss}, {}, true);
      CHECK(same(model.take_grads(), want));
    } catch (const rg::FileError&) {
      is_there = false;
      CHECK(was_hooked);
      model.take_grads();
    }
    if (options.nodes == 0) CHECK_FALSE(is_there);
    hides = false;
    folder.rename("hidden", "saved");
    backward(loss);
    CHECK(same(model.take_grads(), want));
    CHECK(std::filesystem::is_empty(folder.path));
  }
}

TEST_CASE("a run that leaves its graph takes what was begun") {
  const Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  const auto run = [&](bool adds_a_hook) {
    Tensor loss, early;
    rg::reset_offload_stats();
    {
      rg::SavedTensorHooksGuard guard(
          rg::save_on_cpu(true, model.weights, {.nodes = 64, .room_bytes = 1 << 20}));
      early = rg::gelu(rg::mm(model.x, model.weights[0]));
      const Tensor late = rg::gelu(rg::mm(early, model.weights[1]));
      late.register_hook([=](const Tensor&) -> Tensor {
        if (adds_a_hook) early.register_hook([](const Tensor& g) { return g * 2.0; });
        return {};
      });
      loss = rg::sum(rg::square(late));
    }
    backward(loss);
    CHECK(rg::offload_stats().in_flight == 0);
    CHECK(rg::offload_stats().bytes_back == rg::offload_stats().bytes_to_host);
    return model.take_grads();
  };
  rg::reset_offload_stats();
  const Tensors plain = run(false), doubled = run(true);
  CHECK(backward.stats().left == 1);
  CHECK(same_bits(plain[0] * 2.0, doubled[0]));
  CHECK(same_bits(plain[1], doubled[1]));
}

TEST_CASE(
    "an allocation that fails: the backward throws or gives the same bits, and leaves nothing in flight") {
  const Model model;
  const Tensors want = model.plain_grads();
  rg::CompiledBackward backward = rg::compile_backward();
  int thrown = 0, done = 0;
  for (int64_t count = 1; count < 60; ++count) {
    const Tensor loss = model.packed_loss({.nodes = 4, .room_bytes = 1 << 20});
    bool is_done = false;
    rg::memory::fail_allocation_after(count);
    try {
      backward(loss);
      is_done = true;
    } catch (const rg::OutOfMemory&) {
      ++thrown;
    }
    rg::memory::fail_allocation_after(0);
    CHECK(rg::offload_stats().in_flight == 0);
    const Tensors found = model.take_grads();
    if (is_done) CHECK(same(found, want));
    done += is_done;
  }
  CHECK(thrown > 0);
  CHECK(done > 0);
}
