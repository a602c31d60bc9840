// A chain of a million records is recorded, traced, run backward, printed and dropped without recursion: the test
// limits its own stack to 256 KiB, as `ulimit -s 256` would. Not tested here: speed.
#include <pthread.h>
#include <catch2/catch.hpp>

#include <functional>

#include "retrograd/retrograd.h"

namespace rg = retrograd;

namespace {

constexpr int kNodes = 1'000'000;

// Instrumented functions have larger frames, and thread sanitizer keeps most of a MiB of each stack for itself.
#if defined(__SANITIZE_THREAD__)
constexpr size_t kStack = 2 * 1024 * 1024;
#elif defined(__SANITIZE_ADDRESS__)
constexpr size_t kStack = 1024 * 1024;
#else
constexpr size_t kStack = 256 * 1024;
#endif

// Runs f on a thread with that stack.
void with_small_stack(const std::function<void()>& f) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, kStack) == 0);
  pthread_t thread;
  auto run = [](void* context) -> void* {
    (*static_cast<const std::function<void()>*>(context))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&f)) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
}

rg::Tensor chain(const rg::Tensor& x, const rg::Tensor& w) {
  rg::Tensor y = x;
  for (int i = 0; i < kNodes; ++i) y = y * w;
  return y;
}

}  // namespace

TEST_CASE("a chain of a million records runs backward, eager and traced, and is dropped") {
  const int64_t before = rg::memory::stats().live_tensors;
  double eager = 0, traced = 0, again = 0;
  size_t printed = 0, nodes = 0;
  with_small_stack([&] {
    const rg::Tensor x = rg::ones({1}).requires_grad_(), w = rg::full({1}, 0.999999);
    chain(x, w).backward();
    eager = x.grad().item<double>();
    x.set_grad({});
    rg::CompiledBackward backward = rg::compile_backward();
    backward(chain(x, w));
    traced = x.grad().item<double>();
    x.set_grad({});
    backward(chain(x, w));
    again = x.grad().item<double>();
    nodes = backward.graph()->nodes().size();
    printed = backward.graph()->print().size();
    chain(x, w);  // dropped without a backward
  });
  CHECK(eager == Approx(0.3678).epsilon(0.05));
  CHECK(traced == eager);
  CHECK(again == eager);
  CHECK(nodes == 2 * kNodes + 1);
  CHECK(printed > nodes * 20);
  CHECK(rg::memory::stats().live_tensors == before);
}
