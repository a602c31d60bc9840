// Guards of the user that end in any order, on any thread, in hooks, and never: each kind of guard is tested with each
// ending. The active scope is determined by the effect of the guard.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "scenario.h"

using namespace scenario;

namespace {

// A guard, and whether it is active on the calling thread.
class Opened {
 public:
  virtual ~Opened() = default;
  virtual bool counts() = 0;
};
using OpenedPtr = std::unique_ptr<Opened>;

Tensor one() { return leaf({1}); }

struct Hooks final : Opened {
  int packed = 0;
  rg::SavedTensorHooksGuard guard{[this](const Tensor& t) { return ++packed, t; },
                                  [](const Tensor& t) { return t; }};
  bool counts() override {
    const int before = packed;
    const Tensor x = one(), y = x * x;
    return packed > before;
  }
};
struct Disabled final : Opened {
  rg::DisableSavedTensorHooks guard{"not now"};
  bool counts() override {
    return error_of([] { Hooks(); }).find("not now") != std::string::npos;
  }
};
struct NoGrad final : Opened {
  rg::NoGradGuard guard;
  bool counts() override { return !(one() * 2).requires_grad(); }
};
struct Grad final : Opened {
  // In a thread without gradients, this counts while gradients are on.
  explicit Grad() { rg::GradMode::set_enabled(false), guard.emplace(); }
  ~Grad() override { guard.reset(), rg::GradMode::set_enabled(true); }
  std::optional<rg::EnableGradGuard> guard;
  bool counts() override { return (one() * 2).requires_grad(); }
};
struct Anomaly final : Opened {
  rg::autograd::DetectAnomalyGuard guard;
  bool counts() override {
    return category_of([] { rg::sum(rg::sqrt(leaf({-1.0}))).backward(); }) == rg::Category::bad_argument;
  }
};
struct Compiled final : Opened {
  rg::CompiledBackward compiled = rg::compile_backward();
  rg::CompiledBackwardScope guard{compiled};
  bool counts() override {
    const auto calls = [&] { return compiled.stats().captures + compiled.stats().hits; };
    const auto before = calls();
    rg::sum(one() * 2).backward();
    return calls() > before;
  }
};
struct Mutation final : Opened {
  rg::AllowMutationOnSavedTensors guard;
  bool counts() override {
    const Tensor x = one(), h = x * 1, y = h * h;
    h.mul_(3);
    return !category_of([&] { rg::sum(y).backward(); });
  }
};
struct Dual final : Opened {
  rg::autograd::DualLevel guard;
  bool counts() override {
    const Tensor x = guard.make_dual(rg::ones({1}), rg::ones({1}));
    return guard.tangent(x * 2).defined();
  }
};
struct Profiled final : Opened {
  rg::Profile profile;
  rg::ProfileScope guard{profile};
  bool counts() override {
    const size_t before = profile.calls().size();
    rg::ones({1}) * 2;
    return profile.calls().size() > before;
  }
};

struct Kind {
  std::string_view name;
  OpenedPtr (*open)();
  bool nests = true;
};

template <class T>
OpenedPtr open() {
  return std::make_unique<T>();
}

const Kind kinds[] = {
    {"SavedTensorHooksGuard", open<Hooks>},
    {"DisableSavedTensorHooks", open<Disabled>},
    {"NoGradGuard", open<NoGrad>},
    {"DetectAnomalyGuard", open<Anomaly>},
    {"CompiledBackwardScope", open<Compiled>},
    {"AllowMutationOnSavedTensors", open<Mutation>, false},
    {"DualLevel", open<Dual>},
    {"ProfileScope", open<Profiled>},
};

// What a backward and forward mode give when no guard is open.
void check_plain() {
  const Tensor x = leaf({3});
  rg::sum(x * x).backward();
  CHECK(values(x.grad()) == std::vector<double>{6});
  CHECK(rg::GradMode::is_enabled());
  CHECK_FALSE(rg::default_saved_tensor_hooks());
  CHECK_FALSE(rg::autograd::DetectAnomalyGuard::is_enabled());
  CHECK(values(rg::autograd::jvp([](const Tensors& in) { return Tensors{in[0] * in[0]}; }, {x.detach()},
                                 {rg::ones({1})})
                   .tangents[0]) == std::vector<double>{6});
}

template <class F>
void for_each_kind(F f) {
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    f(kind);
    check_plain();
  }
}

}  // namespace

TEST_CASE("three guards end in every order, and the last opened of those that are open counts") {
  std::array<int, 3> order{0, 1, 2};
  do {
    for_each_kind([&](const Kind& kind) {
      if (!kind.nests) return;
      std::array<OpenedPtr, 3> guards{kind.open(), kind.open(), kind.open()};
      for (const int ends : order) {
        INFO("guard " << ends << " ends");
        guards[static_cast<size_t>(ends)].reset();
        const auto last =
            std::find_if(guards.rbegin(), guards.rend(), [](const OpenedPtr& g) { return g != nullptr; });
        if (last != guards.rend()) CHECK((*last)->counts());
      }
    });
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("guards of all kinds end in every order of two") {
  for_each_kind([](const Kind& a) {
    for (const Kind& b : kinds) {
      INFO(b.name);
      if (a.open == open<Disabled> || b.open == open<Disabled>)
        continue;  // others cannot be opened next to it
      if (a.open == b.open && !a.nests) continue;
      OpenedPtr first = a.open(), second = b.open();
      first.reset();
      CHECK((second->counts() || a.open == open<NoGrad> || b.open == open<Anomaly>));
      second.reset();
      check_plain();
    }
  });
}

TEST_CASE("a guard that another thread ends no longer counts on its own, and never did on the other") {
  for_each_kind([](const Kind& kind) {
    OpenedPtr outer = kind.nests ? kind.open() : nullptr, guard = kind.open();
    std::thread([&] {
      check_plain();
      guard.reset();
      check_plain();
    }).join();
    if (outer) CHECK(outer->counts());
  });
}

TEST_CASE("a guard whose thread has ended counts nowhere") {
  for_each_kind([](const Kind& kind) {
    OpenedPtr guard;
    std::thread([&] {
      guard = kind.open();
      CHECK(guard->counts());
    }).join();
    check_plain();
  });
}

TEST_CASE("a guard that a hook opens outlives the backward") {
  for_each_kind([](const Kind& kind) {
    OpenedPtr guard;
    const Tensor x = leaf({3}), h = x * 1;
    h.register_hook([&](const Tensor&) { guard = kind.open(); });
    rg::sum(h * h).backward();
    CHECK(values(x.grad()) == std::vector<double>{6});
    CHECK(guard->counts());
    guard.reset();
  });
}

TEST_CASE("a guard that was open before a backward ends in a hook of it") {
  for_each_kind([](const Kind& kind) {
    OpenedPtr guard = kind.open();
    const Tensor x = leaf({3});
    const Tensor y = [&] {
      const rg::EnableGradGuard on;
      const Tensor h = x * 1;
      h.register_hook([&](const Tensor&) { guard.reset(); });
      return rg::sum(h + 1);
    }();
    y.backward();
    CHECK_FALSE(guard);
    CHECK(values(x.grad()) == std::vector<double>{1});
  });
}

TEST_CASE("a recorded function or a captured backward in which a guard is opened or ended") {
  for_each_kind([](const Kind& kind) {
    OpenedPtr guard;
    rg::CompiledBackward compiled = rg::compile_backward();
    for (int step = 0; step < 3; ++step) {
      const Tensor x = leaf({3}), h = x * 1;
      h.register_hook([&](const Tensor&) { guard = step % 2 ? nullptr : kind.open(); });
      const Tensor loss = rg::sum(h + 1);
      guard.reset();
      compiled.backward({loss});
      CHECK(values(x.grad()) == std::vector<double>{1});
      guard.reset();
    }
  });
}

TEST_CASE("EnableGradGuard in a thread without gradients, ended elsewhere") {
  std::thread([] {
    Grad mode;
    CHECK(mode.counts());
    std::thread([&] { mode.guard.reset(); }).join();
    CHECK_FALSE(mode.counts());
  }).join();
}

TEST_CASE("set_enabled holds until the guard around it ends") {
  {
    const rg::NoGradGuard off;
    rg::GradMode::set_enabled(true);
    CHECK(rg::GradMode::is_enabled());
    {
      const rg::NoGradGuard inner;
      CHECK_FALSE(rg::GradMode::is_enabled());
    }
    CHECK(rg::GradMode::is_enabled());
    rg::GradMode::set_enabled(false);
  }
  CHECK(rg::GradMode::is_enabled());
}

namespace {

void compute_at_exit() {
  const Tensor x = leaf({3});
  bool right = false;
  try {
    const rg::EnableGradGuard on;
    rg::sum(x * x).backward();
    right = values(x.grad()) == std::vector<double>{6};
  } catch (const std::exception&) {
    right = true;  // refused
  }
  if (!right) _exit(3);
}

}  // namespace

TEST_CASE("exit() inside a scope, and ops while the process ends") {
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    const pid_t child = fork();
    if (child == 0) {
      std::atexit(compute_at_exit);
      const OpenedPtr guard = kind.open();
      std::exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}
