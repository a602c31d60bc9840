// Damaged texts of graphs. Each is refused with Error(bad_argument), or is a valid graph that prints to itself, and
// runs: node by node and as a plan, with the same bits or an error in both.
//
//   RETROGRAD_MUTATIONS=10000000 RETROGRAD_FUZZ_SEED=7 ./bazelw run --config=asan //tests/ir:text_fuzz_test
//
// Graphs with slots, leaves and hooks are not run: these belong to a backward. The current text is in the file
// TEST_TMPDIR/graph.txt.
#include <fstream>

#include "ir/verify.h"
#include "tests/fuzz/asked.h"
#include "tests/fuzz/damage.h"
#include "tests/ir/run_text.h"
#include "tests/test_folder.h"

namespace {

namespace rg = retrograd;
namespace ir = rg::ir;
using rg::Tensor;
using rg::Tensors;

constexpr int64_t kMutations = 20000;

// The texts of what programs record: of functions, whose inputs are all tensors, and of their backwards.
std::vector<std::string> texts() {
  const std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> programs = {
      [](const Tensor& x, const Tensor& y) { return rg::sum((x + y) * x / y - 2.5 * x + rg::pow(y, x)); },
      [](const Tensor& x, const Tensor& y) {
        return rg::sum(rg::gelu(x) + rg::softmax(y, 1) + rg::clamp(x, -0.1, 0.1));
      },
      [](const Tensor& x, const Tensor& y) {
        return rg::sum(rg::mm(x, y.t())) + rg::sum(rg::bmm(x.view({3, 2, 2}), y.view({3, 2, 2})));
      },
      [](const Tensor& x, const Tensor& y) {
        return rg::sum(x.view({4, 3}).t() * y + x.narrow(0, 0, 3)) + rg::sum(rg::cumsum(y, 1));
      },
      [](const Tensor& x, const Tensor& y) {
        return rg::sum(rg::cat({x, y}, 1)) + rg::sum(rg::flip(x, {0})) + rg::sum(rg::diagonal(x));
      },
      [](const Tensor& x, const Tensor& y) {
        return rg::sum(rg::as_strided(x, {2, 2}, {4, 1})) + rg::sum(rg::where(rg::lt(x, y), x, y));
      },
      [](const Tensor& x, const Tensor& y) {
        return rg::mean(rg::layer_norm(x, {4})) + rg::logsumexp(rg::sum(y, 1), 0);
      },
      [](const Tensor& x, const Tensor& y) {
        return rg::sum(rg::max_pool2d(x.view({1, 1, 3, 4}), {2, 2})) +
               rg::sum(rg::index_select(y, 0, rg::tensor({2, 0}, {rg::kInt64})));
      },
  };
  std::vector<std::string> all;
  for (const auto& program : programs) {
    const Tensor x = rg::rand({3, 4}), y = rg::rand({3, 4}) + 0.5;
    auto function = rg::compile(program);
    function(x, y);
    all.push_back(function.graph()->print());
    const Tensor leaf = rg::rand({3, 4}).requires_grad_();
    rg::CompiledBackward compiled = rg::compile_backward();
    compiled.backward({program(leaf, leaf + 0.5)});
    all.push_back(compiled.graph()->print());
    auto gradient = rg::compile([&](const Tensor& a, const Tensor& b) {
      const Tensor l = a.detach().requires_grad_();
      return rg::autograd::grad({program(l, b)}, {l})[0];
    });
    gradient(x, y);
    all.push_back(gradient.graph()->print());
  }
  return all;
}

std::vector<std::string> odd_words() {
  std::vector<std::string> words = fuzz::odd_numbers();
  for (const char* word :
       {"f32", "f64", "i64", "bool", "bf16", "none", "slot", "leaf", "hook", "s0", "true", "false", "return"})
    words.emplace_back(word);
  for (const rg::OpInfo* op : rg::ops::all_ops()) words.emplace_back(op->name);
  return words;
}

bool can_run(const ir::Graph& graph) {
  const auto is_of_backward = [](const ir::Input& input) { return input.kind != ir::Input::Kind::tensor; };
  if (graph.symbols.size() > 0 || std::ranges::any_of(graph.inputs(), is_of_backward)) return false;
  if (std::ranges::any_of(graph.types(), [](const rg::TensorType& type) { return ir_test::is_large(type); }))
    return false;
  return std::ranges::none_of(graph.nodes(),
                              [](const ir::Node& node) { return node.op->is(rg::Trait::bookkeeping); });
}

struct Counts {
  int64_t refused = 0, read = 0, run = 0;
};

void try_text(const std::string& text, Counts& counts) {
  std::optional<ir::Graph> graph;
  try {
    graph = ir_test::parse(text);
  } catch (const rg::Error& e) {
    ++counts.refused;
    if (e.category() != rg::Category::bad_argument) FAIL_CHECK(text << e.what());
    return;
  }
  ++counts.read;
  ir::verify(*graph);
  const std::string printed = graph->print();
  if (ir_test::parse(printed).print() != printed) FAIL_CHECK(text);
  if (!can_run(*graph)) return;
  ++counts.run;
  ir_test::check_alike(*graph);
}

}  // namespace

TEST_CASE("Damaged texts of graphs are refused, or run alike in replay and in a plan") {
  const rg::NoGradGuard no_grad;
  std::vector<std::string> sound;
  {
    const rg::EnableGradGuard grad;
    sound = texts();
  }
  rg::memory::set_limit(int64_t{1} << 26);
  fuzz::Random random(fuzz::asked_seed());
  fuzz::Damage damaged(random, odd_words());
  const std::string path = rg::testing::in_test_folder("graph.txt");
  Counts counts;
  const int64_t wanted = fuzz::asked_for("RETROGRAD_MUTATIONS", kMutations);
  for (int64_t i = 0; i < wanted; ++i) {
    const std::string text = damaged(random.pick(sound));
    std::ofstream(path, std::ios::trunc) << text;
    try_text(text, counts);
  }
  rg::memory::set_limit(0);
  std::printf("%ld refused, %ld read, %ld run\n", counts.refused, counts.read, counts.run);
  CHECK(counts.refused > wanted / 4);
  CHECK(counts.run > wanted / 100);
}
