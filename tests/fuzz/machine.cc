// Running steps; see machine.h. Hooks and pairs are in machine_hooks.cc.
#include "tests/fuzz/machine.h"

#include <fmt/format.h>

#include "engine/driver.h"
#include "engine/inplace.h"
#include "ops/all_ops.h"

namespace fuzz {
namespace {

template <class T>
const T& first(const std::vector<T>& list) {
  if (list.empty()) throw MissingArgument();
  return list[0];
}

}  // namespace

/// The scopes that are open between the steps `open` and `close`.
struct Machine::Region {
  std::optional<rg::AutoGradMode> mode;
  std::optional<rg::SavedTensorHooksGuard> pair;
  std::optional<rg::AllowMutationOnSavedTensors> mutation;
};

Machine::Machine(const Program& program, bool values, Coverage* coverage)
    : program_(program), show_values_(values), coverage_(coverage) {
  rg::manual_seed(program.seed);
}

Machine::~Machine() {
  while (!regions_.empty()) regions_.pop_back();  // the innermost first
  // A backward with create_graph leaves leaf and graph holding each other.
  for (const auto& [ref, t] : values_) t.set_grad({});
  for (const Tensor& t : dropped_) t.set_grad({});
}

void Machine::run() {
  for (const Step& step : program_.steps) run(step);
  end();
}

bool Machine::run(const Step& step) {
  Tensors operands;
  for (const Ref ref : step.operands) {
    const Tensor* t = step.kind == Kind::remove_hook ? nullptr : find(ref);
    if (!t && step.kind != Kind::remove_hook) {
      log(fmt::format("v{} passes", step.id));
      return false;
    }
    operands.push_back(t ? *t : Tensor());
  }
  try {
    execute(step, operands);
    if (coverage_) {
      ++coverage_->steps[fmt::format("{} {}", to_string(step.kind), step.name)];
      for (const std::string_view word : step.words)
        ++coverage_->steps[fmt::format("{}: {}", to_string(step.kind), word)];
    }
    return true;
  } catch (const rg::Error& e) {
    log(fmt::format("v{} error {}{}", step.id, rg::to_string(e.category()),
                    show_values_ ? std::string(": ") + e.what() : ""));
    if (coverage_) ++coverage_->categories[std::string(rg::to_string(e.category()))];
  } catch (const HookFailure& e) {
    log(fmt::format("v{} stopped by hook {}", step.id, e.id));
  } catch (const MissingArgument&) {
    log(fmt::format("v{} lacks an argument", step.id));
  } catch (const std::exception& e) {
    log(fmt::format("v{} broken: {}", step.id, e.what()));
    broken_ = true;
  }
  if (coverage_) ++coverage_->errors;
  if (step.kind == Kind::backward || step.kind == Kind::grad) log_gradients(step);
  return false;
}

const Tensor* Machine::find(Ref ref) const {
  const auto it = values_.find(ref);
  return it == values_.end() ? nullptr : &it->second;
}

int Machine::order(Ref ref) const {
  const auto it = orders_.find(ref.step);
  return it == orders_.end() ? 0 : it->second;
}

IntArray Machine::resolve(const std::vector<Int>& ints) const {
  IntArray values;
  for (const Int i : ints) values.push_back(i.in(program_.palette));
  return values;
}

void Machine::execute(const Step& step, const Tensors& operands) {
  int order = 0;
  for (const Ref ref : step.operands) order = std::max(order, this->order(ref));
  switch (step.kind) {
    case Kind::leaf: return keep(step, {make_leaf(step)}, 0);
    case Kind::op:
    case Kind::view: return keep(step, call_row(step, operands), order);
    case Kind::in_place: return write_in_place(step, operands);
    case Kind::detach: return keep(step, {first(operands).detach()}, order);
    case Kind::open: {
      auto region = std::make_unique<Region>();
      if (step.name == "no_grad")
        region->mode.emplace(false);
      else if (step.name == "enable_grad")
        region->mode.emplace(true);
      else if (step.name == "allow_mutation")
        region->mutation.emplace();
      else
        region->pair.emplace(make_pair(step));
      regions_.push_back(std::move(region));
      return;
    }
    case Kind::close:
      if (!regions_.empty()) regions_.pop_back();
      return;
    case Kind::hook: {
      handles_[step.id] = register_hook(step, operands);
      return;
    }
    case Kind::remove_hook:
      if (const auto it = handles_.find(first(step.operands).step); it != handles_.end()) it->second.remove();
      return;
    case Kind::retain_grad: return first(operands).retain_grad();
    case Kind::pair_on_slot: {
      const rg::Node node = first(operands).grad_fn();
      const int64_t slot = (step.ints.empty() ? 0 : step.ints[0].value);
      if (slot < node.saved_count())
        node.register_saved_tensor_hooks(static_cast<int>(slot), make_pair(step));
      return;
    }
    case Kind::requires_grad: first(operands).requires_grad_(step.has("on")); return;
    case Kind::backward:
    case Kind::grad: return differentiate(step, operands);
    case Kind::read_grad: {
      const Tensor g = first(operands).grad();
      if (g.defined()) keep(step, {g}, order + 1);
      return;
    }
    case Kind::clear_grad: return first(operands).set_grad({});
    case Kind::drop:
      for (size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].requires_grad() && (leaf_state(operands[i]) == LeafState::leaf || operands[i].retains_grad()))
          dropped_.push_back(operands[i]);
        values_.erase(step.operands[i]);
      }
      return;
  }
}

void Machine::keep(const Step& step, Tensors results, int order) {
  orders_[step.id] = order;
  for (size_t i = 0; i < results.size(); ++i) {
    log(fmt::format("v{}.{} {}", step.id, i, text_of(results[i])));
    if (results[i].defined()) values_[{step.id, static_cast<int>(i)}] = results[i];
  }
}

Tensors Machine::call_row(const Step& step, const Tensors& operands) const {
  return find_row(step.name)->run(Args{operands, resolve(step.ints), step.numbers, step.words});
}

void Machine::write_in_place(const Step& step, const Tensors& operands) {
  const Tensor& self = first(operands);
  rg::apply_inplace(
      self,
      [&](const Tensor& old) {
        Tensors all = operands;
        all[0] = old;
        return first(call_row(step, all));
      },
      step.name);
  log(fmt::format("v{} {}", step.id, text_of(self)));
}

// The cotangent of a root: none, ones or numbers; now and then one that wants a gradient itself.
void Machine::differentiate(const Step& step, const Tensors& roots) {
  Tensors cotangents, inputs;
  std::vector<Ref> asked;
  for (const Ref ref : step.inputs)
    if (const Tensor* t = find(ref)) {
      inputs.push_back(*t);
      asked.push_back(ref);
    }
  for (size_t i = 0; i < roots.size() && !step.has("plain"); ++i) {
    Tensor v = step.has("ones") ? rg::ones_like(roots[i])
                                : random_values(step.id * 64 + static_cast<int>(i), roots[i].sizes(),
                                                roots[i].dtype(), false);
    if (step.has("misfit")) v = rg::unsqueeze(v, 0);
    if (step.has("grad_cotangent")) v.requires_grad_();
    cotangents.push_back(v);
    if (step.has("grad_cotangent")) values_[{step.id, 32 + static_cast<int>(i)}] = v;
  }
  const bool create = step.has("create");
  const std::optional<bool> retain = step.has("retain") ? std::optional<bool>(true) : std::nullopt;
  int order = 0;
  for (const Ref ref : step.operands) order = std::max(order, this->order(ref));
  if (coverage_) {
    ++coverage_->orders[order + 1];
    ++coverage_->backwards;
    count_records(roots);
  }
  if (step.kind == Kind::grad) {
    keep(step,
         rg::autograd::grad(roots, inputs, cotangents, retain, create, step.has("allow_unused"),
                            step.has("materialize")),
         order + 1);
  } else {
    rg::autograd::backward(roots, cotangents, retain, create,
                           step.has("into") ? std::optional<Tensors>(inputs) : std::nullopt);
  }
  log_gradients(step);
  if (after_backward) after_backward();
}

void Machine::count_records(const Tensors& roots) {
  std::vector<rg::Edge> edges;
  for (const Tensor& root : roots) edges.push_back(rg::gradient_edge(root.impl()));
  const rg::Walk walk(edges, nullptr);
  for (const rg::Walk::Item& item : walk.order()) coverage_->records.insert(item.record->op->name);
}

void Machine::log_gradients(const Step& step) {
  for (const auto& [ref, t] : values_) {
    if (!t.requires_grad() || !(leaf_state(t) == LeafState::leaf || t.retains_grad())) continue;
    if (const Tensor g = t.grad(); g.defined())
      log(fmt::format("v{}: gradient of v{}.{} {}", step.id, ref.step, ref.output, text_of(g)));
  }
}

void Machine::end() {
  for (const auto& [ref, t] : values_)
    log(fmt::format("at the end v{}.{} {}", ref.step, ref.output, text_of(t)));
}

}  // namespace fuzz
