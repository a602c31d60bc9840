// Printing graphs: text and Graphviz. The grammar is in docs/ir.md.
#include <fmt/format.h>

#include "ir/input_text.h"
#include "ir/text.h"

namespace retrograd::inline v0::ir {
namespace {

// {dim=[0,1], keepdim=true, size=[s0,64]}; the number that stands for an operand is printed in its place instead.
class AttrPrinter final : public AttrVisitor {
 public:
  explicit AttrPrinter(bool skip_scalar) : skip_scalar_(skip_scalar) {}
  std::string text;
  Scalar scalar;
  void field(std::string_view name, bool& v) override { add(name, v ? "true" : "false"); }
  void field(std::string_view name, int64_t& v) override { add(name, std::to_string(v)); }
  void field(std::string_view name, Dim& v) override { add(name, to_string(v)); }
  void field(std::string_view name, Scalar& v) override {
    if (skip_scalar_ && name == "scalar")
      scalar = v;
    else
      add(name, to_string(v));
  }
  void field(std::string_view name, Shape& v) override { add(name, to_string(v)); }
  void field(std::string_view name, IntList& v) override {
    std::string list;
    for (int64_t i : v) list += (list.empty() ? "" : ",") + std::to_string(i);
    add(name, "[" + list + "]");
  }
  void field(std::string_view name, ScalarType& v) override { add(name, short_name(v)); }
  void field(std::string_view name, Device& v) override {
    if (!(v == kCPU)) add(name, to_string(v));
  }

 private:
  void add(std::string_view name, std::string_view value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  }
  bool skip_scalar_;
};

// A tensor is a value and has a number like all values.
std::string input_text(const Graph& graph, const Input& input) {
  const std::string type = to_string(graph.type(input));
  if (input.kind == Input::Kind::tensor) return fmt::format("%{}: {}", graph.number_of(input.value), type);
  const InputText& text = text_of(input.kind);
  return fmt::format("{}{}: {}{}{}", text.sigil, graph.name_of(input), text.word, text.has_type ? " " : "",
                     text.has_type ? type : "");
}

std::string note_text(const Graph& graph, const Node& node) {
  std::string note;
  if (node.origin >= 0) {
    const Origin& o = graph.origin(node.origin);
    note = fmt::format("{}#{} {}", o.op, o.ordinal, o.part);
  }
  if (node.where) note += (note.empty() ? "" : ", ") + to_string(node.where);
  return note;
}

std::string header_text(const Graph& graph) {
  std::string text = fmt::format("graph @{}", graph.name);
  std::string list;
  for (int32_t id = 0; id < graph.symbols.size(); ++id) {
    const SymbolTable::Expr& e = graph.symbols.expr(id);
    if (e.op == Arith::symbol)
      list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", graph.symbols.text(id),
                          to_string(Scalar(e.hint)));
  }
  for (const SymbolTable::Guard& g : graph.symbols.guards()) list += "; " + graph.symbols.text(g);
  if (!list.empty()) text += "[" + list + "]";
  text += "(";
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    text += (i ? ", " : "") + input_text(graph, graph.inputs()[i]);
  return text + ") {\n";
}

}  // namespace

std::string attrs_text(const OpInfo& op, const void* attrs) {
  AttrPrinter printer(false);
  if (attrs && op.visit_attrs) op.visit_attrs(const_cast<void*>(attrs), printer);
  return printer.text;
}

std::string to_string(const Graph& graph, const Node& node) {
  std::string text;
  for (int i = 0; i < node.results; ++i) text += fmt::format("{}%{}", i ? ", " : "", graph.number_of(node.first_result + i));
  if (node.results) text += " = ";
  text += node.op->name;
  AttrPrinter attrs(node.op->has_scalar_operand);
  if (node.attrs && node.op->visit_attrs) node.op->visit_attrs(node.attrs, attrs);
  const char* separator = " ";
  if (node.handle >= 0) {
    const Input& input = graph.inputs()[static_cast<size_t>(node.handle)];
    text += fmt::format("{}{}{}", separator, text_of(input.kind).sigil, graph.name_of(input));
    separator = ", ";
  }
  for (ValueId v : graph.operands(node)) {
    text += separator;
    separator = ", ";
    if (v != kNoValue)
      text += fmt::format("%{}", graph.number_of(v));
    else
      text += node.op->has_scalar_operand ? to_string(attrs.scalar) : "none";
  }
  if (!attrs.text.empty()) text += fmt::format(" {{{}}}", attrs.text);
  for (int i = 0; i < node.results; ++i) {
    const TensorType& type = graph.type(node.first_result + i);
    text +=
        fmt::format("{}{}", i ? ", " : " : ", type.dtype == ScalarType::Undefined ? "none" : to_string(type));
  }
  return text;
}

std::string Graph::print() const {
  SymbolTable::Scope scope(const_cast<SymbolTable*>(&symbols));
  std::string text = header_text(*this);
  int32_t group = -1;
  for (const Node& node : nodes_) {
    if (node.group != group) text += fmt::format("{}{}", group < 0 ? "" : "  }\n", node.group < 0 ? "" : "  group {\n");
    group = node.group;
    std::string line = (group < 0 ? "  " : "    ") + to_string(*this, node);
    const std::string note = note_text(*this, node);
    text += note.empty() ? line + "\n" : fmt::format("{:<60}  // {}\n", line, note);
  }
  if (group >= 0) text += "  }\n";
  if (!outputs_.empty()) {
    text += "  return";
    for (size_t i = 0; i < outputs_.size(); ++i)
      text += fmt::format("{}{}", i ? ", " : " ",
                          outputs_[i] == kNoValue ? "none" : fmt::format("%{}", number_of(outputs_[i])));
    text += "\n";
  }
  return text + "}\n";
}

std::string Graph::dot() const {
  SymbolTable::Scope scope(const_cast<SymbolTable*>(&symbols));
  std::string text = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=monospace];\n", name);
  std::vector<std::string> producer(static_cast<size_t>(value_count()));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    text += fmt::format("  i{} [label=\"{}\", style=rounded];\n", i, input_text(*this, inputs_[i]));
    if (inputs_[i].value != kNoValue) producer[static_cast<size_t>(inputs_[i].value)] = fmt::format("i{}", i);
  }
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    const bool effect = node.op->is(Trait::effect);
    text += fmt::format("  n{} [label=\"{}\\n{}\"{}];\n", n, to_string(*this, node), note_text(*this, node),
                        effect ? ", style=filled" : "");
    if (node.handle >= 0) text += fmt::format("  i{} -> n{} [style=dashed];\n", node.handle, n);
    for (ValueId v : operands(node))
      if (v != kNoValue) text += fmt::format("  {} -> n{};\n", producer[static_cast<size_t>(v)], n);
    for (int i = 0; i < node.results; ++i)
      producer[static_cast<size_t>(node.first_result + i)] = fmt::format("n{}", n);
  }
  for (size_t n = 0; n < nodes_.size(); ++n)
    if (nodes_[n].group >= 0) text += fmt::format("  subgraph cluster_{} {{ n{}; }}\n", nodes_[n].group, n);
  return text + "}\n";
}

}  // namespace retrograd::ir
