// A lack of memory, at every single allocation of two training steps: of tensor data (memory::fail_allocation_after),
// and of everything that uses operator new, which this program replaces. Eager, in the first traced call and in a
// replay. After each fault memory is as before, the thread has no open scope, and the next step gives the same bits as
// usual.
#include "tests/tracer/failing_new.h"
#include "tests/tracer/fault.h"

using namespace faults;

namespace {

using retrograd::testing::news_left;

// Three layers, their backward and a step of AdamW, twice, so that there is state.
Bits train(const Backward& backward) {
  Tensors parameters;
  for (int i = 0; i < 3; ++i) {
    parameters.push_back(parameter({4, 4}, 0.5 + 0.1 * i));
    parameters.push_back(parameter({4}, 0.2));
  }
  rg::optim::AdamW optimizer(parameters, {});
  const Tensor x = parameter({6, 4}, 1).detach();
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    Tensor h = x;
    for (size_t i = 0; i < 3; ++i) h = rg::gelu(rg::mm(h, parameters[2 * i]) + parameters[2 * i + 1]);
    backward(rg::mean(rg::square(h - 0.5)), false);
    optimizer.step();
  }
  Bits bits;
  for (const Tensor& p : parameters) bits.push_back(bits_of(p));
  return bits;
}

/// Lets the k-th allocation fail, for every k until none does; `arm(k)` sets it, `arm(0)` switches it off.
/// Returns the last k.
int64_t exhaust(const std::function<Backward()>& make, const std::string& way,
                const std::function<void(int64_t)>& arm) {
  const bool is_fresh = way == "first traced call";
  const Bits expected = train(make());
  if (is_fresh) make();
  const Memory baseline = Memory::now();
  for (int64_t k = 1;; ++k) {
    INFO(way << ", allocation " << k);
    const Backward backward = make();
    bool failed = false;
    arm(k);
    try {
      train(backward);
    } catch (const rg::OutOfMemory&) {
      failed = true;
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    arm(0);
    if (!is_fresh) check_clean(baseline, failed);
    REQUIRE(train(backward) == expected);
    if (is_fresh) make();
    check_clean(baseline);
    if (!failed) return k;
  }
}

}  // namespace

TEST_CASE("any allocation of tensor data may fail: OutOfMemory, no state left, the next step as usual") {
  in_all_ways([](const std::function<Backward()>& make, const std::string& way) {
    CHECK(exhaust(make, way, rg::memory::fail_allocation_after) > 40);
  });
}

TEST_CASE("any allocation of the library's own bookkeeping may fail, too") {
  in_all_ways([](const std::function<Backward()>& make, const std::string& way) {
    CHECK(exhaust(make, way, [](int64_t k) { news_left = k; }) > 40);
  });
}
