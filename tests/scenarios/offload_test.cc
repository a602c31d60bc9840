// Saved tensors kept elsewhere: in host memory that is no tensor, in files. Sizes change from step to step;
// there is one capture. Not tested here: memory during the backward (saved_memory_test.cc); another device
// (tests/cuda/offload_test.cc).
#include <algorithm>
#include <filesystem>

#include "hook_scenario.h"
#include "tests/own_folder.h"

namespace retrograd::scenario {
namespace {

struct HostCopy {
  std::vector<char> bytes;
  IntArray sizes;
  ScalarType dtype;
};

/// Keeps bytes, not tensors: what a copy to another device does.
RefPtr<SavedTensorHooks> to_host() {
  return saved_tensor_hooks(
      [](const Tensor& t) {
        const Tensor dense = contiguous(t);
        const char* data = static_cast<const char*>(dense.raw_data());
        return HostCopy{{data, data + dense.nbytes()}, t.sizes(), t.dtype()};
      },
      [](const HostCopy& host) {
        const Tensor t = empty(host.sizes, {host.dtype});
        std::memcpy(t.raw_data(), host.bytes.data(), host.bytes.size());
        return t;
      });
}

struct Folder : retrograd::testing::OwnFolder {
  int files() const {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator()));
  }
};

/// A user-defined function that saves its argument: one unpack per call.
struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& g) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {g[0] * x * x * 3.0};
  }
};

/// Names of the graph's ops, without the sizes and the rest.
Events op_names(const ir::Graph& graph) {
  Events names;
  for (const ir::Node& node : graph.nodes()) names.emplace_back(node.op->name);
  return names;
}

}  // namespace

TEST_CASE("S109 kept in host memory, sizes 10 100 10 20 30: one capture, unpacks next to their users") {
  CompiledBackward compiled = compile_backward();
  for (const int64_t n : {10, 100, 10, 20, 30}) {
    Tensor found[2];
    for (const bool traced : {false, true}) {
      Mode mode(traced ? &compiled : nullptr);
      const Tensor x = some_leaf({n, 3});
      Tensor y;
      {
        SavedTensorHooksGuard guard(to_host());
        y = Cube::apply(sin(x));
      }
      mode.backward(sum(y));
      found[traced] = x.grad();
    }
    REQUIRE(same_bits(found[0], found[1]));
  }
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().hits == 4);
  CHECK(compiled.stats().unpacks == 10);
  const auto graph = compiled.graph();
  int unpacks = 0;
  for (size_t i = 0; i < graph->nodes().size(); ++i) {
    const ir::Node& node = graph->nodes()[i];
    if (node.op->name != "unpack") continue;
    ++unpacks;
    bool used = false;
    for (ir::ValueId v : graph->operands(graph->nodes().at(i + 1))) used |= v == node.first_result;
    INFO(graph->print());
    CHECK(used);
  }
  CHECK(unpacks == 2);
}

TEST_CASE("S110, hook 19 kept in files, sizes 10 100 10 20 30: one capture with one unpack") {
  const Folder folder;
  CompiledBackward compiled = compile_backward();
  for (const int64_t n : {10, 100, 10, 20, 30}) {
    for (const bool traced : {false, true}) {
      Mode mode(traced ? &compiled : nullptr);
      const Tensor a = some_leaf({n, 32});
      {
        Tensor y;
        {
          SavedTensorHooksGuard guard(save_to_file(folder.path));
          y = square(a);
        }
        CHECK(folder.files() == 1);
        Record& record = *y.grad_fn().record();
        CHECK(same_bits(unpack(record, record.slot(0)), a.detach()));
        mode.backward(sum(y));
      }
      CHECK(folder.files() == 0);
      REQUIRE(same_bits(a.grad(), a.detach() * 2.0));
    }
  }
  CHECK(compiled.stats().captures == 1);
  const Events ops = op_names(*compiled.graph());
  CHECK(std::count(ops.begin(), ops.end(), "unpack") == 1);
}

TEST_CASE("S110 the payload may be the name of a file that the user writes and reads") {
  const Folder folder;
  run_both([&](Mode& mode) {
    int next = 0;
    const Tensor a = some_leaf({4, 3});
    Tensor y;
    {
      SavedTensorHooksGuard guard(
          [&](const Tensor& t) {
            const std::string name = (std::filesystem::path(folder.path) / std::to_string(next++)).string();
            save({{"t", t}}, name);
            return name;
          },
          [](const std::string& name) { return load(name).at("t"); });
      y = a * a;
    }
    CHECK(next == 2);
    mode.backward(sum(y));
    CHECK(same_bits(a.grad(), a.detach() * 2.0));
    return Tensors{a.grad()};
  });
}

TEST_CASE("hook 20 a copy in host memory gives back dtype and layout, and equal gradients") {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    run_both(
        [=](Mode& mode) {
          const Tensor a = to(some_values({3, 4}), dtype).requires_grad_(),
                       plain = a.detach().clone().requires_grad_();
          Tensor y;
          {
            SavedTensorHooksGuard guard(to_host());
            y = exp(a) * t(a).contiguous().view({3, 4}) * a;
          }
          Record& record = *y.grad_fn().record();
          for (int i : {0, 1}) {
            const Tensor saved = unpack(record, record.slot(i));
            CHECK(saved.dtype() == dtype);
            CHECK(saved.sizes() == IntArray{3, 4});
            CHECK(saved.device() == a.device());
          }
          mode.backward(sum(y));
          mode.backward(sum(exp(plain) * t(plain).contiguous().view({3, 4}) * plain));
          CHECK(same_bits(a.grad(), plain.grad()));
          return Tensors{a.grad()};
        },
        2);
}

TEST_CASE("hook 20 with copies in host memory a forward holds no more bytes than without gradients") {
  const auto live_after_forward = [](bool with_gradient) {
    const Tensor x = some_values({64, 64}), w1 = some_values({64, 64}), w2 = some_values({64, 64});
    w1.requires_grad_(with_gradient);
    w2.requires_grad_(with_gradient);
    const int64_t before = memory::stats().live_bytes;
    SavedTensorHooksGuard guard(to_host());
    const Tensor y = tanh(mm(sin(mm(x, w1)), w2));
    CHECK(y.requires_grad() == with_gradient);
    return memory::stats().live_bytes - before;
  };
  CHECK(live_after_forward(true) == live_after_forward(false));
  CHECK(live_after_forward(false) == 64 * 64 * 4);
}

}  // namespace retrograd::scenario
