// Gradients after a recorded function: their layout, which objects they are, and the results of a step that returns
// them, or leaves.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;

// Leaves that are dense, but not row-major.
Tensor transposed(int seed = 0) { return spread({3, 2}, seed).t().detach().requires_grad_(); }
Tensor turned(int seed = 0) {
  return rg::permute(spread({4, 2, 3}, seed), {1, 2, 0}).detach().requires_grad_();
}

// One side: leaves in all layouts, those that are not dense among them.
struct Side {
  Tensor t = transposed(1), u = turned(2), row = parameter({2, 3}, 3),
         wide = rg::slice(spread({2, 6}, 4), 1, 0, 6, 2).detach().requires_grad_();
  std::vector<double> seen;
  Tensors leaves() const { return {t, u, row, wide}; }
  Tensor loss(const Tensor& x) const {
    return rg::sum(rg::exp(t * x) * rg::tanh(row)) +
           rg::sum(rg::mm(t, rg::select(u, 0, 0)) * rg::exp(u).sum()) + rg::sum(wide * wide * x);
  }
  Tensors all() const {
    Tensors values;
    for (const Tensor& leaf : leaves()) values.insert(values.end(), {leaf.detach(), leaf.grad()});
    return values;
  }
};

// body(side, x) run eagerly and compiled, with at most this many recordings.
template <class Body, class SetUp>
void same(int64_t captures, const SetUp& set_up, const Body& body) {
  Side plain, recorded;
  set_up(plain), set_up(recorded);
  auto step = rg::compile_step([&](const Tensor& x) { return body(recorded, x); });
  for (int i = 0; i < 4; ++i) {
    INFO("step " << i);
    const Tensor x = spread({2, 3}, i);
    check_same(body(plain, x), step(x));
    check_same(plain.all(), recorded.all());
    CHECK(plain.seen == recorded.seen);
  }
  CHECK(step.stats().captures <= captures);
}
template <class Body>
void same(int64_t captures, const Body& body) {
  same(
      captures, [](Side&) {}, body);
}

void look(Side& s) {
  for (const Tensor& leaf : s.leaves())
    if (const Tensor g = leaf.grad(); g.defined())
      for (int64_t stride : g.strides()) s.seen.push_back(static_cast<double>(stride) + g.to_vector().at(1));
}

}  // namespace

TEST_CASE("a new gradient lies as a dense leaf does, else row-major") {
  same(1, [](Side& s, const Tensor& x) {
    for (const Tensor& leaf : s.leaves()) leaf.set_grad({});
    s.loss(x).backward();
    return Tensors{s.t.grad(), s.u.grad() * 2.0};
  });
  same(2, [](Side& s, const Tensor& x) {  // they stay, and more is added
    s.loss(x).backward();
    s.loss(x * 2.0).backward();
    return Tensors{};
  });
}

TEST_CASE("gradients of leaves that are not row-major are written to, clipped, and used") {
  same(1, [](Side& s, const Tensor& x) {
    for (const Tensor& leaf : s.leaves()) leaf.set_grad({});
    s.loss(x).backward();
    s.loss(x + 1.0).backward();
    rg::optim::clip_grad_norm_(s.leaves(), 0.5);
    const rg::NoGradGuard guard;
    s.t.grad().select(0, 1).mul_(3.0);
    for (const Tensor& leaf : s.leaves()) leaf.add_(leaf.grad(), -0.1);
    return Tensors{s.t.grad().clone()};
  });
}

TEST_CASE("hooks find gradients as they lie eagerly, write to them, and put others there") {
  for (int kind : {0, 1, 2})
    same(
        1,
        [kind](Side& s) {
          s.row.register_hook([&s](const Tensor& g) { return look(s), g; });
          s.t.register_post_accumulate_grad_hook([&s, kind](const Tensor& leaf) {
            look(s);
            const rg::NoGradGuard guard;
            if (kind == 1) leaf.grad().mul_(0.5);
            if (kind == 2) leaf.set_grad((leaf.grad() * 0.5).t().contiguous().t().detach());
          });
          s.u.register_post_accumulate_grad_hook([&s](const Tensor&) { look(s); });
        },
        [](Side& s, const Tensor& x) {
          for (const Tensor& leaf : s.leaves()) leaf.set_grad({});
          s.loss(x).backward();
          s.loss(x * 0.5).backward();
          const rg::NoGradGuard guard;
          for (const Tensor& leaf : s.leaves()) leaf.add_(leaf.grad(), -0.01);
          return Tensors{s.t.grad() * 2.0};
        });
}

TEST_CASE("a gradient that is part of memory of the step, where user code sees it") {
  same(
      1,
      [](Side& s) {
        s.row.register_hook([&s](const Tensor& g) { return look(s), g; });
        s.t.register_post_accumulate_grad_hook([&s](const Tensor&) { look(s); });
      },
      [](Side& s, const Tensor& x) {
        const Tensor flat = (x * 3.0).reshape({6}), more = rg::cat({flat, flat * 2.0}, 0);
        for (const Tensor& leaf : s.leaves()) leaf.set_grad({});
        s.row.set_grad(more.narrow(0, 3, 6).view({2, 3}).detach());
        s.t.set_grad(more.narrow(0, 1, 6).view({3, 2}).t().detach());
        s.loss(x).backward();
        return Tensors{more * 2.0, s.row.grad() * 2.0, s.t.grad() * 3.0};
      });
}

TEST_CASE("a gradient that is part of memory of the step, read after it") {
  const Tensor first = parameter({4}, 1), last = parameter({4}, 2);
  auto step = rg::compile_step([&] {
    const Tensor loss = rg::sum(rg::square(rg::cat({first, last})));
    loss.backward();
    return loss;
  });
  for (int run = 0; run < 3; ++run) {
    step();
    for (const Tensor& leaf : {first, last}) {
      CHECK(leaf.grad().to_vector() == (leaf * 2.0).to_vector());
      leaf.set_grad({});
    }
  }
}

TEST_CASE("the gradient of an argument, and of a leaf that is made in the step, lie as these do") {
  const auto body = [](const Tensor& leaf) {
    leaf.set_grad({});
    rg::sum(rg::exp(leaf) * 3.0).backward();
    const Tensor made = rg::tanh(leaf.detach()).t().contiguous().t().detach().requires_grad_();
    rg::sum(rg::exp(made)).backward();
    return Tensors{leaf.grad() * 2.0, made};
  };
  auto step = rg::compile_step(body);
  const Tensor p = transposed(), q = transposed();
  for (int i = 0; i < 3; ++i) {
    const Tensors expected = body(p), found = step(q);
    check_same(expected, found);
    check_same({p.grad(), expected[1].grad()}, {q.grad(), found[1].grad()});
  }
}

TEST_CASE("a step that returns a gradient gives the object that the leaf has") {
  const Tensor p = parameter({3}, 1), q = transposed();
  bool clears = true;
  auto step = rg::compile_step([&](const Tensor& x) {
    if (clears) p.set_grad({}), q.set_grad({}), x.set_grad({});
    rg::sum(p * x).backward();
    rg::sum(q * q).backward();
    return Tensors{p.grad(), q.grad(), x.grad(), p.grad()};
  });
  const Tensor x = parameter({3}, 2);
  const auto check = [&] {
    const Tensors results = step(x);
    CHECK(results[0].get() == p.grad().get());
    CHECK(results[1].get() == q.grad().get());
    CHECK(results[2].get() == x.grad().get());
    CHECK(results[3].get() == p.grad().get());
  };
  for (int i = 0; i < 3; ++i) check();
  clears = false;
  rg::FunctionCache& cache = step;
  cache.reset();
  for (int i = 0; i < 3; ++i) check();
  p.set_grad(rg::ones({3}));  // another object with the same layout
  check();
  CHECK(same_bits(p.grad(), x.detach() + 1.0));
  CHECK(step.stats().captures == 1);
}

TEST_CASE("a function gives the gradients that leaves have, and views of them") {
  const Tensor p = parameter({4}, 1);
  bool clears = true;
  const auto body = [&](const Tensor& x) {
    if (clears) p.set_grad({});
    rg::sum(p * x.detach()).backward();
    return Tensors{p.grad(), p.grad().view({2, 2}), x * x};
  };
  const Tensor x = parameter({4}, 2);
  for (const bool c : {true, false}) {
    clears = c;
    auto f = rg::compile(body);
    for (int i = 0; i < 4; ++i) {
      if (i == 2) p.set_grad(spread(rg::Shape{4}, 5));
      const Tensors results = f(x);
      CHECK(results[0].get() == p.grad().get());
      CHECK(results[1].impl().base.get() == p.grad().get());
      CHECK(same_bits(results[1].view({4}), p.grad()));
      rg::sum(results[2]).backward();
    }
  }
}

TEST_CASE("a leaf that a step returns is one that requires a gradient") {
  const auto body = [](const Tensor& x) {
    const Tensor leaf = (x * 2.0).detach().requires_grad_();
    return Tensors{leaf, leaf.detach(), leaf * 2.0, leaf};
  };
  auto step = rg::compile_step(body);
  for (int i = 0; i < 2; ++i) {
    const Tensors results = step(spread(rg::Shape{3}, i));
    CHECK(results[0].requires_grad());
    CHECK(results[0].is_leaf());
    CHECK(!results[1].requires_grad());
    CHECK(!results[2].requires_grad());
    CHECK(results[3].get() == results[0].get());
    rg::sum(results[0] * results[0]).backward();
    CHECK(same_bits(results[0].grad(), results[1] * 2.0));
  }
}
