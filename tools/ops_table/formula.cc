// See formula.h.
#include "tools/ops_table/formula.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "engine/autograd.h"
#include "engine/runner.h"
#include "engine/taper.h"
#include "ir/text.h"
#include "ops/creation.h"
#include "tracer/plan/null_executor.h"
#include "tracer/backward/recorder.h"

namespace ops_table {
namespace {

namespace ir = rg::ir;

constexpr size_t kLongest = 150;  // of a formula; a longer one is replaced by the list of its ops

/// The fields of an op's attributes as text, sizes left out.
class Fields final : public rg::AttrVisitor {
 public:
  std::vector<std::pair<std::string, std::string>> all;
  void field(std::string_view name, bool& v) override { add(name, v ? "true" : "false"); }
  void field(std::string_view name, int64_t& v) override { add(name, std::to_string(v)); }
  void field(std::string_view, rg::Dim&) override {}
  void field(std::string_view name, rg::Scalar& v) override { add(name, rg::to_string(v)); }
  void field(std::string_view, rg::Shape&) override {}
  void field(std::string_view name, rg::IntList& v) override {
    std::string list;
    for (const int64_t i : v) list += fmt::format("{}{}", list.empty() ? "" : ",", i);
    add(name, "[" + list + "]");
  }
  void field(std::string_view name, rg::ScalarType& v) override { add(name, std::string(rg::short_name(v))); }
  void field(std::string_view name, rg::Device& v) override {
    if (!(v == rg::kCPU)) add(name, rg::to_string(v));
  }

 private:
  void add(std::string_view name, std::string value) { all.emplace_back(name, std::move(value)); }
};

std::vector<std::pair<std::string, std::string>> fields_of(const rg::OpInfo& op, const void* attrs) {
  Fields fields;
  if (op.visit_attrs) op.visit_attrs(const_cast<void*>(attrs), fields);
  return fields.all;
}

/// The name of the number at this byte offset in the attributes.
class NumberAt final : public rg::AttrVisitor {
 public:
  NumberAt(const void* attrs, uint32_t offset) : wanted_(static_cast<const char*>(attrs) + offset) {}
  std::string found;
  void field(std::string_view, bool&) override {}
  void field(std::string_view, int64_t&) override {}
  void field(std::string_view name, rg::Dim& v) override { look(name, &v); }
  void field(std::string_view name, rg::Scalar& v) override { look(name, &v); }
  void field(std::string_view, rg::Shape&) override {}
  void field(std::string_view, rg::IntList&) override {}
  void field(std::string_view, rg::ScalarType&) override {}
  void field(std::string_view, rg::Device&) override {}

 private:
  void look(std::string_view name, const void* at) {
    if (at == wanted_) found = name;
  }
  const void* wanted_;
};

/// A recorded rule, as text.
class Writer {
 public:
  Writer(const Sample& sample, const rg::Record& record, const ir::Graph& graph, const rg::Recorder& recorder)
      : sample_(sample), graph_(graph), own_(fields_of(sample.op(), record.attrs())) {
    for (const rg::SymbolUse& use : recorder.uses) name_symbol(record, use);
    for (size_t i = 0; i < graph.inputs().size(); ++i)
      if (graph.inputs()[i].value != ir::kNoValue)
        values_[graph.inputs()[i].value] = input_name(recorder.sources[i]);
    for (const ir::Node& node : graph.nodes()) {
      if (node.handle >= 0)
        values_[node.first_result] = slot_name(record, recorder.sources[static_cast<size_t>(node.handle)]);
      for (int i = 0; i < node.results; ++i) producers_[node.first_result + i] = &node;
    }
  }

  std::string formula(ir::ValueId value) {
    std::string text = expression(value, false);
    return text.size() <= kLongest ? text : "made of " + ops_behind(value);
  }

 private:
  std::string grad_name(uint32_t i) const {
    return sample_.results() == 1 ? "grad" : fmt::format("grad{}", i);
  }
  std::string input_name(const rg::Source& source) const {
    return source.kind == rg::Source::Kind::root ? grad_name(source.place) : "constant";
  }
  std::string slot_name(const rg::Record& record, const rg::Source& source) const {
    const rg::Slot& slot = record.slot(static_cast<int>(source.index));
    if (!slot.is_result) return sample_.name(slot.index);
    return sample_.results() == 1 ? "result" : fmt::format("result{}", slot.index);
  }

  void name_symbol(const rg::Record& record, const rg::SymbolUse& use) {
    using Kind = rg::SymbolUse::Kind;
    const int32_t id = use.kind == Kind::attr_number ? use.number
                       : use.size.is_symbolic()      ? use.size.id()
                                                     : -1;
    if (id < 0) return;
    std::string name;
    if (use.kind == Kind::type_dim) {
      const int i = static_cast<int>(use.index);
      name = fmt::format("{}.size({})", i < sample_.operands() ? sample_.name(i) : "result", use.dim);
    } else if (use.kind == Kind::root_dim) {
      name = fmt::format("{}.size({})", grad_name(use.place), use.dim);
    } else {
      NumberAt number(record.attrs(), use.index);
      sample_.op().visit_attrs(record.attrs(), number);
      name = number.found;
    }
    if (!name.empty()) symbols_.try_emplace(graph_.symbols.text(id), name);
  }

  // Symbols by the names of what they represent.
  std::string named(const std::string& text) const {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      size_t end = i;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
        ++end;
      const std::string word = text.substr(i, std::max(end - i, size_t{1}));
      const auto it = symbols_.find(word);
      out += it == symbols_.end() ? word : it->second;
      i += word.size();
    }
    return out;
  }

  std::string operand(const ir::Node& node, ir::ValueId value, bool inner) {
    if (value != ir::kNoValue) return expression(value, inner);
    for (const auto& [name, text] : fields_of(*node.op, node.attrs))
      if (name == "scalar" && node.op->has_scalar_operand) return named(text);
    return "none";
  }

  bool is_view(ir::ValueId value) const {
    const auto it = producers_.find(value);
    if (it == producers_.end()) return false;
    const ir::Node& node = *it->second;
    return node.op->name == "view" || (node.op->name == "contiguous" && is_view(graph_.operands(node)[0]));
  }

  std::string constant(const ir::Node& node) const {
    for (const auto& [name, text] : fields_of(*node.op, node.attrs))
      if (name == "value") return text == "0.0" ? "0" : named(text);
    return {};
  }

  std::string expression(ir::ValueId value, bool inner) {
    if (const auto it = values_.find(value); it != values_.end()) return it->second;
    const ir::Node& node = *producers_.at(value);
    const auto operands = graph_.operands(node);
    const std::string_view op = node.op->name;
    if (op == "contiguous") return expression(operands[0], inner);
    if (op == "full") return constant(node);
    if (op == "view" && is_view(operands[0])) return expression(operands[0], inner);  // one view is enough
    static const std::map<std::string_view, std::string_view> signs = {
        {"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"div", "/"}, {"accumulate", "+"}};
    std::string text;
    if (const auto sign = signs.find(op); sign != signs.end())
      text = fmt::format("{} {} {}", operand(node, operands[0], true), sign->second,
                         operand(node, operands[1], true));
    else if (op == "neg")
      text = "-" + operand(node, operands[0], true);
    else
      return call(node, value);
    return inner ? "(" + text + ")" : text;
  }

  std::string call(const ir::Node& node, ir::ValueId value) {
    std::string text;
    for (const ir::ValueId v : graph_.operands(node))
      text += (text.empty() ? "" : ", ") + operand(node, v, false);
    for (const auto& [name, raw] : fields_of(*node.op, node.attrs)) {
      const std::string field = named(raw);
      const bool own = field == name || std::ranges::find(own_, std::pair(name, field)) != own_.end();
      const bool is_operand = name == "scalar" && node.op->has_scalar_operand;
      if (!own && !is_operand && field != "false")
        text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, field);
    }
    text = fmt::format("{}({})", node.op->name, text);
    return node.results == 1 ? text : fmt::format("{}[{}]", text, value - node.first_result);
  }

  // Names of the ops that a value is computed with, in the order in which they run.
  std::string ops_behind(ir::ValueId value) const {
    std::vector<ir::ValueId> todo{value};
    std::map<const ir::Node*, bool> seen;
    while (!todo.empty()) {
      const auto it = producers_.find(todo.back());
      todo.pop_back();
      if (it == producers_.end() || it->second->handle >= 0 || std::exchange(seen[it->second], true))
        continue;
      for (const ir::ValueId v : graph_.operands(*it->second)) todo.push_back(v);
    }
    std::vector<std::string_view> names;
    for (const ir::Node& node : graph_.nodes())
      if (seen.contains(&node) && std::ranges::find(names, node.op->name) == names.end())
        names.push_back(node.op->name);
    return fmt::format("{}", fmt::join(names, ", "));
  }

  const Sample& sample_;
  const ir::Graph& graph_;
  std::vector<std::pair<std::string, std::string>> own_;
  std::map<std::string, std::string> symbols_;
  std::map<ir::ValueId, std::string> values_;
  std::map<ir::ValueId, const ir::Node*> producers_;
};

}  // namespace

Rule rule_of(const Sample& sample) {
  rg::NullExecutor executor;
  rg::Runner runner(executor);
  rg::Taper taper(runner);
  const rg::Emitter::Scope scope(taper);

  rg::BackwardRequest request;
  request.to_inputs = true;
  request.accumulate = false;
  request.retain_graph = true;
  const rg::Tensors operands = sample.make(sample.dtypes());
  std::vector<int> wanted;
  for (int i = 0; i < sample.operands(); ++i) {
    const rg::Tensor& x = operands[static_cast<size_t>(i)];
    if (!x.defined() || !x.is_floating_point()) continue;
    x.requires_grad_();
    request.input_edges.push_back(rg::gradient_edge(x.impl()));
    wanted.push_back(i);
  }
  for (const rg::Tensor& y : sample.emit(operands, sample.dtype())) {
    if (!y.requires_grad()) continue;
    request.roots.push_back(y);
    request.root_edges.push_back(rg::gradient_edge(y.impl()));
  }

  Rule rule;
  rg::Walk walk = request.walk();
  const rg::Record& record = *walk.order()[0].record;
  ir::Graph graph;
  rg::Recorder recorder(graph, walk);
  for (size_t i = 0; i < request.roots.size(); ++i)
    request.cotangents.push_back(recorder.root(static_cast<uint32_t>(i), request.roots[i].impl().type()));
  rg::AutoGradMode off(false);
  const rg::Tensors gradients = rg::record_backward(request, walk, recorder, &recorder);
  Writer writer(sample, record, graph, recorder);
  for (size_t i = 0; i < wanted.size(); ++i)
    rule.formulas.emplace_back(sample.name(wanted[i]), gradients[i].defined()
                                                           ? writer.formula(recorder.value_of(gradients[i]))
                                                           : "none");
  for (int i = 0; i < sample.operands(); ++i)
    if (record.slot_of_operand(i) >= 0) rule.saved.push_back(sample.name(i));
  for (int i = 0; i < sample.results(); ++i)
    if (record.slot_of_result(i) >= 0)
      rule.saved.push_back(sample.results() == 1 ? "result" : fmt::format("result{}", i));
  return rule;
}

}  // namespace ops_table
