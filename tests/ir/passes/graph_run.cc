// See graph_run.h.
#include "tests/ir/passes/graph_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "ir/replay.h"
#include "tests/fuzz/random.h"

namespace graph_run {
namespace {

using rg::Tensor;
using rg::Tensors;
using Kind = rg::ir::Input::Kind;

std::string text_of(const Tensor& t) {
  if (!t.defined()) return "undefined";
  std::string text = rg::to_string(t.impl().type());
  for (int d = 0; d < t.dim(); ++d)
    if (t.impl().shape()[d].raw() > 1) text += fmt::format(" {}", t.impl().strides()[d]);
  const Tensor dense = rg::clone(t);
  const size_t item = rg::element_size(t.dtype());
  const auto* bytes = static_cast<const unsigned char*>(dense.impl().data());
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (double number : dense.to_vector()) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes, item);
    bytes += item;
    hash = (hash ^ (std::isnan(number) ? 0x7FF8 : bits)) * 0x100000001B3u;
  }
  return fmt::format("{} {:016x}", text, hash);
}

class Run {
 public:
  Run(const rg::ir::Graph& graph, uint64_t seed, bool any_layout)
      : graph_(graph), random_(seed), any_layout_(any_layout) {}

  Lines run() {
    for (const rg::ir::Input& input : graph_.inputs()) bindings_.push_back(binding(input));
    try {
      const std::vector<rg::Number> values = hints();
      const Tensors outputs = rg::ir::replay(graph_, rg::eager_runner(), bindings_, values);
      for (const Tensor& t : outputs) lines_.push_back("output " + text_of(t));
      write_into(outputs);
      for (const Tensor& t : outputs) lines_.push_back("output " + text_of(t));
    } catch (const rg::Exception& e) {
      lines_.push_back(std::string("error ") + e.what());
    }
    for (const rg::ir::Binding& b : bindings_) {
      if (b.tensor.defined()) lines_.push_back("input " + text_of(b.tensor));
      if (b.box) lines_.push_back("box " + text_of(b.box->grad));
    }
    for (const Tensor& leaf : leaves_) lines_.push_back("gradient " + text_of(leaf.grad()));
    return std::move(lines_);
  }

 private:
  std::vector<rg::Number> hints() const {
    std::vector<rg::Number> values;
    for (int32_t id = 0; id < graph_.symbols.size(); ++id) values.push_back(graph_.symbols.expr(id).hint);
    return values;
  }

  // Small numbers, those of integers fit to be indices more often than not.
  Tensor some(const rg::TensorType& symbolic) {
    const rg::TensorType type = rg::ir::concrete_type(symbolic, hints());
    std::vector<double> values(static_cast<size_t>(type.shape.numel().value()));
    for (double& v : values)
      v = rg::is_floating(type.dtype) ? random_.number(-1.5, 1.5) : static_cast<double>(random_.chance(0.5));
    Tensor t = rg::tensor(values, type.shape, {type.dtype});
    if (any_layout_ && t.dim() >= 2 && random_.chance(0.3))
      t = rg::transpose(rg::clone(rg::transpose(t, 0, -1)), 0, -1);
    return t;
  }

  rg::ir::Binding binding(const rg::ir::Input& input) {
    rg::ir::Binding b;
    switch (input.kind) {
      case Kind::tensor:
      case Kind::slot: b.tensor = some(graph_.type(input)); break;
      case Kind::leaf:
        leaves_.push_back(some(graph_.type(input)));
        if (rg::is_floating(leaves_.back().dtype())) leaves_.back().requires_grad_();
        b.leaf = leaves_.back().get();
        break;
      case Kind::hook: b.hook = hook(bindings_.size()); break;
      default: b.box = rg::RefPtr<rg::GradBox>::adopt(new rg::GradBox);
    }
    return b;
  }

  // What the nodes of a hook give it says which kind it is.
  rg::RefPtr<rg::Hook> hook(size_t input) {
    auto hook = rg::RefPtr<rg::Hook>::adopt(new rg::Hook);
    const auto uses = [&](const rg::ir::Node& n) { return n.handle == static_cast<int32_t>(input); };
    const auto node = std::ranges::find_if(graph_.nodes(), uses);
    const uint64_t what = random_.next();
    if (node == graph_.nodes().end() || node->operands == 0) {
      hook->kind = rg::Hook::Kind::post_accumulate;
      hook->post_accumulate = [this, what](const Tensor&) { call(what, {}); };
    } else if (node->operands == 1 && node->results == 1) {
      hook->tensor = [this, what](const Tensor& g) { return call(what, {g})[0]; };
    } else {
      hook->kind = rg::Hook::Kind::post;
      hook->post = [this, what](const Tensors& inputs, const Tensors& outputs) {
        call(what + 1, outputs);
        return call(what, inputs);
      };
    }
    return hook;
  }

  void write_into(const Tensors& all) {
    for (const Tensor& t : all) {
      if (!t.defined() || !rg::is_floating(t.dtype()) || t.requires_grad()) continue;
      try {
        t.mul_(rg::Scalar(0.5));
      } catch (const rg::Error&) {
        lines_.push_back("  overlaps");  // elements share memory
      }
    }
  }

  Tensors call(uint64_t what, const Tensors& given) {
    for (const Tensor& t : given) lines_.push_back("  hook " + text_of(t));
    Tensors answer(given.size());
    switch (what % 6) {
      case 0: break;
      case 1:
        for (size_t i = 0; i < given.size(); ++i)
          if (given[i].defined()) answer[i] = given[i] * 0.75;
        break;
      case 2: answer = given; break;
      case 3: write_into(given); break;
      case 4:
        for (const rg::ir::Binding& b : bindings_) write_into({b.tensor});
        break;
      default:
        for (const Tensor& leaf : leaves_) write_into({leaf.grad()});
        for (const rg::ir::Binding& b : bindings_)
          if (b.box) write_into({b.box->grad});
    }
    return answer;
  }

  const rg::ir::Graph& graph_;
  fuzz::Random random_;
  bool any_layout_;
  std::vector<rg::ir::Binding> bindings_;
  Tensors leaves_;
  Lines lines_;
};

}  // namespace

bool can_run(const rg::ir::Graph& graph) {
  const auto is_strange = [](const rg::ir::Input& i) {
    return i.kind == Kind::function || i.kind == Kind::pair;
  };
  const auto permutes = [](const rg::ir::Node& n) { return n.op->name.starts_with("lu_"); };
  return std::ranges::none_of(graph.inputs(), is_strange) && std::ranges::none_of(graph.nodes(), permutes);
}

Lines run(const rg::ir::Graph& graph, uint64_t seed, bool any_layout) {
  const rg::NoGradGuard no_grad;
  return Run(graph, seed, any_layout).run();
}

}  // namespace graph_run
