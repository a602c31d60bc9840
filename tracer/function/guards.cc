// See tracer/function/guards.h.
#include "tracer/function/guards.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/inplace.h"
#include "tracer/function/function_inputs.h"

namespace retrograd::inline v0 {

bool ReachedLeaf::holds(const Tensors& arguments) const {
  size_t next = 0;
  const bool is_same = all_hooks(leaf(arguments), [&](const RefPtr<Hook>& h) {
    const size_t i = next++;
    return i < hooks.size() && hooks[i] == h && is_traceable[i] == h->traceable;
  });
  return is_same && next == hooks.size();
}

bool ReachedLeaf::holds_in_run(const Tensors& arguments) const {
  for (size_t i = 0; i < hooks.size(); ++i)
    if (is_traceable[i] && !(hooks[i]->is_live() && hooks[i]->traceable)) return false;
  return all_hooks(leaf(arguments), [&](const RefPtr<Hook>& h) { return std::ranges::count(hooks, h) > 0; });
}

CallGuard::CallGuard(const CallParts& given)
    : fixed(given.fixed),
      gradients(GradMode::is_enabled()),
      inference(InferenceMode::is_enabled()),
      default_dtype(get_default_dtype()),
      autocast(detail::autocast_dtype()) {
  RefPtr<SavedTensorHooks> pair = default_saved_tensor_hooks();
  has_pair = static_cast<bool>(pair);
  pair_is_pure = pair && pair->is_pure;
  if (pair && pair->traceable) traceable_pair = std::move(pair);
  for (const Tensor& t : given.tensors) arguments.emplace_back(t.impl());
  same_as = first_of_each(given.tensors);
}

namespace {

std::string value_of(const FixedPart& part) {
  return part.text.empty() ? to_string(Scalar(part.number)) : fmt::format("\"{}\"", part.text);
}

std::string_view autocast_text(ScalarType dtype) {
  return dtype == ScalarType::Undefined ? "off" : name(dtype);
}

std::string difference_of(const std::vector<FixedPart>& was, const std::vector<FixedPart>& is) {
  for (size_t i = 0; i < std::min(was.size(), is.size()); ++i)
    if (!(was[i] == is[i]))
      return fmt::format("the {} in argument {} was {}, is {}", was[i].kind, was[i].argument,
                         value_of(was[i]), value_of(is[i]));
  return "the arguments have other parts";
}

}  // namespace

std::string CallGuard::difference(const CallGuard& now, bool sizes) const {
  if (!(fixed == now.fixed)) return difference_of(fixed, now.fixed);
  if (arguments.size() != now.arguments.size())
    return fmt::format("{} arguments, now {}", arguments.size(), now.arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (sizes ? !(arguments[i] == now.arguments[i]) : !arguments[i].differs_in_sizes(now.arguments[i]))
      return fmt::format("argument {} was {}, is {}", i, arguments[i].text(), now.arguments[i].text());
  if (same_as != now.same_as) return "arguments are the same tensor, or are no longer";
  if (gradients != now.gradients) return now.gradients ? "gradients are on" : "gradients are off";
  if (inference != now.inference) return now.inference ? "inference mode is on" : "inference mode is off";
  if (default_dtype != now.default_dtype)
    return fmt::format("the default dtype was {}, is {}", name(default_dtype), name(now.default_dtype));
  if (autocast != now.autocast)
    return fmt::format("autocast was {}, is {}", autocast_text(autocast), autocast_text(now.autocast));
  if (has_pair != now.has_pair)
    return fmt::format("there {} a default pair of saved-tensor hooks", now.has_pair ? "is" : "is no longer");
  if (pair_is_pure != now.pair_is_pure)
    return fmt::format("the default pair of saved-tensor hooks is {}pure", now.pair_is_pure ? "" : "not ");
  const bool both = traceable_pair && now.traceable_pair;
  if (both ? !traceable_pair->does_the_same(*now.traceable_pair) : !(traceable_pair == now.traceable_pair))
    return "another traceable pair of saved-tensor hooks";
  return {};
}

// ---- all of it ----------------------------------------------------------------------------------------------------

void FunctionGuards::note_reached(const std::vector<LeafGradients::Reached>& reached,
                                  const FunctionInputs& inputs) {
  std::unordered_map<const TensorImpl*, std::vector<size_t>> known;  // into reached_
  for (const LeafGradients::Reached& r : reached) note_reached(r, inputs, known[r.leaf.get()]);
}

// Notes each leaf once, unless its hooks change between two of the function's backwards.
void FunctionGuards::note_reached(const LeafGradients::Reached& reached, const FunctionInputs& inputs,
                                  std::vector<size_t>& known) {
  ReachedLeaf leaf{reached.leaf.get(), -1, reached.hooks, {}, reached.effects};
  if (reached.leaf->graph) {
    leaf.argument = inputs.argument_of(*reached.leaf);
    if (leaf.argument < 0) return;
    leaf.outside = nullptr;
  }
  for (const RefPtr<Hook>& h : reached.hooks) leaf.is_traceable.push_back(h->traceable);
  for (const size_t i : known)
    if (reached_[i].hooks == leaf.hooks) {
      reached_[i].effects = leaf.effects;
      return;
    }
  known.push_back(reached_.size());
  reached_.push_back(std::move(leaf));
}

void FunctionGuards::finish(const Tensors& arguments) {
  for (const RecordedFunction::Input& input : recorded_.inputs)
    if (input.captured) outside_.emplace_back(input.captured, TensorGuard(*input.captured));
  for (const RecordedFunction::Write& w : recorded_.writes)
    if (const TensorImpl* const captured = recorded_.inputs[static_cast<size_t>(w.input)].captured)
      written_.insert(captured->storage().get());
  const Tensors grads = grads_at_begin(arguments);
  for (TensorLocation& location : locations_of_grads(arguments, grads)) {
    if (location.memory < arguments.size()) guard_locations(arguments);
    grads_.emplace_back(TensorGuard(grads[grads_.size()].impl()), std::move(location));
  }
}

std::string FunctionGuards::misfit(const CallGuard& call, const Tensors& arguments, bool sizes) const {
  if (std::string why = call_.difference(call, sizes); !why.empty()) return why;
  for (const auto& [cell, before] : outside_)
    if (!before.holds(*cell))
      return fmt::format("a tensor from outside was {}, is {}", before.text(), TensorGuard(*cell).text());
  for (const RecordedFunction::KeptArgument& k : recorded_.kept_arguments) {
    const SavedTensorHooks& pair = k.pair ? *k.pair : *call.traceable_pair;
    if (pair.keeps(arguments[static_cast<size_t>(k.argument)]) != k.is_kept)
      return "the pair of saved-tensor hooks leaves other arguments alone";
  }
  if (call.traceable_pair && !(call.traceable_pair == call_.traceable_pair))
    for (const auto& [cell, before] : outside_)
      if (const Tensor t{RefPtr<TensorImpl>(cell)};
          call.traceable_pair->keeps(t) != call_.traceable_pair->keeps(t))
        return "the pair of saved-tensor hooks leaves other tensors from outside alone";
  for (const ReachedLeaf& leaf : reached_)
    if (!leaf.holds(arguments)) return "a leaf has other hooks";
  if (std::string why = misplaced(arguments); !why.empty()) return why;
  for (const RecordedFunction::Grad& g : recorded_.grads)
    if (!g.is_dropped_first && g.meta(arguments).grad.defined() != g.was_defined)
      return fmt::format(".grad of a leaf is {}", g.was_defined ? "not there" : "there");
  if (!grads_hold(arguments)) return ".grad of a leaf lies elsewhere";
  return misfit_of_objects();
}

std::string FunctionGuards::misfit_of_objects() const {
  for (const RecordedFunction::Numbers& n : recorded_.numbers)
    if (n.live.fits && !n.live.fits()) return "an optimizer has other options, parameters or state";
  for (const RecordedFunction::Dependency& d : recorded_.dependencies)
    if (!d.holds()) return std::string(d.what);
  return {};
}

void FunctionGuards::check_grad(const TensorImpl& leaf, const Tensors& arguments, size_t effects,
                                SourceLocation where) const {
  for (const RecordedFunction::Grad& g : recorded_.grads) {
    const TensorImpl* const own = g.argument >= 0 ? arguments[static_cast<size_t>(g.argument)].get() : g.leaf;
    if (own == &leaf && g.last_read >= effects)
      fail(Category::unsupported, "set_grad",
           "code that a recorded function calls replaces .grad of a leaf, which the function reads later. "
           "Hint: replace it in the function, or change its values in place",
           where);
  }
}

void FunctionGuards::check_hooks(const Tensors& arguments, size_t effects, SourceLocation where) const {
  for (const ReachedLeaf& leaf : reached_)
    if (leaf.effects >= effects && !leaf.holds_in_run(arguments))
      fail(Category::unsupported, "compile",
           fmt::format(
               "user code that a recorded function calls has added a hook to a leaf, {}, whose gradient "
               "was still to come, or has removed a traceable one there: the run cannot follow. Hint: "
               "change hooks between calls",
               to_string(leaf.leaf(arguments).type())),
           where);
}

// Gradients that are read or added to.
Tensors FunctionGuards::grads_at_begin(const Tensors& arguments) const {
  Tensors grads;
  for (const RecordedFunction::Grad& g : recorded_.grads)
    if (!g.is_dropped_first && g.was_defined) grads.push_back(g.meta(arguments).grad);
  return grads;
}

// Locations relative to arguments, tensors from outside and each other.
std::vector<TensorLocation> FunctionGuards::locations_of_grads(const Tensors& arguments,
                                                               const Tensors& grads) const {
  Tensors all = arguments;
  for (const auto& [cell, guard] : outside_) all.emplace_back(RefPtr<TensorImpl>(cell));
  const auto others = static_cast<std::ptrdiff_t>(all.size());
  all.insert(all.end(), grads.begin(), grads.end());
  std::vector<TensorLocation> locations = TensorLocation::of(all);
  locations.erase(locations.begin(), locations.begin() + others);
  return locations;
}

// Sharing of a gradient's memory is looked up only if it is shared: mostly the gradient is the only tensor there.
bool FunctionGuards::grads_hold(const Tensors& arguments) const {
  if (grads_.empty()) return true;
  const Tensors grads = grads_at_begin(arguments);
  const size_t others = arguments.size() + outside_.size();
  bool may_share = false;
  for (size_t i = 0; i < grads_.size(); ++i) {
    const TensorImpl& grad = grads[i].impl();
    const auto& [guard, location] = grads_[i];
    if (!guard.holds(grad) || location.offset != grad.storage_offset() ||
        location.bytes != grad.storage()->nbytes())
      return false;
    may_share |= grad.ref_count() > 2 || !grad.storage()->is_unique() || location.memory != others + i;
  }
  if (!may_share) return true;
  const std::vector<TensorLocation> now = locations_of_grads(arguments, grads);
  return std::ranges::equal(grads_, now, {}, &std::pair<TensorGuard, TensorLocation>::second);
}

// Why the arguments do not fit: a run also accesses their memory in a way unknown to the recording.
std::string FunctionGuards::misplaced(const Tensors& arguments) const {
  if (locations_ && !(*locations_ == TensorLocation::of(arguments)))
    return "arguments lie elsewhere in their memory";
  for (const Tensor& a : arguments) {
    const auto is_shared = [&](const auto& outside) {
      return outside.first->storage() == a.impl().storage();
    };
    if (written_.contains(a.impl().storage().get()) ||
        (locations_ && std::ranges::any_of(outside_, is_shared)))
      return "an argument shares memory with a tensor from outside";
  }
  for (const RecordedFunction::Grad& of_argument : recorded_.grads) {
    if (of_argument.argument < 0) continue;
    for (const RecordedFunction::Grad& g : recorded_.grads)
      if (g.argument < 0 && arguments[static_cast<size_t>(of_argument.argument)].get() == g.leaf)
        return "an argument is a leaf from outside";
  }
  return {};
}

}  // namespace retrograd
