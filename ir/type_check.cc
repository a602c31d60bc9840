// See ir/type_check.h.
#include "ir/type_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "ir/input_text.h"

namespace retrograd::inline v0::ir {
namespace {

std::string counted(int n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string type_text(const TensorType& type) {
  return type.dtype == ScalarType::Undefined ? "none" : to_string(type);
}

// A bookkeeping op, a kind of input that it acts on, and its operands and results then (-1: any number).
struct Form {
  const OpInfo* op;
  Input::Kind kind;
  int operands, results;
};
constexpr Form kForms[] = {
    {&ops::unpack, Input::Kind::slot, 0, 1},
    {&ops::unpack, Input::Kind::code, 1, 1},
    {&ops::hook, Input::Kind::hook, -1, -1},
    {&ops::accumulate_grad, Input::Kind::leaf, 1, 0},
    {&ops::retain_grad, Input::Kind::box, 1, 0},
    {&ops::function_backward, Input::Kind::function, -1, -1},
    {&ops::function_backward, Input::Kind::code, -1, -1},
    {&ops::pack, Input::Kind::pair, -1, 0},
    {&ops::pack, Input::Kind::code, 1, 1},
    {&ops::function, Input::Kind::code, -1, -1},
    {&ops::post_accumulate, Input::Kind::code, -1, 1},
    {&ops::give_grad, Input::Kind::code, -1, 1},
    {&ops::write_out, Input::Kind::code, 2, 1},
    {&ops::begin_backward, Input::Kind::code, -1, 1},
    {&ops::end_backward, Input::Kind::code, 1, 1},
    {&ops::note_versions, Input::Kind::code, -1, 1},
    {&ops::check_version, Input::Kind::code, 1, 1},
};

std::string with_article(Input::Kind kind) {
  return (kind == Input::Kind::code ? "" : "a ") + std::string(text_of(kind).word);
}

// "a slot or code": what the op acts on.
std::string kinds_of(const OpInfo* op) {
  std::string kinds;
  for (const Form& form : kForms)
    if (form.op == op) kinds += (kinds.empty() ? "" : " or ") + with_article(form.kind);
  return kinds;
}

const Form* find_form(const OpInfo* op, Input::Kind kind) {
  const Form* form =
      std::ranges::find_if(kForms, [&](const Form& f) { return f.op == op && f.kind == kind; });
  return form == std::end(kForms) ? nullptr : form;
}

// Why no form of the node's op fits what it acts on; `input` is null where it names no input.
std::string form_missing(const Node& node, const Input* input) {
  const std::string_view op = node.op->name;
  const std::string kinds = kinds_of(node.op);
  if (kinds.empty()) return fmt::format("{} is a bookkeeping op that graphs do not have", op);
  if (!input) return fmt::format("{} acts on {}, and none is named", op, kinds);
  return fmt::format("{} acts on {}, not on {}", op, kinds, with_article(input->kind));
}

std::string wrong_type(std::string_view what, int i, std::string_view op, const TensorType& expected,
                       const TensorType& found) {
  return fmt::format("expected type {} for {} {} of {}, not {}", type_text(expected), what, i, op,
                     type_text(found));
}

// The same as same_type, without a copy of the cell's type.
bool has_type(const TensorImpl& cell, const TensorType& type) {
  return cell.dtype() == type.dtype && cell.device() == type.device && cell.rank() == type.shape.rank() &&
         std::equal(cell.shape().begin(), cell.shape().end(), type.shape.begin(),
                    [](Dim a, Dim b) { return a.raw() == b.raw(); });
}

}  // namespace

TypeChecker::TypeChecker(const Graph& graph) : graph_(graph) {}

TensorImpl* TypeChecker::cell(ValueId value) {
  if (value == kNoValue) return nullptr;
  const auto index = static_cast<size_t>(graph_.type_index(value));
  while (cells_.size() <= index) {
    const TensorType& type = graph_.types()[cells_.size()];
    cells_.push_back(TensorImpl::make());
    cells_.back()->set_type(type.dtype, type.device, type.shape);
  }
  return cells_[index].get();
}

std::string TypeChecker::problem(const Node& node) {
  std::string text = form_problem(node);
  if (!text.empty()) return text;
  return node.op->is(Trait::bookkeeping) ? handle_problem(node) : rule_problem(node);
}

// Checks that hold for any op.
std::string TypeChecker::form_problem(const Node& node) const {
  const OpInfo& op = *node.op;
  if (op.arity >= 0 ? node.operands != op.arity : node.operands == 0 && !op.is(Trait::bookkeeping))
    return fmt::format("{} takes {}, not {}", op.name,
                       op.arity >= 0 ? counted(op.arity, "operand") : "at least one operand", node.operands);
  if (op.outputs >= 0 ? node.results != op.outputs : node.results == 0 && !op.is(Trait::bookkeeping))
    return fmt::format("{} gives {}, not {}", op.name,
                       op.outputs >= 0 ? counted(op.outputs, "result") : "at least one result", node.results);
  const auto operands = graph_.operands(node);
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool may_be_missing = op.is(Trait::bookkeeping) || (i < 8 && op.optional >> i & 1);
    if (operands[i] == kNoValue && !may_be_missing)
      return fmt::format("operand {} of {} is missing", i, op.name);
    if (operands[i] != kNoValue && graph_.type(operands[i]).dtype == ScalarType::Undefined)
      return fmt::format("operand {} of {} is a result that does not exist", i, op.name);
  }
  if (op.attrs_size && !node.attrs) return fmt::format("{} has no attributes", op.name);
  if (!op.is(Trait::bookkeeping) && node.handle >= 0) return fmt::format("{} acts on no input", op.name);
  if (!op.is(Trait::bookkeeping) && !op.infer && (operands.empty() || operands[0] == kNoValue))
    return fmt::format("{} has no type rule, and no operand whose type its result could have", op.name);
  return {};
}

// Bookkeeping ops have no type rules: their conditions are checked here.
std::string TypeChecker::handle_problem(const Node& node) const {
  const bool named = node.handle >= 0 && static_cast<size_t>(node.handle) < graph_.inputs().size();
  const Input* const acted_on = named ? &graph_.inputs()[static_cast<size_t>(node.handle)] : nullptr;
  const Form* const form = named ? find_form(node.op, acted_on->kind) : nullptr;
  if (!form) return form_missing(node, acted_on);
  const std::string_view op = node.op->name;
  const Input& input = *acted_on;
  if (form->operands >= 0 && node.operands != form->operands)
    return fmt::format("{} takes {}, not {}", op, counted(form->operands, "operand"), node.operands);
  if (form->results >= 0 && node.results != form->results)
    return fmt::format("{} gives {}, not {}", op, counted(form->results, "result"), node.results);

  const auto operands = graph_.operands(node);
  const auto type_of = [&](ValueId v) { return v == kNoValue ? TensorType{} : graph_.type(v); };
  if (input.kind == Input::Kind::slot && !same_type(graph_.type(input), graph_.type(node.first_result)))
    return wrong_type("result", 0, op, graph_.type(input), graph_.type(node.first_result));
  if ((input.kind == Input::Kind::leaf || input.kind == Input::Kind::box) &&
      !same_type(graph_.type(input), type_of(operands[0])))
    return wrong_type("operand", 0, op, graph_.type(input), type_of(operands[0]));
  if (input.kind != Input::Kind::hook) return {};
  if (node.results > node.operands)
    return fmt::format("{} gives at most as many results as it has operands", op);
  for (int i = 0; i < node.results; ++i) {
    const TensorType expected = type_of(operands[static_cast<size_t>(i)]);
    if (!same_type(expected, graph_.type(node.first_result + i)))
      return wrong_type("result", i, op, expected, graph_.type(node.first_result + i));
  }
  return {};
}

namespace {

// Symbols are above 1; so are sums and products of them and of positive constants.
bool is_above_one(const SymbolTable& table, int32_t id) {
  constexpr size_t kMost = 64;  // expressions looked at: a sum may be long
  std::vector<int32_t> parts{id};
  for (size_t i = 0; i < parts.size(); ++i) {
    const SymbolTable::Expr& e = table.expr(parts[i]);
    if (e.op == Arith::symbol || (e.op == Arith::constant && e.hint.i > 0)) continue;
    if ((e.op != Arith::add && e.op != Arith::mul) || parts.size() > kMost) return false;
    parts.push_back(e.lhs);
    parts.push_back(e.rhs);
  }
  return true;
}

// Another size, a difference or a quotient, might become 0 or 1: then the graph does not serve.
void note_above_one(Dim size) {
  if (!is_above_one(SymbolTable::require(), size.id())) static_cast<void>(size > 1);
}

}  // namespace

void infer_types(const Call& call, TensorImpl* const* results) {
  check_devices(call);
  if (call.op->infer)
    call.op->infer(call, results);
  else
    results[0]->set_type(call.operands[0]->dtype(), call.operands[0]->device(), call.operands[0]->shape());
  for (int i = 0; i < call.outputs; ++i) {
    Shape shape = results[i]->shape();
    bool changed = false;
    for (int d = 0; d < shape.rank(); ++d) {
      if (!shape[d].is_symbolic()) continue;
      if (shape[d].hint() > 1) {
        note_above_one(shape[d]);
        continue;
      }
      const Dim number = shape[d].hint();
      if (!(shape[d] == number)) continue;  // adds the guard
      shape[d] = number;
      changed = true;
    }
    if (changed) results[i]->set_type(results[i]->dtype(), results[i]->device(), shape);
  }
}

std::string TypeChecker::rule_problem(const Node& node) {
  const OpInfo& op = *node.op;
  if (node.results > kMaxOutputs && !op.is(Trait::host))
    return fmt::format("{} gives {} results, an op has at most {}", op.name, node.results, kMaxOutputs);
  operands_.clear();
  for (ValueId v : graph_.operands(node)) operands_.push_back(cell(v));
  while (results_.size() < node.results)
    result_cells_.push_back(results_.emplace_back(TensorImpl::make()).get());
  for (TensorImpl* result : result_cells_) result->set_dtype(ScalarType::Undefined, {});
  TensorImpl* const* results = result_cells_.data();
  try {
    infer_types({&op, operands_, node.attrs, node.where, node.results}, results);
  } catch (const Error& e) {
    return e.what();
  } catch (const InternalError& e) {
    return e.what();
  }
  for (int i = 0; i < node.results; ++i) {
    const TensorType& found = graph_.type(node.first_result + i);
    if (!has_type(*results[i], found)) return wrong_type("result", i, op.name, results[i]->type(), found);
  }
  return {};
}

}  // namespace retrograd::ir
