// Units: the runs of op statements that mode compiled compiles (suites/FORMAT.md, section 4).
//
// A unit is a maximal run of op statements, and of checkpoints of such, of one list. It is split where a control
// statement could notice the difference:
//   after a statement that makes, or writes to, a tensor that is hooked, retained, or an input of a gradient: later
//     uses of it are in another unit, through whose result the gradient passes;
//   if a program has hooks or retained tensors and asks for the gradients of some inputs only: between statements that
//     depend on different ones of them, since the path to these decides which hooks run;
//   around a statement whose node gets hooks: it runs by itself, eagerly;
//   before the last statement of an expect_error, which is a unit of its own: those before it have run when it is
//   refused.
// An op that must read values (NeedsValues) runs between two units.
#pragma once

#include <exception>
#include <map>
#include <set>
#include <string>

#include "engine/tensor.h"
#include "tests/conformance/json.h"

namespace retrograd::conformance {

class Units {
 public:
  /// `program`: all statements of the case.
  explicit Units(const Json& program);

  /// The statement after the unit that begins at `begin`, which is an op; `begin` when that one runs by itself. At most
  /// `limit`.
  size_t end_of(const Json& statements, size_t begin, size_t limit) const;

 private:
  void look_at(const Json& statements);
  void find_sources(const Json& statements);
  void join(const std::string& a, const std::string& b);
  std::string group_of(std::string name) const;
  bool touches(const Json& call, const std::set<std::string>& names) const;

  std::map<std::string, std::string> parent_;  // names that may share memory
  std::set<std::string> observed_, node_hooked_;
  bool has_hooks_ = false, has_inputs_ = false;
  // For each group: the inputs and observed names that it depends on.
  std::map<std::string, std::set<std::string>> sources_;
  std::map<const Json*, std::set<std::string>> depends_on_;  // of an op statement
};

/// Whether a statement may be in a unit.
bool may_be_in_unit(const Json& statement);

/// The names that statements begin .. end - 1 use from before, and those that they bind, each once.
std::vector<std::string> names_used(const Json& statements, size_t begin, size_t end);
std::vector<std::string> names_bound(const Json& statements, size_t begin, size_t end);

/// Thrown when an op that reads values is given recorded ones.
struct NeedsValues : std::exception {};

/// Throws NeedsValues when this call does so.
void check_values(const std::string& op, const Tensors& in, const Json& attrs);

}  // namespace retrograd::conformance
