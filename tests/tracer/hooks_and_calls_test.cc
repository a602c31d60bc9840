// Every kind of code that a user can attach to a backward, combined with every way to call one, in every mode: the same
// gradients and the same events as eagerly, in each of three calls.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
namespace ag = rg::autograd;
using Events = std::vector<std::string>;

Events events;
void note(const char* what, const Tensor& t) {
  events.push_back(std::string(what) + " " + (t.defined() ? std::to_string(t.to_vector()[0]) : "undefined"));
}

Tensor plain(const Tensor& t) { return t.defined() ? t.detach() : t; }

struct Opaque : rg::Function<Opaque> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    note("backward", g[0].detach());
    return {g[0] * ctx->get_saved_variables()[0] * 2.0};
  }
};
struct Traceable : rg::Function<Traceable> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    return {g[0] * ctx->get_saved_variables()[0] * 2.0};
  }
};

// What is attached: to h, an inner tensor, and to w, a leaf; it may return another h.
struct Kind {
  const char* name;
  std::function<Tensor(const Tensor& h, const Tensor& w)> attach;
};

const Kind kKinds[] = {
    {"nothing", [](const Tensor& h, const Tensor&) { return h; }},
    {"tensor hook that looks",
     [](const Tensor& h, const Tensor&) {
       h.register_hook([](const Tensor& g) { note("hook", g.detach()); });
       return h;
     }},
    {"tensor hook that replaces",
     [](const Tensor& h, const Tensor&) {
       h.register_hook([](const Tensor& g) { return g * 3.0; });
       return h;
     }},
    {"traceable tensor hook",
     [](const Tensor& h, const Tensor&) {
       h.register_hook([](const Tensor& g) { return g * 3.0; }).set_traceable();
       return h;
     }},
    {"pre-hook",
     [](const Tensor& h, const Tensor&) {
       h.grad_fn().register_prehook([](const Tensors& g) {
         note("pre", g[0].detach());
         return Tensors{g[0] * 2.0};
       });
       return h;
     }},
    {"post-hook",
     [](const Tensor& h, const Tensor&) {
       h.grad_fn().register_hook([](const Tensors& in, const Tensors& out) {
         note("post", out[0].detach());
         return Tensors{in[0] * 2.0};
       });
       return h;
     }},
    {"leaf hook",
     [](const Tensor& h, const Tensor& w) {
       w.register_hook([](const Tensor& g) {
         note("leaf", g.detach());
         return g * 2.0;
       });
       return h;
     }},
    {"accumulation pre-hook",
     [](const Tensor& h, const Tensor& w) {
       w.register_accumulate_grad_prehook([](const Tensors& g) {
         note("accumulate", g[0].detach());
         return Tensors{g[0] * 2.0};
       });
       return h;
     }},
    {"accumulation post-hook",
     [](const Tensor& h, const Tensor& w) {
       w.register_accumulate_grad_posthook(
           [](const Tensors&, const Tensors& g) { note("accumulated", g[0].detach()); });
       return h;
     }},
    {"post-accumulate hook",
     [](const Tensor& h, const Tensor& w) {
       w.register_post_accumulate_grad_hook(
           [](const Tensor& leaf) { note("post-accumulate", leaf.grad().detach()); });
       return h;
     }},
    {"multi-grad hook, all",
     [](const Tensor& h, const Tensor& w) {
       ag::register_multi_grad_hook({h, w}, [](const Tensors& g) { note("all", plain(g[0])); });
       return h;
     }},
    {"multi-grad hook, any",
     [](const Tensor& h, const Tensor& w) {
       ag::register_multi_grad_hook(
           {h, w}, [](const Tensors& g) { note("any", plain(g[0])); }, ag::MultiGradMode::any);
       return h;
     }},
    {"callback",
     [](const Tensor& h, const Tensor&) {
       h.register_hook([](const Tensor&) { ag::queue_callback([] { events.push_back("callback"); }); });
       return h;
     }},
    {"opaque function", [](const Tensor& h, const Tensor&) { return Opaque::apply(h); }},
    {"traceable function", [](const Tensor& h, const Tensor&) { return Traceable::apply(h); }},
    {"opaque pair",
     [](const Tensor& h, const Tensor&) {
       rg::SavedTensorHooksGuard guard(
           [](const Tensor& t) {
             note("pack", t);
             return t;
           },
           [](const Tensor& t) {
             note("unpack", t);
             return t;
           });
       return rg::sin(h) * h;
     }},
    {"retain_grad",
     [](const Tensor& h, const Tensor&) {
       h.retain_grad();
       return h;
     }},
};

// How the backward is called; returns what is to be compared.
struct How {
  const char* name;
  std::function<Tensors(Mode& mode, const Tensor& loss, const Tensor& x, const Tensor& w)> call;
};
Tensors grads_of(const Tensor& x, const Tensor& w) {
  Tensors all;
  for (const Tensor& g : {x.grad(), w.grad()}) all.push_back(g.defined() ? g.detach() : g);
  return all;
}
const How kHows[] = {
    {"backward",
     [](Mode& mode, const Tensor& loss, const Tensor& x, const Tensor& w) {
       mode.backward(loss);
       return grads_of(x, w);
     }},
    {"backward to inputs",
     [](Mode& mode, const Tensor& loss, const Tensor& x, const Tensor& w) {
       mode.backward({loss}, {}, {}, false, Tensors{w});
       return grads_of(x, w);
     }},
    {"backward twice",
     [](Mode& mode, const Tensor& loss, const Tensor& x, const Tensor& w) {
       mode.backward({loss}, {}, true);
       mode.backward({loss}, {});
       return grads_of(x, w);
     }},
    {"grad",
     [](Mode& mode, const Tensor& loss, const Tensor& x, const Tensor& w) {
       return mode.grad({loss}, {w, x});
     }},
    {"grad of grad",
     [](Mode& mode, const Tensor& loss, const Tensor& x, const Tensor& w) {
       const Tensors first = mode.grad({loss}, {x, w}, {}, true, true);
       Tensors second = mode.grad({rg::sum(first[0] * first[1])}, {x, w}, {}, {}, false, true);
       second.push_back(first[0].detach());
       return second;
     }},
};

Tensors run(Mode& mode, const Kind& kind, const How& how, const Tensor& x, const Tensor& w) {
  const Tensor h = kind.attach(rg::exp(x), w);
  return how.call(mode, rg::sum(h * w * x), x, w);
}

}  // namespace

TEST_CASE("each kind of user code, each way to call a backward, in each mode") {
  for (const Kind& kind : kKinds)
    for (const How& how : kHows) {
      INFO(kind.name << ", " << how.name);
      // A new leaf each time, so that hooks are attached once.
      Tensor w;
      const auto compare = [&](const char* mode, const auto& f) {
        events.clear();
        Mode eager;
        w = leaf({0.5, 2});
        const Tensors expected = run(eager, kind, how, leaf({1, 2}), w);
        const Events expected_events = std::exchange(events, {});
        w = leaf({0.5, 2});
        const Tensors found = f();
        INFO(mode);
        check_same(expected, found);
        CHECK(events == expected_events);
      };
      rg::CompiledBackward compiled = rg::compile_backward();
      for (int i = 0; i < 3; ++i)
        compare("traced", [&] {
          Mode traced(&compiled);
          return run(traced, kind, how, leaf({1, 2}), w);
        });
      const auto body = [&](const Tensor& x, const Tensor& weight) {
        Mode plain;
        return run(plain, kind, how, x, weight);
      };
      auto step = rg::compile_step(body);
      auto function = rg::compile(body);
      for (int i = 0; i < 3; ++i) {
        compare("step", [&] { return step(leaf({1, 2}), w); });
        compare("function", [&] { return function(leaf({1, 2}), w); });
      }
      INFO("step run as it is: " << step.last_eager_reason());
    }
}
