// See optim/in_backward.h; start reading at Data::arrived.
#include "optim/in_backward.h"

#include <utility>

#include <fmt/format.h>

#include "engine/autograd.h"
#include "ops/total_norm.h"
#include "optim/param_state.h"

namespace retrograd::inline v0::optim {
namespace {

struct Member {
  std::unique_ptr<RuleOptimizer> optimizer;
  Tensor param;
  HookHandle hook;
};

// The first member's options are those of the group.
struct Group {
  const detail::RuleInfo* rule;
  void (*copy)(void* to, const void* from);
  Tensors params;
  size_t first;                // of its members
  std::vector<void*> options;  // of each member

  static void visit(void* group, detail::OptionVisitor& visitor) {
    const Group& g = *static_cast<Group*>(group);
    g.rule->visit(g.options[0], visitor);
    for (void* options : std::span(g.options).subspan(1)) g.copy(options, g.options[0]);
  }
};

// A backward with max_norm: first without the norm.
struct Pass {
  Tensors norms;  // of each gradient
  const GradNorm* norm = nullptr;
};

// The entries "<from>.*" of a dictionary, as "<to>.*".
void move_part(detail::SavedValues& saved, const std::string& from, std::string_view to, StateDict& out) {
  for (const auto& [key, value] : saved.part(from)) out.emplace(fmt::format("{}.{}", to, key), value);
}

constexpr std::string_view kGroupOfOne = "param_groups.0";

}  // namespace

struct InBackward::Data {
  const detail::RuleInfo& rule;
  const CopyOptions copy;
  const InBackwardOptions options;
  const SourceLocation where;
  std::vector<Group> groups = {};
  std::vector<Member> members = {};
  Pass* pass = nullptr;

  ~Data() {
    for (Member& m : members) m.hook.remove();
  }

  // The gradient of a parameter is complete.
  void arrived(size_t i) {
    const Tensor& param = members[i].param;
    if (pass && !pass->norm) {
      pass->norms[i] = total_norm({param.grad()}, options.norm_type, false, where);
      return param.set_grad({}, where);
    }
    if (options.max_norm && !pass) {
      param.set_grad({}, where);
      fail(Category::bad_argument, rule.name,
           "clipping by the norm of all gradients, in an optimizer in the backward, takes two passes. Hint: "
           "optimizer.backward(loss) in place of loss.backward()",
           where);
    }
    update(i, pass ? pass->norm : nullptr);
  }

  void update(size_t i, const GradNorm* norm) {
    const Member& m = members[i];
    if (norm) clip_grads_with_norm_({m.param}, *options.max_norm, *norm, where);
    m.optimizer->step(where);
    m.param.set_grad({}, where);
  }

  GradNorm norm_of(const Tensors& all) const {
    Tensors defined;
    for (const Tensor& t : all)
      if (t.defined()) defined.push_back(t);
    return defined.empty() ? GradNorm(0) : get_total_norm(defined, options.norm_type, false, where);
  }
};

InBackward::InBackward(const detail::RuleInfo& rule, CopyOptions copy, const InBackwardOptions& options,
                       SourceLocation where)
    : data_(new Data{rule, copy, options, where}) {
  if (options.max_norm) check_clipping(rule.name, *options.max_norm, options.norm_type, where);
}

InBackward::~InBackward() = default;
InBackward::InBackward(InBackward&&) noexcept = default;
InBackward& InBackward::operator=(InBackward&&) noexcept = default;

void InBackward::add_group(const Tensors& params, bool differentiable) {
  Data& data = *data_;
  if (params.empty() || differentiable)
    fail(Category::bad_argument, data.rule.name,
         params.empty() ? "a group of an optimizer in the backward has no parameters"
                        : "an optimizer in the backward makes no differentiable steps",
         data.where);
  Tensors all = parameters();
  all.insert(all.end(), params.begin(), params.end());
  detail::check_params(all, data.rule.name, data.where);
  data.groups.push_back({&data.rule, data.copy, params, data.members.size(), {}});
}

void InBackward::add(std::unique_ptr<RuleOptimizer> optimizer, const Tensor& param, void* options) {
  Data* const data = data_.get();
  data->groups.back().options.push_back(options);
  data->members.push_back({std::move(optimizer), param, {}});
  const auto arrived = [data, i = data->members.size() - 1](const Tensor&) { data->arrived(i); };
  HookHandle& hook = data->members.back().hook;
  hook = param.register_post_accumulate_grad_hook(arrived, data->where);
  hook.set_traceable().set_takes_grad();
}

RuleOptimizer& InBackward::optimizer_of(size_t parameter) const {
  return *data_->members.at(parameter).optimizer;
}

size_t InBackward::group_count() const { return data_->groups.size(); }

OptimizerParamGroup InBackward::param_group(size_t index) {
  Data& data = *data_;
  if (index >= data.groups.size())
    fail(Category::bad_argument, data.rule.name, fmt::format("there is no parameter group {}", index), {});
  Group& group = data.groups[index];
  std::optional<double>& initial_lr = optimizer_of(group.first).param_group(0).initial_lr();
  return {data.rule.name, group.params, initial_lr, &group, Group::visit};
}

Tensors InBackward::parameters() const {
  Tensors all;
  for (const Member& m : data_->members) all.push_back(m.param);
  return all;
}

void InBackward::step(SourceLocation) {
  Data& data = *data_;
  Tensors grads;
  for (const Member& m : data.members) grads.push_back(m.param.grad());
  std::optional<GradNorm> norm;
  if (data.options.max_norm) norm = data.norm_of(grads);
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined()) data.update(i, norm ? &*norm : nullptr);
}

std::optional<GradNorm> InBackward::backward(const Tensor& loss, const Tensor& gradient,
                                             SourceLocation where) {
  Data& data = *data_;
  if (!data.options.max_norm) {
    loss.backward(gradient, {}, false, where);
    return {};
  }
  Tensors trained;
  for (const Member& m : data.members) {
    if (m.param.requires_grad()) trained.push_back(m.param);
    if (m.param.grad().defined())
      fail(Category::bad_argument, data.rule.name,
           fmt::format(
               "{} has a gradient before the backward, which would count in the first of its two passes "
               "only. Hint: zero_grad()",
               describe(m.param)),
           where);
  }
  Pass pass{Tensors(data.members.size())};
  struct Scope {
    Scope(Data& data, Pass& pass) : data(data) { data.pass = &pass; }
    ~Scope() { data.pass = nullptr; }
    Data& data;
  } scope(data, pass);
  autograd::backward({loss}, {gradient}, /*retain_graph=*/true, false, trained, where);
  const GradNorm norm = data.norm_of(pass.norms);
  pass.norm = &norm;
  loss.backward(gradient, {}, false, where);
  return norm;
}

StateDict InBackward::state_dict() const {
  StateDict out;
  const Data& data = *data_;
  for (size_t g = 0; g < data.groups.size(); ++g)
    for (size_t k = 0; k < data.groups[g].params.size(); ++k) {
      const size_t i = data.groups[g].first + k;
      detail::SavedValues saved(optimizer_of(i).state_dict(), data.rule.name, data.where);
      move_part(saved, "0", std::to_string(i), out);
      if (k == 0) move_part(saved, std::string(kGroupOfOne), fmt::format("param_groups.{}", g), out);
    }
  return out;
}

// Copies of the optimizers take the states first: nothing changes before all have been found to fit.
void InBackward::load_state_dict(const StateDict& state, SourceLocation where) {
  const Data& data = *data_;
  detail::SavedValues saved(state, "this optimizer", where);
  std::vector<StateDict> parts(data.members.size());
  for (size_t g = 0; g < data.groups.size(); ++g) {
    StateDict options;
    move_part(saved, fmt::format("param_groups.{}", g), kGroupOfOne, options);
    for (size_t k = 0; k < data.groups[g].params.size(); ++k) {
      const size_t i = data.groups[g].first + k;
      parts[i] = options;
      move_part(saved, std::to_string(i), "0", parts[i]);
    }
  }
  saved.end();
  for (size_t i = 0; i < parts.size(); ++i) RuleOptimizer(optimizer_of(i)).load_state_dict(parts[i], where);
  for (size_t i = 0; i < parts.size(); ++i) optimizer_of(i).load_state_dict(parts[i], where);
}

}  // namespace retrograd::optim
