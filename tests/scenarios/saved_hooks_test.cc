// Saved-tensor hooks: when pack and unpack are called, what they change, second derivatives.
// Not tested here: what is refused (saved_errors_test.cc), files and host memory (offload_test.cc), scopes
// (saved_scope_test.cc), memory (saved_memory_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {

TEST_CASE("hook 1 a * a under counting hooks: two packs in the forward, two unpacks in the backward") {
  run_both([](Mode& mode) {
    Counts counts;
    const Tensor a = leaf({1, 1, 1, 1, 1});
    Tensor y;
    {
      SavedTensorHooksGuard guard(counts.hooks());
      y = a * a;
    }
    CHECK(counts.packs == 2);
    CHECK(counts.unpacks == 0);
    mode.backward(sum(y));
    CHECK(counts.packs == 2);
    CHECK(counts.unpacks == 2);
    CHECK(values(a.grad()) == Values{2, 2, 2, 2, 2});
    return Tensors{a.grad()};
  });
}

TEST_CASE("hook 2 only the operand that the rule needs is packed") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2}), y = tensor({3.0, 4});
    Tensor packed;
    int unpacks = 0;
    SavedTensorHooksGuard guard([&](const Tensor& t) { return mode.log("pack"), packed = t; },
                                [&](const Tensor& t) { return ++unpacks, t; });
    const Tensor z = x * y;
    CHECK(mode.events == Events{"pack"});
    CHECK(values(packed) == Values{3, 4});
    CHECK(unpacks == 0);
    mode.backward(sum(z));
    CHECK(mode.events.size() == 1);
    CHECK(unpacks == 1);
    CHECK(values(x.grad()) == Values{3, 4});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S91, hook 2 recording a backward calls neither pack nor unpack") {
  Counts eager, traced;
  CompiledBackward compiled = compile_backward();
  for (int i = 1; i <= 3; ++i) {
    for (Counts* counts : {&eager, &traced}) {
      Mode mode(counts == &traced ? &compiled : nullptr);
      const Tensor x = some_leaf({2, 3});
      Tensor loss;
      {
        SavedTensorHooksGuard guard(counts->hooks());
        loss = sum(sin(x) * exp(x));
      }
      SavedTensorHooksGuard guard(counts->hooks());  // open while the backward is recorded
      mode.backward(loss);
      CHECK(counts->packs == 4 * i);
      CHECK(counts->unpacks == 4 * i);
    }
    CHECK(compiled.stats().captures == 1);
  }
}

TEST_CASE("S90, hook 25 a hook on the loss runs before any unpack, a pre-hook before those of its node") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2});
    Tensor y, loss;
    {
      SavedTensorHooksGuard guard([&](const Tensor& t) { return mode.log("pack"), t; },
                                  [&](const Tensor& t) { return mode.log("unpack"), t; });
      y = sin(x);
      loss = sum(y);
    }
    loss.register_hook([&](const Tensor&) { return mode.log("loss"), Tensor(); });
    y.grad_fn().register_prehook([&](const Tensors&) { return mode.log("pre"), Tensors{}; });
    y.grad_fn().register_hook([&](const Tensors&, const Tensors&) { return mode.log("post"), Tensors{}; });
    CHECK(mode.events == Events{"pack"});
    mode.backward(loss);
    CHECK(mode.events == Events{"pack", "loss", "pre", "unpack", "post"});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S92, hook 3 pack 2x and unpack x/2 leave the gradient of a * a at 2a, and the slots read a") {
  run_both([](Mode& mode) {
    const Tensor a = leaf({1, 2, 3});
    SavedTensorHooksGuard guard(scaling(2, 0.5));
    const Tensor y = a * a;
    Record& record = *y.grad_fn().record();
    for (int i : {0, 1}) CHECK(values(unpack(record, record.slot(i))) == Values{1, 2, 3});
    mode.backward(sum(y));
    CHECK(values(a.grad()) == Values{2, 4, 6});
    return Tensors{a.grad()};
  });
}

TEST_CASE("S92, hook 4 pack 2x and unpack as it is: 4a on both slots, 3a on one") {
  run_both(
      [](Mode& mode) {
        const Tensor a = leaf({1, 2, 3}), b = leaf({1, 2, 3});
        Tensor both;
        {
          SavedTensorHooksGuard guard(scaling(2, 1));
          both = a * a;
        }
        const Tensor one = b * b;
        one.grad_fn().register_saved_tensor_hooks(0, scaling(2, 1));
        mode.backward(sum(both));
        mode.backward(sum(one));
        CHECK(values(a.grad()) == Values{4, 8, 12});
        CHECK(values(b.grad()) == Values{3, 6, 9});
        return Tensors{a.grad(), b.grad()};
      },
      2);
}

TEST_CASE("hook 5 second derivative of a^3: 6a, 12a, 24a, 48a, by where the doubling hooks were open") {
  for (const bool in_forward : {false, true})
    for (const bool in_backward : {false, true})
      run_both(
          [=](Mode& mode) {
            const Tensor a = leaf({1, 2, 3});
            const auto twice = [](bool on) { return on ? scaling(2, 1) : identity_hooks(); };
            Tensor y;
            {
              SavedTensorHooksGuard guard(twice(in_forward));
              y = sum(pow(a, 3.0));
            }
            Tensor first;
            {
              SavedTensorHooksGuard guard(twice(in_backward));
              first = mode.grad(y, a, true, true);
              mode.backward(sum(first));
            }
            const double factor = 6.0 * (in_forward ? 2 : 1) * (in_backward ? 4 : 1);
            CHECK(values(a.grad()) == Values{factor, 2 * factor, 3 * factor});
            return Tensors{first.detach(), a.grad()};
          },
          2);
}

TEST_CASE("S96, hook 8 a number never reaches the hooks") {
  run_both([](Mode& mode) {
    SavedTensorHooksGuard guard([](const Tensor&) -> Tensor { throw std::logic_error("pack"); },
                                [](const Tensor&) -> Tensor { throw std::logic_error("unpack"); });
    const Tensor a = leaf({1, 2});
    mode.backward(sum(a * 3.0 / 2.0 + 1.0));
    CHECK(values(a.grad()) == Values{1.5, 1.5});
    return Tensors{a.grad()};
  });
}

TEST_CASE("S105 with retain_graph the unpack hook is called again in the second backward") {
  run_both(
      [](Mode& mode) {
        Counts counts;
        const Tensor a = leaf({1, 2});
        Tensor loss;
        {
          SavedTensorHooksGuard guard(counts.hooks());
          loss = sum(a * a);
        }
        mode.backward(loss, true);
        CHECK(counts.unpacks == 2);
        mode.backward(loss);
        CHECK(counts.unpacks == 4);
        CHECK(counts.packs == 2);
        CHECK(values(a.grad()) == Values{4, 8});
        return Tensors{a.grad()};
      },
      1);
}

TEST_CASE("S113 an unpack hook may register a post-hook on the node that is running") {
  for (const bool traced : {false, true}) {
    CompiledBackward compiled = compile_backward();
    Mode mode(traced ? &compiled : nullptr);
    for (int step = 0; step < 2; ++step) {
      const Tensor a = leaf({1, 2});
      int calls = 0;
      Node node;
      Tensor y;
      {
        SavedTensorHooksGuard guard(
            [](const Tensor& t) { return t; },
            [&](const Tensor& t) {
              node.register_hook([&](const Tensors&, const Tensors&) { return ++calls, Tensors{}; });
              return t;
            });
        y = exp(a);
      }
      node = y.grad_fn();
      const Tensor loss = sum(y);
      mode.backward(loss, true);
      CHECK(calls == 1);  // eager: in this backward already; traced: from the next one on
      const Tensor first = clone(a.grad());
      CHECK(same_bits(first, exp(a.detach())));
      node = Node();
    }
  }
}

TEST_CASE("hook 28 one tensor that several nodes save is packed and unpacked for each of them") {
  run_both([](Mode& mode) {
    Counts counts;
    const Tensor a = leaf({1, 2});
    Tensor loss;
    {
      SavedTensorHooksGuard guard(counts.hooks());
      loss = sum(sin(a) + cos(a) + square(a));
    }
    CHECK(counts.packs == 3);
    mode.backward(loss);
    CHECK(counts.unpacks == 3);
    const Tensor b = leaf({1, 2});
    sum(sin(b) + cos(b) + square(b)).backward();
    CHECK(same_bits(a.grad(), b.grad()));
    return Tensors{a.grad()};
  });
}

}  // namespace retrograd::scenario
