// Generating programs; see generator.h.
#include "tests/fuzz/generator.h"

#include <algorithm>
#include <array>

#include "tests/fuzz/chooser.h"

namespace fuzz {
namespace {

using Words = std::vector<std::string_view>;

/// What a program may do.
struct Features {
  bool in_place, hooks, pairs, regions, higher, drops, failures;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), favoured_(op_table()[seed % op_table().size()]) {
    program_.seed = seed;
    for (int i = 0; i < 4; ++i) program_.palette.push_back(random_.chance(0.02) ? 0 : random_.between(1, 6));
    features_ = {random_.chance(0.4), random_.chance(0.6), random_.chance(0.35), random_.chance(0.25),
                 random_.chance(0.5), random_.chance(0.4), random_.chance(0.15)};
  }

  Program make() {
    program_.steps.reserve(kMostSteps);  // the machine refers to the program while it grows
    Machine machine(program_);
    Chooser chooser(program_, machine, random_);
    chooser_ = &chooser;
    if (random_.chance(0.4))
      chooser.main_dtype = random_.pick(std::array<std::string_view, 4>{"f64", "f64", "bf16", "f16"});
    chooser.other_dtypes = random_.chance(0.3) ? 0.3 : 0;
    const int64_t steps = random_.between(5, 60);
    for (int64_t i = 0; i < steps && program_.steps.size() < kMostSteps - 40; ++i) add_step();
    while (machine.open_regions() > 0) commit({.kind = Kind::close});
    finish();
    return program_;
  }

 private:
  static constexpr size_t kMostSteps = 400;

  bool commit(Step step) { return chooser_->commit(std::move(step)); }
  std::vector<Ref> values(const Chooser::Accept& accept) const { return chooser_->candidates(accept); }
  Ref late(const std::vector<Ref>& refs) { return chooser_->favour_late(refs); }
  const Tensor& at(Ref ref) const { return *chooser_->machine().find(ref); }

  /// Without gradients and values made from them: it is not specified which of them are one tensor or share memory, so
  /// they are not written to.
  std::vector<Ref> of_the_forward(std::vector<Ref> refs) const {
    std::erase_if(refs, [&](Ref ref) { return chooser_->machine().order(ref) > 0; });
    return refs;
  }

  static bool wants_gradient(const Tensor& t) { return t.requires_grad() && t.is_floating_point(); }
  static bool is_inner(const Tensor& t) { return wants_gradient(t) && leaf_state(t) == LeafState::inner; }
  static bool is_leaf(const Tensor& t) { return wants_gradient(t) && leaf_state(t) == LeafState::leaf; }

  void add_step();
  void add_row(const OpRow& row);
  void add_in_place();
  void add_hook();
  Words hook_words(std::string_view kind);
  void add_region();
  void add_backward();
  void add_higher();
  void add_small();
  void finish();
  std::vector<Ref> roots();
  Words cotangent_words(const std::vector<Ref>& roots);
  Words pair_words();

  Random random_;
  const OpRow& favoured_;  // programs of a thousand seeds have each op more often than chance would
  Program program_;
  Features features_;
  Chooser* chooser_ = nullptr;
};

void Generator::add_step() {
  const int64_t n = random_.below(100);
  if (n < 9 && features_.hooks) return add_hook();
  if (n < 15 && features_.in_place) return add_in_place();
  if (n < 20 && (features_.regions || features_.pairs)) return add_region();
  if (n < 24) return add_backward();
  if (n < 27 && features_.higher) return add_higher();
  if (n < 33) return add_small();
  const auto rows = op_table();
  if (n < 48) {
    const OpRow* row = &random_.pick(rows);
    while (!row->is_view) row = &random_.pick(rows);
    return add_row(*row);
  }
  add_row(random_.chance(0.15) ? favoured_ : random_.pick(rows));
}

void Generator::add_row(const OpRow& row) {
  chooser_->step = {.kind = row.is_view ? Kind::view : Kind::op, .name = row.name};
  row.choose(*chooser_);
  commit(std::move(chooser_->step));
}

// An elementwise row whose first operand is written to: as often a view as not.
void Generator::add_in_place() {
  const OpRow* row = &random_.pick(op_table());
  while (!row->is_elementwise) row = &random_.pick(op_table());
  chooser_->step = {.kind = Kind::in_place, .name = row->name};
  const bool view = random_.chance(0.5);
  row->choose(*chooser_);
  const rg::Tensor first = at(chooser_->step.operands[0]);
  const auto targets = of_the_forward(values([&](const Tensor& t) {
    return t.is_floating_point() && t.sizes() == first.sizes() && (!is_leaf(t) || features_.failures) &&
           static_cast<bool>(t.impl().base) == view;
  }));
  if (targets.empty()) return;
  chooser_->step.operands[0] = late(targets);
  commit(std::move(chooser_->step));
}

Words Generator::pair_words() {
  static constexpr std::array<std::string_view, 5> kPairs = {"scaling", "half", "traceable_pair",
                                                             "two_tensors", "offload"};
  return {features_.failures && random_.chance(0.1) ? "failing" : random_.pick(kPairs)};
}

void Generator::add_region() {
  if (chooser_->machine().open_regions() > 0 && random_.chance(0.7)) {
    commit({.kind = Kind::close});
    return;
  }
  if (features_.pairs && random_.chance(0.7)) {
    commit({.kind = Kind::open, .name = "pair", .words = pair_words()});
  } else if (features_.regions) {
    static constexpr std::array<std::string_view, 3> kRegions = {"no_grad", "enable_grad", "allow_mutation"};
    commit({.kind = Kind::open, .name = random_.pick(kRegions)});
  }
}

Words Generator::hook_words(std::string_view kind) {
  static constexpr std::array<std::string_view, 12> kWords = {
      "look",      "look",        "scale",        "scale", "scale",    "same",
      "traceable", "remove_self", "remove_other", "add",   "callback", "nested"};
  std::string_view word = random_.pick(kWords);
  if (features_.failures && random_.chance(0.1)) word = random_.chance(0.5) ? "throw" : "misfit";
  if (kind == "post_accumulate" && random_.chance(0.3)) word = "step";
  if (kind == "multi_grad" && word == "traceable") word = "look";  // it counts, and is none
  if (kind == "multi_grad" && random_.chance(0.4)) return {word, "any"};
  return {word};
}

void Generator::add_hook() {
  static constexpr std::array<std::string_view, 9> kNames = {
      "tensor",          "tensor",         "tensor",          "pre",       "post",
      "post_accumulate", "accumulate_pre", "accumulate_post", "multi_grad"};
  const std::string_view name = random_.pick(kNames);
  const bool on_node = name == "pre" || name == "post";
  const bool on_leaf = name == "post_accumulate" || name == "accumulate_pre" || name == "accumulate_post";
  const auto places = values(on_node ? is_inner : on_leaf ? is_leaf : wants_gradient);
  if (places.empty()) return;
  Step step{.kind = Kind::hook, .name = name, .operands = {late(places)}, .words = hook_words(name)};
  if (name == "multi_grad")
    for (int64_t i = random_.below(3); i > 0; --i) step.operands.push_back(late(places));
  step.numbers.push_back(random_.number(0.5, 1.5));
  if (step.has("remove_other")) {
    std::vector<int> hooks;
    for (const Step& s : program_.steps)
      if (s.kind == Kind::hook) hooks.push_back(s.id);
    if (!hooks.empty()) step.inputs = {{random_.pick(hooks), 0}};
  } else if (step.has("add")) {
    step.inputs = {random_.pick(places)};
  }
  commit(std::move(step));
}

std::vector<Ref> Generator::roots() {
  const auto fit = values(is_inner);
  std::vector<Ref> roots;
  if (fit.empty()) return roots;
  for (int64_t i = random_.chance(0.3) ? random_.between(2, 3) : 1; i > 0; --i) roots.push_back(late(fit));
  return roots;
}

Words Generator::cotangent_words(const std::vector<Ref>& roots) {
  if (features_.failures && random_.chance(0.05)) return {"misfit"};
  const bool single = std::ranges::all_of(roots, [&](Ref r) { return at(r).numel() == 1; });
  if (single && random_.chance(0.6)) return {"plain"};
  return {random_.chance(0.3) ? "ones" : "random"};
}

void Generator::add_backward() {
  Step step{.kind = random_.chance(0.5) ? Kind::backward : Kind::grad, .operands = roots()};
  if (step.operands.empty()) return;
  step.words = cotangent_words(step.operands);
  if (random_.chance(0.6)) step.words.push_back("retain");
  const bool into = step.kind == Kind::grad || random_.chance(0.25);
  if (into) {
    const auto inputs = values(wants_gradient);
    for (int64_t i = random_.between(1, 3); i > 0; --i) step.inputs.push_back(random_.pick(inputs));
    step.words.push_back(step.kind == Kind::backward ? "into"
                         : random_.chance(0.9)       ? "allow_unused"
                                                     : "strict");
    if (step.kind == Kind::grad && random_.chance(0.2)) step.words.push_back("materialize");
  }
  if (features_.higher && random_.chance(0.3)) step.words.push_back("create");
  commit(std::move(step));
}

// A recorded gradient, a value made from it, and its gradient; sometimes repeated.
void Generator::add_higher() {
  std::vector<Ref> from = roots();
  const int64_t orders = random_.chance(0.35) ? 2 : 1;
  for (int64_t order = 0; order < orders && !from.empty(); ++order) {
    Step step{.kind = Kind::grad, .operands = from, .words = {"random", "create", "allow_unused"}};
    if (random_.chance(0.5)) step.words.push_back("grad_cotangent");
    const auto leaves = values(is_leaf), inner = values(is_inner);
    for (int64_t i = random_.between(1, 4); i > 0; --i)
      step.inputs.push_back(random_.pick(!leaves.empty() && random_.chance(0.7) ? leaves : inner));
    const int id = chooser_->next_id();
    if (!commit(std::move(step))) return;
    from = values([&](const Tensor&) { return true; });
    std::erase_if(from, [&](Ref r) { return r.step != id || !is_inner(at(r)); });
    if (!from.empty() && random_.chance(0.3)) add_row(favoured_);
  }
  if (from.empty()) return;
  Step last{.kind = random_.chance(0.6) ? Kind::grad : Kind::backward,
            .operands = from,
            .words = {"random", "retain"}};
  if (last.kind == Kind::grad) {
    last.inputs = values(is_leaf);
    last.words.push_back("allow_unused");
  }
  commit(std::move(last));
}

void Generator::add_small() {
  const auto any = values([](const Tensor&) { return true; });
  const auto wanting = values(wants_gradient), inner = values(is_inner), leaves = values(is_leaf);
  const auto one = [&](const std::vector<Ref>& refs, Kind kind, Words words = {}) {
    if (!refs.empty()) commit({.kind = kind, .operands = {late(refs)}, .words = std::move(words)});
  };
  switch (random_.below(8)) {
    case 0: return one(any, Kind::detach);
    case 1: return one(inner, Kind::retain_grad);
    case 2: return one(random_.chance(0.8) ? leaves : wanting, Kind::read_grad);
    case 3: return one(leaves, Kind::clear_grad);
    case 4: return features_.drops ? one(any, Kind::drop) : one(inner, Kind::retain_grad);
    case 5:
      // Not of views: one that is a leaf, on a base that is then changed by it, keeps itself alive.
      return one(of_the_forward(values([](const Tensor& t) {
                   return t.is_floating_point() && !t.requires_grad() && !t.impl().base;
                 })),
                 Kind::requires_grad, {features_.failures && random_.chance(0.3) ? "off" : "on"});
    case 6: {
      std::vector<Ref> hooks;
      for (const Step& s : program_.steps)
        if (s.kind == Kind::hook) hooks.push_back({s.id, 0});
      return one(hooks, Kind::remove_hook);
    }
    default:
      if (!inner.empty() && features_.pairs)
        commit({.kind = Kind::pair_on_slot,
                .operands = {late(inner)},
                .ints = {{random_.below(2)}},
                .words = pair_words()});
  }
}

// Every program ends with a backward from the last values.
void Generator::finish() {
  if (features_.higher) add_higher();
  auto last = values(is_inner);
  if (last.empty()) return;
  last.erase(last.begin(), last.end() - std::min<int64_t>(static_cast<int64_t>(last.size()), 4));
  commit({.kind = Kind::backward, .operands = last, .words = {"random"}});
}

}  // namespace

Program generate(uint64_t seed) { return Generator(seed).make(); }

}  // namespace fuzz
