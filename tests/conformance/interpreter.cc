// The table of statements; op calls, scopes and expected errors.
#include "tests/conformance/interpreter.h"

#include <algorithm>

#include "engine/inplace.h"
#include "hooks/checkpoint.h"
#include "tests/conformance/binding.h"

namespace retrograd::conformance {

const Interpreter::Statement Interpreter::kStatements[] = {
    {"backward", &Interpreter::backward},
    {"grad", &Interpreter::grad},
    {"no_grad", &Interpreter::no_grad},
    {"enable_grad", &Interpreter::enable_grad},
    {"requires_grad", &Interpreter::requires_grad},
    {"retain_grad", &Interpreter::retain_grad},
    {"get_grad", &Interpreter::get_grad},
    {"set_grad", &Interpreter::set_grad},
    {"check", &Interpreter::check},
    {"checkpoint", &Interpreter::checkpoint},
    {"expect_error", &Interpreter::expect_error},
    {"mark", &Interpreter::mark},
    {"tensor_hook", &Interpreter::tensor_hook},
    {"post_accumulate_grad_hook", &Interpreter::post_accumulate_grad_hook},
    {"node_pre_hook", &Interpreter::node_pre_hook},
    {"node_post_hook", &Interpreter::node_post_hook},
    {"multi_grad_hook", &Interpreter::multi_grad_hook},
    {"saved_tensors_hooks", &Interpreter::saved_tensors_hooks},
    {"remove_hook", &Interpreter::remove_hook},
};

void Interpreter::run(const Json& statements, const std::string& path) {
  run_until(statements, 0, statements.size(), path);
}

void Interpreter::run_until(const Json& statements, size_t begin, size_t end, const std::string& path) {
  while (begin < end) {
    if (units_ && may_be_in_unit(statements[begin])) {
      begin = run_unit(statements, begin, end, path);
      continue;
    }
    const std::string here = path + "[" + std::to_string(begin) + "]";
    comparison_.log().enter(here);
    run_one(statements[begin++], here);
  }
}

// Runs the unit, or the statement, that begins there; returns the position after it.
size_t Interpreter::run_unit(const Json& statements, size_t begin, size_t limit, const std::string& path) {
  size_t end = units_->end_of(statements, begin, limit);
  while (end > begin) {
    try {
      compile_unit(statements, begin, end, path);
      return end;
    } catch (const NeedsValues&) {  // thrown by the statement where the log is, which ends the unit before it
      while (end > begin && comparison_.log().at() != path + "[" + std::to_string(end - 1) + "]") --end;
      --end;
    }
  }
  const std::string here = path + "[" + std::to_string(begin) + "]";
  comparison_.log().enter(here);
  run_one(statements[begin], here);
  return begin + 1;
}

// A function of the names that the statements use, which gives those that they bind.
void Interpreter::compile_unit(const Json& statements, size_t begin, size_t end, const std::string& path) {
  const std::vector<std::string> used = names_used(statements, begin, end),
                                 bound = names_bound(statements, begin, end);
  const auto function = [&](const Tensors& arguments) {
    Environment inside, outside;
    for (size_t i = 0; i < used.size(); ++i) inside.bind(used[i], arguments[i]);
    outside = std::exchange(names_, std::move(inside));
    const auto put_back = [&](Environment* names) { *names = std::move(outside); };
    const std::unique_ptr<Environment, decltype(put_back)> scope(&names_, put_back);
    for (size_t i = begin; i < end; ++i) {
      const std::string here = path + "[" + std::to_string(i) + "]";
      comparison_.log().enter(here);
      run_one(statements[i], here);
    }
    Tensors results;
    for (const std::string& name : bound) results.push_back(names_.get(name));
    return results;
  };
  Tensors arguments;
  for (const std::string& name : used) arguments.push_back(names_.get(name));
  UnitCaches own;
  FunctionCache& cache =
      (caches_ ? *caches_ : own)
          .try_emplace({&statements, begin, end}, FunctionKind::function,
                       CompileOptions{.dynamic = caches_ ? DynamicSizes::always : DynamicSizes::never})
          .first->second;
  comparison_.log().enter(path + "[" + std::to_string(end - 1) +
                          "]");  // an error of a run is that of its last statement
  const Tensors results = cache.run(function, arguments);
  for (size_t i = 0; i < bound.size(); ++i) names_.bind(bound[i], results[i]);
}

void Interpreter::run_one(const Json& statement, const std::string& path) {
  const bool is_op = statement.contains("op");
  const std::string& name = statement[is_op ? "op" : "do"].get_ref<const std::string&>();
  try {
    if (is_op) return run_op(statement);
    for (const Statement& known : kStatements)
      if (known.name == name) return (this->*known.handler)(statement, path);
  } catch (const Error& e) {
    if (e.category() == Category::unsupported) throw Unsupported("op=" + name + ": " + e.what());
    throw;
  }
  throw Unsupported("op=" + name);
}

void Interpreter::run_op(const Json& call) {
  static const std::string no_label;
  static const Json no_attrs = Json::object();
  const Json* label = find(call, "label");
  const CallLabel scope(label ? label->get_ref<const std::string&>() : no_label);
  if (label) run_counter_.starts(CallLabel::current());
  const Json* attrs = find(call, "attrs");
  bind_results(call, call_op(call["op"], names_.get_all(call["in"]), attrs ? *attrs : no_attrs));
}

Tensors Interpreter::call_op(const std::string& op, const Tensors& in, const Json& attrs) {
  const Binding* binding = find_binding(op);
  if (!binding) throw Unsupported("op=" + op);
  check_values(op, in, attrs);
  const Arguments arguments(op, *find_signature(op), in, attrs);
  if (binding->op == op) return binding->call(arguments);
  const auto base = [&](const Tensor& self) { return binding->call(arguments.on(self)).at(0); };
  return {(changes_geometry(op) ? change_geometry : apply_inplace)(in.at(0), base, op,
                                                                   SourceLocation::current())};
}

void Interpreter::bind_results(const Json& call, const Tensors& results) {
  const Json* out = find(call, "out");
  if (!out) return;
  if (out->size() > results.size())
    throw BadManifest(call["op"].get<std::string>() + " gives fewer results than `out` names");
  for (size_t i = 0; i < out->size(); ++i)
    if (!(*out)[i].is_null()) names_.bind((*out)[i], results[i]);
}

void Interpreter::no_grad(const Json& statement, const std::string& path) {
  const NoGradGuard scope;
  run(statement["body"], path + ".body");
}

void Interpreter::enable_grad(const Json& statement, const std::string& path) {
  const EnableGradGuard scope;
  run(statement["body"], path + ".body");
}

void Interpreter::checkpoint(const Json& statement, const std::string& path) {
  const Json* early_stop = find(statement, "early_stop");
  Environment outside = names_;
  const auto put_back = [&](Environment* names) { *names = std::move(outside); };
  Tensors results;
  {
    const std::unique_ptr<Environment, decltype(put_back)> scope(&names_, put_back);
    const auto body = [&] {
      if (const RegionLog* log = RegionLog::innermost()) run_counter_.begins(log->region());
      run(statement["body"], path + ".body");
      return names_.get_all(statement["out"]);
    };
    results = retrograd::checkpoint(body, {.early_stop = !early_stop || early_stop->get<bool>()});
  }
  for (size_t i = 0; i < results.size(); ++i) names_.bind(statement["out"][i], results[i]);
}

void Interpreter::mark(const Json& statement, const std::string&) {
  events_.add("mark " + statement["text"].get<std::string>());
}

void Interpreter::expect_error(const Json& statement, const std::string& path) {
  const Json& body = statement["body"];
  const std::string what = path + ".expect_error", wanted = statement["category"];
  comparison_.log().compared();
  try {
    run_until(body, 0, body.size() - 1, path + ".body");
    run_until(body, body.size() - 1, body.size(), path + ".body");  // a unit of its own
    return comparison_.log().fail(what, "want " + wanted + " got no error");
  } catch (const Error& e) {
    const std::string at = comparison_.log().at(),
                      last = path + ".body[" + std::to_string(body.size() - 1) + "]";
    const std::string got(to_string(e.category()));
    const Json* also = find(statement, "also");
    const bool accepted =
        got == wanted || (also && std::find(also->begin(), also->end(), got) != also->end());
    if (!accepted) comparison_.log().fail(what, "want " + wanted + " got " + got + ": " + e.what());
    if (!at.starts_with(last))
      comparison_.log().fail(what, "refused at " + at + ", before the last statement: " + e.what());
  }
}

}  // namespace retrograd::conformance
