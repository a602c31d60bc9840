// See hooks/recompute_policy.h. RecomputeStack is the open scopes of one region, and decides for each call.
#include "hooks/recompute_policy.h"

#include <algorithm>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "engine/emitter.h"
#include "engine/region_log.h"

namespace retrograd::inline v0 {

PolicyAnswer PolicyAnswer::pack_with(RefPtr<SavedTensorHooks> pair) {
  PolicyAnswer answer(CheckpointPolicy::must_save);
  answer.pair = std::move(pair);
  return answer;
}

namespace {

bool is_must(CheckpointPolicy p) {
  return p == CheckpointPolicy::must_save || p == CheckpointPolicy::must_recompute;
}
bool saves(CheckpointPolicy p) {
  return p == CheckpointPolicy::must_save || p == CheckpointPolicy::prefer_save;
}

}  // namespace

namespace detail {

class RecomputeStack {
 public:
  explicit RecomputeStack(SourceLocation where)
      : log_(std::make_unique<RegionLog>(
            [this](const Region& region, const Call* call, std::string_view name,
                   std::span<const Tensor> results) { return decide(region, call, name, results); },
            where)),
        outer_(std::exchange(innermost_, this)) {}
  ~RecomputeStack() {
    if (std::this_thread::get_id() != thread_) {
      log_->abandon();
      log_.release();
      return;
    }
    for (RecomputeStack** stack = &innermost_; *stack; stack = &(*stack)->outer_)
      if (*stack == this) {
        *stack = outer_;
        break;
      }
  }
  RecomputeStack(const RecomputeStack&) = delete;

  /// The stack of the innermost region of this thread, if that is one.
  static RecomputeStack* innermost() {
    const bool is_inside = innermost_ && innermost_->log_.get() == RegionLog::innermost();
    return is_inside ? innermost_ : nullptr;
  }

  size_t add(RecomputePolicy policy, SourceLocation where) {
    scopes_.push_back({std::move(policy), where});
    return scopes_.size() - 1;
  }
  void end(size_t place) { scopes_[place].policy = nullptr; }

  std::weak_ptr<RecomputeStack> self;

 private:
  struct Scope {
    RecomputePolicy policy;  // empty: the scope has ended
    SourceLocation where;
  };

  SaveDecision decide(const Region& region, const Call* call, std::string_view name,
                      std::span<const Tensor> results) const {
    const Tensors given(results.begin(), results.end());
    Tensors operands;
    if (call)
      for (TensorImpl* x : call->operands) operands.push_back(x ? Tensor(RefPtr<TensorImpl>(x)) : Tensor());
    const std::string_view op = call ? call->op->name : "checkpoint_name";
    const PolicyCall asked{
        op, name, operands, given, call ? call->where : SourceLocation(), region.kept_bytes()};
    PolicyAnswer answer = CheckpointPolicy::prefer_save;
    SourceLocation answered_at;
    for (const Scope& scope : scopes_) {
      if (!scope.policy) continue;
      PolicyAnswer next = scope.policy(asked);
      if (is_must(answer.policy) && is_must(next.policy) && saves(answer.policy) != saves(next.policy))
        fail(Category::bad_argument, op,
             fmt::format(
                 "conflicting policies: the scope at {} must {} its results, the scope at {} must {} them",
                 to_string(answered_at), saves(answer.policy) ? "save" : "recompute", to_string(scope.where),
                 saves(next.policy) ? "save" : "recompute"),
             asked.where);
      if (is_must(answer.policy) && !is_must(next.policy)) continue;
      answer = std::move(next);
      answered_at = scope.where;
    }
    return {saves(answer.policy), std::move(answer.pair)};
  }

  std::unique_ptr<RegionLog> log_;
  RecomputeStack* outer_;
  std::vector<Scope> scopes_;  // outermost first
  const std::thread::id thread_ = std::this_thread::get_id();

  static inline constinit thread_local RecomputeStack* innermost_ = nullptr;
};

}  // namespace detail

RecomputeScope::RecomputeScope(RecomputePolicy policy, SourceLocation where) {
  require_function(static_cast<bool>(policy), "RecomputeScope", where);
  if (!GradMode::is_enabled() || Emitter::current().values() == Emitter::Values::of_backward) return;
  if (detail::RecomputeStack* const open = detail::RecomputeStack::innermost()) {
    stack_ = open->self.lock();
  } else {
    stack_ = std::make_shared<detail::RecomputeStack>(where);
    stack_->self = stack_;
  }
  place_ = stack_->add(std::move(policy), where);
}

RecomputeScope::~RecomputeScope() {
  if (stack_) stack_->end(place_);
}

const Tensor& checkpoint_name(const Tensor& x, std::string_view name, SourceLocation where) {
  x.impl("checkpoint_name", where);
  if (RegionLog::is_open()) RegionLog::name(x, name);
  return x;
}

namespace policies {

RecomputePolicy recompute_all() {
  return [](const PolicyCall&) { return CheckpointPolicy::prefer_recompute; };
}

RecomputePolicy must_save_all() {
  return [](const PolicyCall&) { return CheckpointPolicy::must_save; };
}

RecomputePolicy save_matrix_products() {
  return [](const PolicyCall& call) {
    static constexpr std::string_view kProducts[] = {
        "mm", "bmm", "addmm", "baddbmm", "linear", "attention", "convolution", "convolution_transpose"};
    return std::ranges::count(kProducts, call.op) > 0 ? CheckpointPolicy::prefer_save
                                                      : CheckpointPolicy::prefer_recompute;
  };
}

RecomputePolicy save_names(std::initializer_list<std::string> names) { return offload_names(names, nullptr); }

RecomputePolicy offload_names(std::initializer_list<std::string> names, RefPtr<SavedTensorHooks> pair) {
  return [names = std::set<std::string, std::less<>>(names), pair](const PolicyCall& call) {
    if (call.name.empty() || !names.contains(call.name))
      return PolicyAnswer(CheckpointPolicy::prefer_recompute);
    return pair ? PolicyAnswer::pack_with(pair) : PolicyAnswer(CheckpointPolicy::must_save);
  };
}

}  // namespace policies

}  // namespace retrograd
