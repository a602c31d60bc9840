// See units.h. Sharing of memory is derived from the ops, not from the tensors: a name is joined with those that it may
// be a view of.
#include "tests/conformance/units.h"

#include <algorithm>

#include "engine/emitter.h"
#include "tests/conformance/signature.h"

namespace retrograd::conformance {
namespace {

constexpr std::string_view kViews[] = {
    "reshape",      "view",         "flatten",    "transpose",  "permute",    "t",
    "expand",       "broadcast_to", "squeeze",    "unsqueeze",  "narrow",     "select",
    "slice",        "split",        "chunk",      "unbind",     "unfold",     "diagonal",
    "movedim",      "as_strided",   "getitem",    "detach",     "contiguous", "to",
    "ravel",        "view_as",      "reshape_as", "expand_as",  "swapaxes",   "unflatten",
    "tensor_split", "hsplit",       "vsplit",     "atleast_1d", "atleast_2d", "meshgrid"};

template <class F>
void for_each_name(const Json* names, const F& f) {
  if (names)
    for (const Json& name : *names)
      if (name.is_string()) f(name.get_ref<const std::string&>());
}

void add_new(std::vector<std::string>& list, const std::string& name) {
  if (!std::ranges::count(list, name)) list.push_back(name);
}

}  // namespace

Units::Units(const Json& program) {
  look_at(program);
  if (has_hooks_ && has_inputs_) find_sources(program);
}

void Units::look_at(const Json& statements) {
  for (const Json& s : statements) {
    if (const Json* body = find(s, "body")) look_at(*body);
    if (const Json* op = find(s, "op")) {
      const std::string& name = op->get_ref<const std::string&>();
      const Json& in = s["in"];
      if ((writes_to_first(name) || std::ranges::count(kViews, name)) && !in.empty() && in[0].is_string())
        for_each_name(find(s, "out"), [&](const std::string& out) { join(out, in[0]); });
      continue;
    }
    const std::string& name = s["do"].get_ref<const std::string&>();
    if (name == "tensor_hook" || name == "retain_grad") observed_.insert(s["var"]);
    has_hooks_ |= s.contains("var") || s.contains("vars");
    has_inputs_ |= s.contains("inputs");
    if (name == "node_pre_hook" || name == "node_post_hook") node_hooked_.insert(s["var"]);
    if (name == "multi_grad_hook")
      for_each_name(find(s, "vars"), [&](const std::string& v) { observed_.insert(v); });
    if (name == "grad" || name == "backward")
      for_each_name(find(s, "inputs"), [&](const std::string& v) { observed_.insert(v); });
  }
}

void Units::find_sources(const Json& statements) {
  for (const Json& s : statements) {
    if (const Json* body = find(s, "body")) find_sources(*body);
    if (!s.contains("op")) continue;
    std::set<std::string>& all = depends_on_[&s];
    for_each_name(find(s, "in"), [&](const std::string& name) {
      const auto it = sources_.find(group_of(name));
      if (it == sources_.end() || observed_.contains(name)) all.insert(name);
      if (it != sources_.end()) all.insert(it->second.begin(), it->second.end());
    });
    const auto add = [&](const std::string& name) {
      sources_[group_of(name)].insert(all.begin(), all.end());
    };
    for_each_name(find(s, "out"), add);
    if (writes_to_first(s["op"])) add(s["in"][0]);
  }
}

std::string Units::group_of(std::string name) const {
  for (auto it = parent_.find(name); it != parent_.end(); it = parent_.find(name)) name = it->second;
  return name;
}

void Units::join(const std::string& a, const std::string& b) {
  const std::string first = group_of(a), second = group_of(b);
  if (first != second) parent_[first] = second;
}

// Makes one of these tensors, or writes to memory that one of them may share.
bool Units::touches(const Json& call, const std::set<std::string>& names) const {
  bool found = false;
  for_each_name(find(call, "out"), [&](const std::string& out) { found |= names.contains(out); });
  if (const Json* body = find(call, "body"))
    return found || std::ranges::any_of(*body, [&](const Json& s) { return touches(s, names); });
  if (found || !writes_to_first(call["op"])) return found;
  const std::string written = group_of(call["in"][0]);
  return std::ranges::any_of(names, [&](const std::string& name) { return group_of(name) == written; });
}

bool may_be_in_unit(const Json& statement) {
  if (statement.contains("op")) return true;
  return statement["do"] == "checkpoint" && std::ranges::all_of(statement["body"], may_be_in_unit);
}

size_t Units::end_of(const Json& statements, size_t begin, size_t limit) const {
  for (size_t i = begin; i < limit; ++i) {
    if (!may_be_in_unit(statements[i]) || touches(statements[i], node_hooked_)) return i;
    if (!depends_on_.empty() && !statements[i].contains("op")) return i;
    if (!depends_on_.empty() && depends_on_.at(&statements[i]) != depends_on_.at(&statements[begin]))
      return i;
    if (touches(statements[i], observed_)) return i + 1;
  }
  return limit;
}

std::vector<std::string> names_bound(const Json& statements, size_t begin, size_t end) {
  std::vector<std::string> names;
  for (size_t i = begin; i < end; ++i)
    for_each_name(find(statements[i], "out"), [&](const std::string& name) { add_new(names, name); });
  return names;
}

std::vector<std::string> names_used(const Json& statements, size_t begin, size_t end) {
  std::vector<std::string> used, bound;
  for (size_t i = begin; i < end; ++i) {
    if (const Json* body = find(statements[i], "body"))
      for (const std::string& name : names_used(*body, 0, body->size()))
        if (!std::ranges::count(bound, name)) add_new(used, name);
    for_each_name(find(statements[i], "in"), [&](const std::string& name) {
      if (!std::ranges::count(bound, name)) add_new(used, name);
    });
    for_each_name(find(statements[i], "out"), [&](const std::string& name) { add_new(bound, name); });
  }
  return used;
}

void check_values(const std::string& op, const Tensors& in, const Json& attrs) {
  if (Emitter::current().values() != Emitter::Values::of_function) return;
  const std::string_view base = in_place_base(op).empty() ? std::string_view(op) : in_place_base(op);
  const auto has_mask = [&](size_t first) {
    return std::any_of(in.begin() + static_cast<std::ptrdiff_t>(std::min(first, in.size())), in.end(),
                       [](const Tensor& t) { return t.defined() && t.dtype() == kBool; });
  };
  const bool looks = base == "nonzero" || base == "argwhere" || base == "masked_select" ||
                     base == "masked_scatter" || base == "bincount" || base == "unique" ||
                     base == "unique_consecutive" ||
                     (base == "one_hot" && attrs.value("num_classes", -1) < 0) ||
                     (base == "repeat_interleave" && in.size() > 1) ||
                     ((base == "getitem" || base == "setitem_") && has_mask(1)) ||
                     (base == "index_put" && has_mask(2));
  if (looks) throw NeedsValues();
}

}  // namespace retrograd::conformance
