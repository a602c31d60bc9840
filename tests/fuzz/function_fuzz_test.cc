// Random programs as compiled functions, at random sizes: each call has the bits of the eager function, its results,
// what it writes to its arguments, and its gradients.
//
// A program becomes a function of its leaves: the steps that compute and write, without hooks and backwards. Sizes among
// the integers of a step are taken from the arguments. The function is called at the program's own sizes, at four
// others, and at the own ones again, as compile() and as compile_step(), which differentiates inside. In a third of the
// programs some results have hooks, in another third the calls are made under a pair.
//
//   RETROGRAD_FUZZ_COUNT=10000 RETROGRAD_FUZZ_SEED=7 ./bazelw run //tests/fuzz:function_fuzz_test
//
// Not compared: strides of results, bits of NaNs.
#include <catch2/catch.hpp>
#include <sstream>

#include "engine/inplace.h"
#include "tests/fuzz/asked.h"
#include "tests/fuzz/generator.h"
#include "tests/fuzz/machine.h"
#include "tests/fuzz/shrink.h"
#include "tests/same_bits.h"

namespace fuzz {
namespace {

uint64_t asked_count() { return static_cast<uint64_t>(asked_for("RETROGRAD_FUZZ_COUNT", 1000)); }

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

// The program as a function of its leaves.
class ProgramFunction {
 public:
  explicit ProgramFunction(const Program& program) : program_(program) {
    std::vector<bool> is_open_kept;
    std::erase_if(program_.steps, [&](const Step& step) {
      if (step.kind == Kind::open) is_open_kept.push_back(is_kept(step));
      if (step.kind != Kind::close) return !is_kept(step);
      const bool keeps = !is_open_kept.empty() && is_open_kept.back();
      if (!is_open_kept.empty()) is_open_kept.pop_back();
      return !keeps;
    });
  }

  /// Leaves out the steps that fail at these sizes, and those that use their values.
  void drop_failing(const IntArray& palette) {
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

  Tensors arguments(const IntArray& palette) const {
    Program leaves = program_;
    leaves.palette = palette;
    std::erase_if(leaves.steps, [](const Step& step) { return step.kind != Kind::leaf; });
    Machine machine(leaves);
    machine.run();
    Tensors made;
    for (const Step& step : leaves.steps) made.push_back(*machine.find({step.id, 0}));
    return made;
  }

  /// All values that are computed, in order.
  Tensors operator()(const Tensors& arguments) const {
    Run run(program_, arguments, palette_from(arguments), program_.seed % 3 == 1);
    for (const Step& step : program_.steps) {
      if (step.kind == Kind::open || step.kind == Kind::close)
        run.regions(step);
      else if (step.kind != Kind::leaf)
        run.step(step);
    }
    return run.results();
  }
  bool is_empty() const {
    return std::ranges::none_of(program_.steps, [](const Step& s) {
      return s.kind == Kind::op || s.kind == Kind::view || s.kind == Kind::in_place;
    });
  }

 private:
  class Run {
   public:
    Run(const Program& program, const Tensors& arguments, IntArray palette, bool hooks = false)
        : palette_(std::move(palette)), hooks_(hooks) {
      size_t i = 0;
      for (const Step& step : program.steps)
        if (step.kind == Kind::leaf) values_[{step.id, 0}] = arguments[i++];
    }
    ~Run() {
      while (!modes_.empty()) modes_.pop_back();
    }
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
  };

  // Sizes of arguments, for the function takes them from there; those of no argument are the program's.
  IntArray palette_from(const Tensors& arguments) const {
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

  Program program_;
};

// What a call gives: results, arguments after it, gradients.
struct Outcome {
  Tensors results, arguments, gradients;
};

// Gradients of a result in the memory of an argument meet those of the function's own uses of it in another order than
// eagerly (docs/compile.md, "Gradients of an argument"): `all` includes them.
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
bool same(const Tensor& a, const Tensor& b) {
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

struct Counts {
  int64_t functions = 0, calls = 0, recordings = 0, eager = 0, refused = 0, with_symbols = 0;
};

std::string fault_of(const Program& program, rg::FunctionKind kind, Counts* counts) {
  std::vector<IntArray> sizes{program.palette};
  Program other = program;
  for (int i = 0; i < 4; ++i) {
    other.seed = program.seed + 1000003 * static_cast<uint64_t>(i + 1);
    sizes.push_back(at_other_sizes(other).palette);
  }
  ProgramFunction function(program);
  for (const IntArray& palette : sizes) function.drop_failing(palette);
  for (const IntArray& palette : sizes) function.drop_failing(palette);
  if (function.is_empty()) return {};
  sizes.push_back(program.palette);
  const bool is_step = kind == rg::FunctionKind::step, has_pair = program.seed % 3 == 2;
  const auto body = [&](const Tensors& arguments) {
    Tensors results = function(arguments);
    if (!is_step) return results;
    const Tensors gradients = gradients_of(results, arguments, true);
    for (Tensor& r : results) r = r.detach();
    for (const Tensor& g : gradients)
      if (g.defined()) results.push_back(g);
    return results;
  };
  rg::FunctionCache compiled(kind);
  const auto planned = [&](const Tensors& arguments) { return compiled.run(body, arguments); };
  std::string fault;
  for (size_t i = 0; i < sizes.size() && fault.empty(); ++i) {
    const uint64_t seed = program.seed + i;
    Outcome eager, plan;
    try {
      eager = call(body, function.arguments(sizes[i]), is_step, seed, has_pair);
    } catch (const rg::Error&) {
      continue;  // a step that needs other numbers
    }
    try {
      plan = call(planned, function.arguments(sizes[i]), is_step, seed, has_pair);
    } catch (const rg::Error& e) {
      const bool reads_values =
          std::string_view(e.what()).find("may not read values") != std::string_view::npos;
      if (e.category() != rg::Category::unsupported && !reads_values) return std::string("error ") + e.what();
      if (counts) ++counts->refused;
      continue;
    } catch (const std::exception& e) {
      return std::string("exception ") + e.what();
    }
    fault = difference(eager.results, plan.results, "results");
    if (fault.empty()) fault = difference(eager.arguments, plan.arguments, "arguments");
    if (fault.empty()) fault = difference(eager.gradients, plan.gradients, "gradients");
    if (!fault.empty()) fault += "\nfor" + types_of(function.arguments(sizes[i]));
    if (counts) ++counts->calls;
  }
  if (counts) {
    const rg::FunctionCache::Stats stats = compiled.stats();
    ++counts->functions;
    counts->recordings += stats.captures;
    counts->eager += stats.eager;
    counts->with_symbols += stats.plans > stats.captures;
  }
  return fault;
}

}  // namespace

TEST_CASE("random programs as compiled functions have the bits of eager at random sizes") {
  Counts counts;
  const uint64_t first = asked_seed();
  for (uint64_t seed = first; seed < first + asked_count(); ++seed)
    for (const rg::FunctionKind kind : {rg::FunctionKind::function, rg::FunctionKind::step}) {
      INFO("RETROGRAD_FUZZ_SEED=" << seed << " RETROGRAD_FUZZ_COUNT=1");
      const Program program = generate(seed);
      const std::string found = fault_of(program, kind, &counts);
      if (found.empty()) continue;
      const auto word = [](const std::string& fault) { return fault.substr(0, fault.find_first_of(",:")); };
      const Program small =
          shrunk(program, [&](const Program& p) { return word(fault_of(p, kind, nullptr)); });
      FAIL_CHECK((kind == rg::FunctionKind::step ? "step: " : "function: ")
                 << fault_of(small, kind, nullptr) << "\n"
                 << to_string(small));
    }
  WARN(counts.functions << " functions, " << counts.calls << " calls compared, " << counts.recordings
                        << " recordings, " << counts.eager << " calls eager, " << counts.refused
                        << " refused; one recording for several sizes: " << counts.with_symbols);
  if (asked_count() < 1000) return;
  CHECK(counts.functions > 1000);
  CHECK(counts.with_symbols > counts.functions / 4);
  CHECK(counts.refused < counts.calls / 5);
}

}  // namespace fuzz
