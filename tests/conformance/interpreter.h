// Runs the statements of a program.
//
// An Interpreter is one evaluation of a program: its names, hooks, event log and run counts. The statements are
// split over three files: interpreter.cc (op calls, scopes, expected errors), gradient_statements.cc (backward,
// grad, .grad, check), hook_statements.cc (hooks). A new statement is a member function and a line in the table
// of interpreter.cc.
//
// Hooks refer to the interpreter that made them: it must outlive every backward that may run them, as it holds
// all tensors it does.
#pragma once

#include <tuple>

#include "engine/hook.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/differentiator.h"
#include "tests/conformance/environment.h"
#include "tests/conformance/events.h"
#include "tests/conformance/run_counter.h"
#include "tests/conformance/units.h"
#include "tracer/function/compile.h"

namespace retrograd::conformance {

/// The compiled units of several evaluations, by list of statements and places in it. Sizes are symbols.
using UnitCaches = std::map<std::tuple<const Json*, size_t, size_t>, FunctionCache>;

class Interpreter {
 public:
  /// `units`: compiled units consist of op statements; null: each statement runs by itself. `caches`: where units are
  /// kept; null: they are not.
  Interpreter(Comparison& comparison, Differentiator& differentiator, const Units* units = nullptr,
              UnitCaches* caches = nullptr)
      : comparison_(comparison), differentiator_(differentiator), units_(units), caches_(caches) {}

  /// Runs statements in order; `path` names the list in messages ("ops", "ops[3].body"). Throws what the
  /// engine throws.
  void run(const Json& statements, const std::string& path = "ops");

  Environment& names() { return names_; }
  const EventLog& events() const { return events_; }
  const std::map<std::string, int>& run_counts() const { return run_counter_.counts(); }

 private:
  using Handler = void (Interpreter::*)(const Json& statement, const std::string& path);
  struct Statement {
    std::string_view name;
    Handler handler;
  };
  static const Statement kStatements[];

  void run_until(const Json& statements, size_t begin, size_t end, const std::string& path);
  size_t run_unit(const Json& statements, size_t begin, size_t limit, const std::string& path);
  void compile_unit(const Json& statements, size_t begin, size_t end, const std::string& path);
  void run_one(const Json& statement, const std::string& path);
  void run_op(const Json& call);
  Tensors call_op(const std::string& op, const Tensors& in, const Json& attrs);
  void bind_results(const Json& call, const Tensors& results);

  void no_grad(const Json& statement, const std::string& path);
  void enable_grad(const Json& statement, const std::string& path);
  void checkpoint(const Json& statement, const std::string& path);
  void expect_error(const Json& statement, const std::string& path);
  void mark(const Json& statement, const std::string& path);

  void backward(const Json& statement, const std::string& path);
  void grad(const Json& statement, const std::string& path);
  void requires_grad(const Json& statement, const std::string& path);
  void retain_grad(const Json& statement, const std::string& path);
  void get_grad(const Json& statement, const std::string& path);
  void set_grad(const Json& statement, const std::string& path);
  void check(const Json& statement, const std::string& path);

  void tensor_hook(const Json& statement, const std::string& path);
  void post_accumulate_grad_hook(const Json& statement, const std::string& path);
  void node_pre_hook(const Json& statement, const std::string& path);
  void node_post_hook(const Json& statement, const std::string& path);
  void multi_grad_hook(const Json& statement, const std::string& path);
  void saved_tensors_hooks(const Json& statement, const std::string& path);
  void remove_hook(const Json& statement, const std::string& path);

  void keep_handle(const Json& statement, HookHandle handle);

  Comparison& comparison_;
  Differentiator& differentiator_;
  const Units* units_;
  UnitCaches* caches_;
  Environment names_;
  EventLog events_;
  std::map<std::string, HookHandle> hooks_;
  RunCounter run_counter_;
};

}  // namespace retrograd::conformance
