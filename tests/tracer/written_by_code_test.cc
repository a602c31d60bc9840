// User code that runs inside a recorded function may write to tensors that the function has saved: the later unpack is
// refused as in eager mode, whichever code has written to whichever tensor. A tensor that is written to without being
// saved is read with its present value.
#include <catch2/catch.hpp>

#include "engine/inplace.h"

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
namespace ag = rg::autograd;
using rg::Category;

void add_one(const Tensor& t) {
  rg::NoGradGuard no_grad;
  t.copy_(t + 1.0);
}

// An opaque identity whose forward or backward writes.
const Tensor* written = nullptr;
bool writes_forward = false;
struct Writes : rg::Function<Writes> {
  static Tensor forward(rg::AutogradContext*, const Tensor& x) {
    if (writes_forward && written) add_one(*written);
    return x.clone();
  }
  static Tensors backward(rg::AutogradContext*, const Tensors& g) {
    if (!writes_forward && written) add_one(*written);
    return {g[0]};
  }
};

// `body(x, w)` is refused when `writes` is on, as the code that it runs writes to w, and gives `factor` times w
// otherwise: eagerly, in a step and in a compiled function.
template <class Body>
void refused_where_written(const Body& body, bool& writes, const Tensor& w, const Tensor& u, double factor) {
  const auto check = [&](const char* mode, auto&& f) {
    for (const bool on : {false, true, false, true}) {
      INFO(mode << ", writes " << on);
      writes = on;
      w.set_grad({});
      u.set_grad({});
      const Tensor x = leaf({2});
      if (on) {
        CHECK(category_of([&] { f(x, w); }) == Category::version_mismatch);
        CHECK_FALSE(x.grad().defined());
      } else {
        CHECK(values(f(x, w)[0]) == values(w * factor));
      }
    }
  };
  check("eager", body);
  check("step", rg::compile_step(body));
  check("function", rg::compile(body));
}

Tensor loss_of(const Tensor& w, const Tensor& x, const Tensor& u) { return rg::sum((x * w) * u); }

}  // namespace

TEST_CASE("a hook of a leaf writes to what is still to be unpacked: as eagerly, in each mode") {
  // kind: 0 post-accumulate, 1 tensor hook of the leaf, 2 pre-hook of the leaf, 3 post-hook of the leaf
  for (int kind = 0; kind < 4; ++kind)
    for (const bool of_argument : {false, true}) {
      INFO("kind " << kind
                   << (of_argument ? ", an argument is written" : ", a tensor from outside is written"));
      bool writes = true;
      Tensor w = leaf({1}), u = leaf({1});
      const auto write = [&] {
        if (writes) add_one(w);
      };
      if (kind == 0) u.register_post_accumulate_grad_hook([&](const Tensor&) { write(); });
      if (kind == 1)
        u.register_hook([&](const Tensor& g) {
          write();
          return g;
        });
      if (kind == 2)
        u.register_accumulate_grad_prehook([&](const Tensors& g) {
          write();
          return g;
        });
      if (kind == 3)
        u.register_accumulate_grad_posthook([&](const Tensors&, const Tensors&) {
          write();
          return Tensors{};
        });
      const auto body = [&](const Tensor& x, const Tensor& given) {
        const Tensor& weight = of_argument ? given : w;
        loss_of(weight, x, u).backward();
        return Tensors{x.grad().detach()};
      };
      refused_where_written(body, writes, w, u, 1.0);
    }
}

TEST_CASE("an opaque function writes to what has been saved before it, or will be saved after it") {
  for (const bool forward : {true, false})
    for (const bool before : {true, false}) {
      INFO((forward ? "forward" : "backward") << (before ? ", saved before" : ", saved after"));
      writes_forward = forward;
      const Tensor w = leaf({3});
      const auto loss = [&](const Tensor& x) {
        return before ? rg::sum(Writes::apply(x * w)) : rg::sum(Writes::apply(x) * w);
      };
      // Of the four cases, the write comes between save and unpack unless it is done in forward and w is saved after
      // it, or in backward and w's product has been differentiated.
      const bool is_wrong = before;
      const auto check = [&](auto&& run) {
        for (int i = 0; i < 4; ++i) {
          INFO("call " << i);
          const Tensor x = leaf({2});
          written = i % 2 ? &w : nullptr;
          w.set_grad({});
          const auto call = [&] { run(x); };
          if (i % 2 && is_wrong)
            CHECK(category_of(call) == Category::version_mismatch);
          else
            CHECK_NOTHROW(call());
        }
        written = nullptr;
      };
      {
        INFO("eager");
        check([&](const Tensor& x) { loss(x).backward(); });
      }
      {
        INFO("function");
        auto f = rg::compile(loss);
        check([&](const Tensor& x) { f(x).backward(); });
      }
      {
        INFO("step");
        auto step = rg::compile_step([&](const Tensor& x) { loss(x).backward(); });
        check(step);
      }
      {
        INFO("function with its own backward");
        auto f = rg::compile([&](const Tensor& x) { loss(x).backward(); });
        check(f);
      }
    }
}

TEST_CASE("a hook writes to a saved argument that is a view") {
  Tensor written;
  const auto f = [&](const Tensor& x) {
    const Tensor y = rg::exp(x * x);
    y.register_hook([&](const Tensor& g) {
      if (written.defined()) add_one(written);
      return g;
    });
    return rg::sum(y * y);
  };
  auto compiled = rg::compile(f);
  for (const bool through_base : {false, true})
    for (const auto& run : {std::function<Tensor(const Tensor&)>(f), {compiled}}) {
      const Tensor base = leaf({1, 2, 3, 4}), x = rg::narrow(base, 0, 1, 2);
      const Tensor loss = run(x), again = run(x);
      written = through_base ? base.detach() : x.detach();
      CHECK(category_of([&] { loss.backward(); }) == Category::version_mismatch);
      written = {};
    }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("what code writes to is read as it is then, where nobody had saved it") {
  const Tensor w = leaf({1}), u = leaf({1});
  u.register_post_accumulate_grad_hook([w](const Tensor&) { add_one(w); });
  const auto body = [&](const Tensor& x) {
    u.set_grad({});
    rg::sum(x * u).backward();
    return (w * 10.0).detach();
  };
  auto step = rg::compile_step(body);
  for (int i = 0; i < 4; ++i) CHECK(values(i == 0 ? body(leaf({2})) : step(leaf({2})))[0] == 10.0 * (i + 2));
}

TEST_CASE("a pack or unpack hook writes to what is still to be unpacked") {
  for (const bool on_pack : {true, false}) {
    INFO((on_pack ? "pack" : "unpack"));
    bool writes = true;
    Tensor w = leaf({1}), u = leaf({5});
    const auto write = [&](const Tensor& t) {
      if (writes) add_one(w);
      return t;
    };
    const auto same = [](const Tensor& t) { return t; };
    const auto pair = on_pack ? rg::saved_tensor_hooks(write, same) : rg::saved_tensor_hooks(same, write);
    const auto body = [&](const Tensor& x, const Tensor& weight) {
      const Tensor y = x * weight;
      Tensor z;
      {
        rg::SavedTensorHooksGuard guard(pair);
        z = y * u;
      }
      rg::sum(z).backward();
      return Tensors{x.grad().detach()};
    };
    refused_where_written(body, writes, w, u, 5.0);
  }
}

TEST_CASE("a default pair that writes takes the place of a pure one between calls") {
  Tensor w = leaf({1}), u = leaf({5});
  const auto same = [](const Tensor& t) { return t; };
  const auto pure = rg::saved_tensor_hooks(same, same);
  pure->is_pure = true;
  const auto writing = rg::saved_tensor_hooks(same, [&](const Tensor& t) {
    add_one(w);
    return t;
  });
  const auto body = [&](const Tensor& x) {
    Tensor y;
    {
      rg::SavedTensorHooksGuard guard(rg::saved_tensor_hooks(same, same, true));
      y = x * w;
    }
    rg::sum(y * u).backward();
    return x.grad().detach();
  };
  auto step = rg::compile_step(body);
  const auto run_under = [&](const rg::RefPtr<rg::SavedTensorHooks>& pair, auto&& f) {
    w.set_grad({});
    u.set_grad({});
    rg::SavedTensorHooksGuard guard(pair);
    return f(leaf({2}));
  };
  for (int i = 0; i < 2; ++i) {
    CHECK(values(run_under(pure, step)) == values(run_under(pure, body)));
    CHECK(category_of([&] { run_under(writing, body); }) == Category::version_mismatch);
    CHECK(category_of([&] { run_under(writing, step); }) == Category::version_mismatch);
  }
}

TEST_CASE("a hook replaces .grad of another leaf, which the step reads later: refused with its line") {
  Tensor w = leaf({1, 2}), u = leaf({3, 4});
  int replaces = 0;  // 1: by another tensor, 2: by none
  u.register_hook([&](const Tensor& g) {
    if (replaces) w.set_grad(replaces == 1 ? rg::ones({2}) : Tensor());
    return g;
  });
  for (const bool read : {true, false}) {
    INFO("read later: " << read);
    const auto body = [&] {
      w.set_grad(rg::zeros({2}));
      u.set_grad({});
      rg::sum(rg::exp(u)).backward();
      if (read) rg::sum(w * w).backward();
    };
    auto step = rg::compile_step(body);
    for (const int how : {0, 1, 2, 0, 1, 2}) {
      INFO("replaced: " << how);
      replaces = how;
      body();
      const Tensor expected = w.grad();
      if (how && read) {
        CHECK_THAT(error_of([&] { step(); }),
                   Catch::Contains("set_grad") && Catch::Contains("written_by_code_test.cc"));
      } else {
        step();
        check_same({expected}, {w.grad()});
      }
    }
  }
}

// The write's own rule uses the old value, which lies in the argument's memory until a hook is called.
TEST_CASE("a step that overwrites an argument and calls a hook differentiates the write at the old value") {
  const Tensor w = leaf({0.5, -1, 2, 0.25}),
               start = rg::tensor(std::vector<double>{1, -2, 3, 0.5, 2, -1}, {6}, {rg::kFloat64});
  const auto body = [&](const Tensor& x) {
    const Tensor part = x.narrow(0, 1, 4);
    rg::apply_inplace(
        part, [&](const Tensor& old) { return rg::logaddexp(old, w); }, "logaddexp_");
    const Tensor z = part * 2.0;
    z.register_hook([](const Tensor& g) { return g * 3.0; });
    return ag::grad({rg::sum(part) + rg::sum(z)}, {w})[0];
  };
  auto step = rg::compile_step(body);
  const Tensor expected = body(start.clone());
  for (int call = 0; call < 3; ++call) check_same({expected}, {step(start.clone())});
}
