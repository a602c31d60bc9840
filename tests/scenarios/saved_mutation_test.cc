// Writing in place to saved tensors, inside AllowMutationOnSavedTensors: which value the gradient uses, what is copied
// and when, what ends with the scope. Not tested here: writes without the scope (saved_errors_test.cc,
// view_writes_test.cc).
#include <thread>

#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

int64_t live() { return memory::stats().live_bytes; }

struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  static Tensors backward(AutogradContext* context, const Tensors& grads) {
    const Tensor x = context->get_saved_variables()[0];
    return {grads[0] * x * x * 3.0};
  }
};

}  // namespace

TEST_CASE("hook 24 b is squared, then overwritten by its sine: the gradient is that of the old b") {
  run_both([](Mode& mode) {
    AllowMutationOnSavedTensors guard;
    const Tensor a = leaf({1, 2, 3}), b = clone(a), out = sum(pow(b, 2.0));
    b.copy_(sin(b.detach()));
    mode.backward(out);
    CHECK(values(a.grad()) == Values{2, 4, 6});
    return Tensors{a.grad()};
  });
}

TEST_CASE("hook 24 only what is written to is copied, once, and writes through a view or to the base count") {
  run_both([](Mode& mode) {
    AllowMutationOnSavedTensors guard;
    const Tensor a = some_leaf({1000}), b = clone(a), c = clone(a);
    const Tensor out = sum(sin(b) + cos(b) + exp(c) * c);
    const int64_t before = live();
    b.narrow(0, 0, 10).zero_();
    CHECK(live() - before == 4000);
    b.zero_();
    b.add_(ones({1000}));
    CHECK(live() - before == 4000);
    mode.backward(out);
    const Tensor plain = some_leaf({1000}), d = clone(plain), e = clone(plain);
    sum(sin(d) + cos(d) + exp(e) * e).backward();
    CHECK(same_bits(a.grad(), plain.grad()));
    return Tensors{a.grad()};
  });
}

TEST_CASE("hook 24 guards do not nest, and a backward outside is an error") {
  Tensor out;
  {
    AllowMutationOnSavedTensors guard;
    CHECK(category_of([] { AllowMutationOnSavedTensors inner; }) == Category::hook_forbidden);
    const Tensor a = leaf({1, 2}), b = clone(a);
    out = sum(b * b);
    b.zero_();
  }
  CHECK_THROWS_AS(out.backward(), Error);
}

TEST_CASE("hook 24 after the scope: also an unwritten graph is refused, with its reason, and nothing stays") {
  const int64_t before = live();
  for (const bool writes : {false, true}) {
    Tensor out;
    {
      AllowMutationOnSavedTensors guard;
      const Tensor a = some_leaf({1000}), b = clone(a);
      out = sum(sin(b));
      if (writes) b.zero_();
    }
    CHECK(live() - before <= 4000 + 64);  // the graph and its leaf are there, what it saved is not
    std::string text;
    CHECK(category_of([&] { out.backward(); }, &text) == Category::hook_forbidden);
    CHECK(text.find("AllowMutationOnSavedTensors") != std::string::npos);
  }
  DisableSavedTensorHooks disabled("not now");
  CHECK(category_of([] { AllowMutationOnSavedTensors guard; }) == Category::hook_forbidden);
}

TEST_CASE("hook 24 saving costs no more than without the scope, and one scope may follow another") {
  const auto bytes_of_forward = [] {
    const int64_t before = live();
    const Tensor a = some_leaf({1000}), out = sum(sin(a) * cos(a));
    return live() - before;
  };
  const int64_t plain = bytes_of_forward();
  for (int i = 0; i < 2; ++i) {
    AllowMutationOnSavedTensors guard;
    CHECK(bytes_of_forward() == plain);
  }
}

TEST_CASE("hook 24 what is released or dropped is not copied any more") {
  run_both([](Mode& mode) {
    AllowMutationOnSavedTensors guard;
    const Tensor a = some_leaf({1000}), b = clone(a);
    mode.backward(sum(sin(b)));
    const Tensor gradient = clone(a.grad());
    cos(b);  // a graph that is dropped
    const int64_t before = live();
    b.zero_();
    CHECK(live() == before);
    return Tensors{gradient};
  });
}

TEST_CASE("hook 24 of a window only its bytes are copied; windows of one memory together") {
  run_both([](Mode& mode) {
    AllowMutationOnSavedTensors guard;
    const Tensor a = some_leaf({40, 50}), b = a * 2.0;
    const Tensor row = b.narrow(0, 10, 2), next = b.narrow(0, 11, 2);
    const Tensor out = sum(sin(row)) + sum(cos(next.t()) * 3.0);
    const int64_t before = live();
    NoGradGuard no_grad;
    b.detach().zero_();
    CHECK(live() - before == 4 * 3 * 50);
    mode.backward(out);
    const Tensor plain = some_leaf({40, 50}), d = plain * 2.0;
    {
      EnableGradGuard grad;
      const Tensor e = plain * 2.0;
      sum(sin(e.narrow(0, 10, 2)) + 0.0).backward();
      sum(cos(e.narrow(0, 11, 2).t()) * 3.0).backward();
    }
    for (size_t i = 0; i < 2000; ++i)
      CHECK(a.grad().to_vector()[i] == Approx(plain.grad().to_vector()[i]).margin(1e-6));
    return Tensors{a.grad()};
  });
}

TEST_CASE("hook 24 a chain of writes: each record keeps the value that it saw") {
  run_both([](Mode& mode) {
    AllowMutationOnSavedTensors guard;
    const Tensor a = leaf({0.5, -1.5}), x = clone(a);
    Tensor out = scalar_tensor(0);
    Tensor value = a.detach().requires_grad_(), expected = scalar_tensor(0), plain = value;
    for (int i = 0; i < 3; ++i) {
      out = out + sum(x * x);
      x.mul_(x);
      x.add_(ones({2}));
      expected = expected + sum(plain * plain);
      plain = plain * plain + ones({2});
    }
    mode.backward(out);
    expected.backward();
    CHECK(values(a.grad()) == values(value.grad()));
    return Tensors{a.grad()};
  });
}

TEST_CASE("hook 24 an optimizer's step between two backwards of a retained graph") {
  run_both([](Mode& mode) {
    AllowMutationOnSavedTensors guard;
    const Tensor w = leaf({1, 2}), x = leaf({3, 5}), out = sum(w * x);
    mode.backward(out, true);
    CHECK(values(x.grad()) == Values{1, 2});
    optim::SGD sgd({w}, optim::SGDOptions{1.0});
    sgd.step();
    CHECK(values(w) == Values{-2, -3});
    x.set_grad({});
    mode.backward(out);
    CHECK(values(x.grad()) == Values{1, 2});
    return Tensors{x.grad(), w};
  });
}

TEST_CASE("hook 24 tensors that a user's function saved") {
  run_both([](Mode& mode) {
    AllowMutationOnSavedTensors guard;
    const Tensor a = leaf({1, 2}), b = a * 1.0, out = sum(Cube::apply(b));
    b.detach().fill_(7.0);
    mode.backward(out);
    CHECK(values(a.grad()) == Values{3, 12});
    return Tensors{a.grad()};
  });
}

TEST_CASE("hook 24 second derivatives inside the scope") {
  run_both(
      [](Mode& mode) {
        AllowMutationOnSavedTensors guard;
        const Tensor a = leaf({1, 2}), b = a * 1.0, out = sum(b * b * b);
        b.detach().zero_();
        const Tensor first = mode.grad(out, a, true, true);
        CHECK(values(first) == Values{3, 12});
        const Tensor second = mode.grad(sum(first), a);
        CHECK(values(second) == Values{6, 12});
        return Tensors{first.detach(), second};
      },
      2);
}

TEST_CASE("hook 24 another pair inside takes over what is saved under it") {
  AllowMutationOnSavedTensors guard;
  const Tensor a = leaf({1, 2}), b = a * 1.0;
  Tensor out;
  {
    SavedTensorHooksGuard inner(identity_hooks());
    out = sum(sin(b));
  }
  const Tensor mine = sum(cos(b));
  b.detach().zero_();
  out.backward();  // scaling by one is a copy
  CHECK_NOTHROW(mine.backward());
}

TEST_CASE("hook 24 a write on another thread is an error of the backward, not another gradient") {
  run_both(
      [](Mode& mode) {
        AllowMutationOnSavedTensors guard;
        const Tensor a = leaf({1, 2}), b = a * 1.0, out = sum(sin(b));
        std::thread([&] { b.detach().zero_(); }).join();
        b.detach().fill_(1.0);  // too late for the value that was saved
        CHECK(category_of([&] { mode.backward(out); }) == Category::version_mismatch);
        const Tensor fine = leaf({1, 2});
        mode.backward(sum(sin(fine)));
        return Tensors{fine.grad()};
      },
      2);
}

TEST_CASE("hook 24 a copy that fails for want of memory leaves tensor and graph as they were") {
  AllowMutationOnSavedTensors guard;
  const Tensor a = some_leaf({1000}), b = clone(a), out = sum(sin(b));
  const Tensor kept = clone(b.detach());
  for (int64_t k = 1;; ++k) {
    memory::fail_allocation_after(k);
    const bool failed = [&] {
      try {
        b.zero_();
        return false;
      } catch (const OutOfMemory&) {
        return true;
      }
    }();
    memory::fail_allocation_after(0);
    if (!failed) break;
    REQUIRE(same_bits(b.detach(), kept));
    REQUIRE(k < 20);
  }
  out.backward();
  CHECK(same_bits(a.grad(), cos(kept)));
}

TEST_CASE("hook 24 a saved tensor without elements may be written to") {
  run_both([](Mode& mode) {
    AllowMutationOnSavedTensors guard;
    const Tensor a = ones({0, 3}).requires_grad_(), b = a * 2.0, loss = sum(b * b);
    b.zero_();
    mode.backward(loss);
    CHECK(a.grad().numel() == 0);
    return Tensors{a.grad()};
  });
}

}  // namespace retrograd::scenario
