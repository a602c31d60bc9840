// See tests/fuzz/program_function.h.
#include "tests/fuzz/program_function.h"

#include <sstream>

#include "engine/inplace.h"
#include "hooks/checkpoint.h"
#include "hooks/recompute_policy.h"
#include "tests/fuzz/random.h"
#include "tests/same_bits.h"

namespace fuzz {
namespace {

bool is_kept(const Step& step) {
  switch (step.kind) {
    case Kind::leaf:
    case Kind::op:
    case Kind::view:
    case Kind::in_place:
    case Kind::detach: return true;
    case Kind::open: return step.name == "no_grad" || step.name == "enable_grad";
    case Kind::close: return true;
    default: return false;
  }
}

// Regions that begin and end before steps, two deep.
class Regions {
 public:
  explicit Regions(uint64_t seed) : random_(seed ^ 0xC4EC) {}

  void before_step() {
    if (!open_.empty() && random_.chance(0.25)) end_last();
    if (open_.size() < 2 && random_.chance(0.35)) begin();
  }
  void end() {
    while (!open_.empty()) end_last();
  }

 private:
  struct Region {
    std::unique_ptr<rg::detail::CheckpointScope> checkpoint;
    std::unique_ptr<rg::RecomputeScope> scope;
  };

  void begin() {
    Region region;
    const uint64_t kind = random_.next() % 5;
    if (kind < 2)
      region.checkpoint = std::make_unique<rg::detail::CheckpointScope>(
          rg::CheckpointOptions{.early_stop = kind == 0}, rg::SourceLocation::current());
    else
      region.scope = std::make_unique<rg::RecomputeScope>(policy(kind, random_.next()));
    open_.push_back(std::move(region));
  }
  void end_last() {
    if (open_.back().checkpoint) open_.back().checkpoint->close();
    open_.pop_back();
  }
  static rg::RecomputePolicy policy(uint64_t kind, uint64_t seed) {
    if (kind == 2) return rg::policies::recompute_all();
    if (kind == 3) return rg::policies::save_matrix_products();
    return [seed](const rg::PolicyCall& call) {
      return (std::hash<std::string_view>()(call.op) ^ seed) % 3 != 0;
    };
  }

  Random random_;
  std::vector<Region> open_;
};

class Run {
 public:
  Run(const Program& program, const Tensors& arguments, IntArray palette, bool hooks = false)
      : palette_(std::move(palette)), hooks_(hooks), regions_(program.seed) {
    size_t i = 0;
    for (const Step& step : program.steps)
      if (step.kind == Kind::leaf) values_[{step.id, 0}] = arguments[i++];
  }
  ~Run() {
    regions_.end();
    while (!modes_.empty()) modes_.pop_back();
  }
  // Before a step: the regions that begin or end there. Modes open and close within one.
  void recompute() {
    if (modes_.empty()) regions_.before_step();
  }
  void end() { regions_.end(); }
  void regions(const Step& step) {
    if (step.kind == Kind::open)
      modes_.push_back(std::make_unique<rg::AutoGradMode>(step.name == "enable_grad"));
    if (step.kind == Kind::close) modes_.pop_back();
  }
  /// False if an operand is missing.
  bool step(const Step& step) {
    Args args{{}, {}, step.numbers, step.words};
    for (const Ref ref : step.operands) {
      const auto it = values_.find(ref);
      if (it == values_.end()) return false;
      args.operands.push_back(it->second);
    }
    for (const Int i : step.ints) args.ints.push_back(i.in(palette_));
    if (args.operands.empty() && step.kind != Kind::op) return false;
    if (step.kind == Kind::in_place) {
      rg::apply_inplace(
          args.operands[0],
          [&](const Tensor& old) {
            Args all = args;
            all.operands[0] = old;
            return find_row(step.name)->run(all).at(0);
          },
          step.name);
      return true;
    }
    const Tensors made =
        step.kind == Kind::detach ? Tensors{args.operands[0].detach()} : find_row(step.name)->run(args);
    for (size_t i = 0; i < made.size(); ++i) {
      if (!made[i].defined()) continue;
      if (hooks_ && step.id % 4 == 0 && made[i].requires_grad() && !made[i].is_leaf())
        made[i].register_hook(
            [](const Tensor& g) { return g * (g.dim() ? 0.5 + 0.25 * (g.size(0) % 3) : 2.0); });
      values_[{step.id, static_cast<int>(i)}] = made[i];
      results_.push_back(made[i]);
    }
    return true;
  }
  Tensors results() { return results_; }

 private:
  IntArray palette_;
  const bool hooks_;  // some results have hooks
  std::map<Ref, Tensor> values_;
  Tensors results_;
  std::vector<std::unique_ptr<rg::AutoGradMode>> modes_;
  Regions regions_;
};

}  // namespace

ProgramFunction::ProgramFunction(const Program& program) : program_(program) {
  std::vector<bool> is_open_kept;
  std::erase_if(program_.steps, [&](const Step& step) {
    if (step.kind == Kind::open) is_open_kept.push_back(is_kept(step));
    if (step.kind != Kind::close) return !is_kept(step);
    const bool keeps = !is_open_kept.empty() && is_open_kept.back();
    if (!is_open_kept.empty()) is_open_kept.pop_back();
    return !keeps;
  });
}

void ProgramFunction::drop_failing(const IntArray& palette) {
  const Tensors given = arguments(palette);
  Run run(program_, given, palette_from(given));
  std::erase_if(program_.steps, [&](const Step& step) {
    if (step.kind == Kind::open || step.kind == Kind::close || step.kind == Kind::leaf)
      return run.regions(step), false;
    try {
      return !run.step(step);
    } catch (const rg::Error&) {
    } catch (const MissingArgument&) {
    }
    return true;
  });
}

Tensors ProgramFunction::arguments(const IntArray& palette) const {
  Program leaves = program_;
  leaves.palette = palette;
  std::erase_if(leaves.steps, [](const Step& step) { return step.kind != Kind::leaf; });
  Machine machine(leaves);
  machine.run();
  Tensors made;
  for (const Step& step : leaves.steps) made.push_back(*machine.find({step.id, 0}));
  return made;
}

Tensors ProgramFunction::operator()(const Tensors& arguments, bool recomputes) const {
  Run run(program_, arguments, palette_from(arguments), program_.seed % 3 == 1);
  for (const Step& step : program_.steps) {
    if (recomputes) run.recompute();
    if (step.kind == Kind::open || step.kind == Kind::close)
      run.regions(step);
    else if (step.kind != Kind::leaf)
      run.step(step);
  }
  run.end();
  return run.results();
}

bool ProgramFunction::is_empty() const {
  return std::ranges::none_of(program_.steps, [](const Step& s) {
    return s.kind == Kind::op || s.kind == Kind::view || s.kind == Kind::in_place;
  });
}

// Sizes of arguments, for the function takes them from there; those of no argument are the program's.
IntArray ProgramFunction::palette_from(const Tensors& arguments) const {
  IntArray palette = program_.palette;
  std::vector<bool> is_used(palette.size());
  for (const Step& step : program_.steps)
    for (const Int i : step.ints)
      if (i.palette >= 0 && step.kind != Kind::leaf) is_used[static_cast<size_t>(i.palette)] = true;
  size_t argument = 0;
  for (const Step& step : program_.steps) {
    if (step.kind != Kind::leaf) continue;
    const Tensor& x = arguments[argument++];
    for (size_t d = 0; d < step.ints.size() && static_cast<int64_t>(d) < x.dim(); ++d) {
      const int k = step.ints[d].palette;
      if (k >= 0 && is_used[static_cast<size_t>(k)])
        palette[static_cast<size_t>(k)] = x.size(static_cast<int64_t>(d));
    }
  }
  return palette;
}

Tensors gradients_of(const Tensors& results, const Tensors& arguments, bool all) {
  Tensors roots, inputs, cotangents;
  const auto is_view = [&](const Tensor& r) {
    return std::ranges::any_of(arguments,
                               [&](const Tensor& a) { return a.impl().storage() == r.impl().storage(); });
  };
  for (const Tensor& r : results)
    if (r.requires_grad() && r.is_floating_point() && leaf_state(r) == LeafState::inner &&
        (all || !is_view(r))) {
      roots.push_back(r);
      cotangents.push_back(rg::ones_like(r.detach()) * (0.5 + 0.25 * static_cast<double>(roots.size() % 5)));
    }
  for (const Tensor& a : arguments)
    if (a.requires_grad() && leaf_state(a) == LeafState::leaf) inputs.push_back(a);
  if (roots.empty() || inputs.empty()) return {};
  return rg::autograd::grad(roots, inputs, cotangents, {}, false, true);
}

Outcome call(const std::function<Tensors(const Tensors&)>& f, const Tensors& arguments, bool is_step,
             uint64_t seed, bool has_pair) {
  rg::manual_seed(seed);
  Outcome out;
  out.arguments = arguments;
  {
    std::optional<rg::SavedTensorHooksGuard> pair;
    if (has_pair)
      pair.emplace(rg::saved_tensor_hooks([](const Tensor& x) { return x.detach().clone(); },
                                          [](const Tensor& packed) { return packed; }));
    out.results = f(arguments);
  }
  if (!is_step) out.gradients = gradients_of(out.results, arguments, false);
  return out;
}

// Bit for bit, but NaNs are alike.
static bool same(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || !a.is_floating_point()) return rg::testing::same_bits(a, b);
  const rg::NoGradGuard guard;
  const auto numbers = [](const Tensor& x) { return rg::where(rg::isnan(x), rg::zeros_like(x), x); };
  return a.sizes() == b.sizes() && rg::testing::same_bits(rg::isnan(a), rg::isnan(b)) &&
         rg::testing::same_bits(numbers(a), numbers(b));
}

std::string difference(const Tensors& eager, const Tensors& other, const std::string& what) {
  if (eager.size() != other.size()) return "as many " + what;
  for (size_t i = 0; i < eager.size(); ++i) {
    if (same(eager[i], other[i])) continue;
    std::ostringstream text;
    text << what << ": number " << i;
    if (eager[i].defined() && other[i].defined())
      text << ", " << eager[i].detach() << "\nand " << other[i].detach();
    return text.str();
  }
  return {};
}

std::string types_of(const Tensors& arguments) {
  std::string text;
  for (const Tensor& a : arguments) text += " " + to_string(a.impl().type());
  return text;
}

}  // namespace fuzz
