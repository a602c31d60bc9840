// The content of a record's slot, with hooks and without: which cell, which version, what it keeps alive. Not tested
// here: errors of hooks (saved_errors_test.cc), order and counts (saved_hooks_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

Tensor read_slot(const Tensor& result, int slot) {
  Record& record = *result.grad_fn().record();
  return unpack(record, record.slot(slot));
}

}  // namespace

TEST_CASE("S102 a saved leaf that no longer requires a gradient keeps its edge") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 2}), b = sin(a);
    a.requires_grad_(false);
    mode.backward(sum(b));
    CHECK(same_bits(a.grad(), cos(a)));
    return Tensors{a.grad()};
  });
}

TEST_CASE("S103, hook 13 an unhooked slot holds the input itself; of a result it holds another cell") {
  const Tensor a = leaf({1, 2}), b = a * a, c = b * b, y = exp(b);
  for (int i : {0, 1}) CHECK(read_slot(b, i).is_same(a));
  for (int i : {0, 1}) CHECK(read_slot(c, i).is_same(b));
  CHECK_FALSE(read_slot(y, 0).is_same(y));
  CHECK(same_bits(read_slot(y, 0), y));
  sum(y).backward();
  CHECK(category_of([&] { read_slot(y, 0); }) == Category::backward_twice_freed);
  CHECK(category_of([&] { read_slot(b, 0); }) == Category::backward_twice_freed);
  CHECK_NOTHROW(read_slot(c, 0));
  CHECK(values(a) == Values{1, 2});
}

TEST_CASE("S103, hook 23 a saved result is freed with its tensor when no backward ever runs") {
  const memory::Stats before = memory::stats();
  for (const int hooks : {0, 1, 2}) {
    const Tensor a = ones({100000}).requires_grad_();
    {
      Tensor y;
      if (hooks == 0) {
        y = exp(a);
      } else if (hooks == 1) {
        SavedTensorHooksGuard guard([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; });
        y = exp(a);
      } else {
        y = exp(a);
        y.grad_fn().register_saved_tensor_hooks(
            0, saved_tensor_hooks([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; }));
      }
      CHECK(memory::stats().live_bytes == before.live_bytes + 800000);
    }
    CHECK(memory::stats().live_bytes == before.live_bytes + 400000);
  }
  CHECK(memory::stats().live_bytes == before.live_bytes);
  CHECK(memory::stats().live_tensors == before.live_tensors);
}

TEST_CASE("hook 14 a hooked result unpacks to its value, and gradients pass through it to its node") {
  run_both(
      [](Mode& mode) {
        const Tensor a = leaf({1, 2});
        Tensor y;
        {
          SavedTensorHooksGuard guard(saved_tensor_hooks([](const Tensor& t) { return clone(t); },
                                                         [](const Tensor& t) { return clone(t); }));
          y = exp(a);
        }
        CHECK(same_bits(read_slot(y, 0), y));
        const Tensor g = mode.grad(sum(y), a, true, true);
        CHECK(same_bits(g, y));
        mode.backward(sum(g));  // the derivative of y, as g = y
        CHECK(same_bits(a.grad(), y));
        return Tensors{g.detach(), a.grad()};
      },
      2);
}

TEST_CASE("S104, hook 15 a payload on the saved memory keeps the version check, any other has none") {
  in_both([](Mode& mode) {
    struct Boxed {
      Tensor inside;
    };
    const Tensor a = leaf({1, 2});
    const auto written = [&](const RefPtr<SavedTensorHooks>& hooks) {
      const Tensor b = a * 1.0;
      Tensor y;
      {
        SavedTensorHooksGuard guard(hooks);
        y = sin(b);
      }
      b.add_(ones({2}));
      return sum(y);
    };
    const Tensor aliasing =
        written(saved_tensor_hooks([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; }));
    CHECK(category_of([&] { mode.backward(aliasing); }) == Category::version_mismatch);
    a.set_grad({});
    mode.backward(written(
        saved_tensor_hooks([](const Tensor& t) { return clone(t); }, [](const Tensor& t) { return t; })));
    CHECK(same_bits(a.grad(), cos(tensor({1.0, 2}))));
    a.set_grad({});
    mode.backward(written(saved_tensor_hooks([](const Tensor& t) { return Boxed{t}; },
                                             [](const Boxed& box) { return box.inside; })));
    CHECK(same_bits(a.grad(),
                    cos(tensor({2.0, 3}))));  // a write to the content of an opaque payload is not noticed
  });
}

TEST_CASE("S104 writing to what pack made does not touch the version of the original") {
  in_both([](Mode& mode) {
    const Tensor a = leaf({1, 2}), b = a * 1.0;
    const uint32_t version = b.version();
    Tensor packed, y;
    {
      SavedTensorHooksGuard guard([&](const Tensor& t) { return packed = t * 1.0; },
                                  [](const Tensor& t) { return t; });
      y = sin(b);
    }
    packed.zero_();
    CHECK(b.version() == version);
    mode.backward(sum(y));
    CHECK(values(a.grad()) == Values{1, 1});  // cos(0): the pair gave zeros
  });
}

}  // namespace retrograd::scenario
