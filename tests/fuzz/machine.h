// Machine: runs a program and writes down everything that it does, one line for each value, gradient, event of a hook
// and error. Two runs are equal if their lines are: values are written as dtype, shape and a hash of their bits.
//
// Backwards are called through autograd::backward and autograd::grad; to trace them, open a CompiledBackwardScope
// around the run. An exception of the library ends a step with a line and not the program. An InternalError, or an
// exception that is not the library's, also sets `broken`.
//
// Invariant: the effect of a step depends only on the step, the palette and the values that it names; so a program
// behaves the same in each run.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "retrograd/retrograd.h"
#include "tests/fuzz/op_table.h"

namespace fuzz {

/// Whether a tensor is a leaf; an outdated view must not be queried (refresh_view in engine/inplace.h).
enum class LeafState { leaf, inner, unknown };
inline LeafState leaf_state(const retrograd::Tensor& t) {
  try {
    return t.is_leaf() ? LeafState::leaf : LeafState::inner;
  } catch (const retrograd::Error&) {
    return LeafState::unknown;
  }
}

/// What a failing hook of a program throws.
struct HookFailure {
  int id;
};

/// What the runs of programs have reached: for the test that the generator covers what it should.
struct Coverage {
  std::set<std::string_view> records;  // ops whose records a backward reached
  std::map<std::string, int> steps;    // kinds of steps that gave no error, with their names
  std::map<int, int> orders;           // backwards by the order of the derivative
  int errors = 0, backwards = 0;
  std::map<std::string, int> categories;  // of errors
};

/// Numbers between -1.5 and 1.5 that depend only on `id`; with `ties`, few different ones.
Tensor random_values(int id, const IntArray& shape, rg::ScalarType dtype, bool ties = false);

class Machine {
 public:
  /// `values`: lines show the numbers of a value, too.
  explicit Machine(const Program& program, bool values = false, Coverage* coverage = nullptr);
  ~Machine();
  Machine(const Machine&) = delete;

  /// Called after each backward that gave no error.
  std::function<void()> after_backward;

  /// All steps, then the end.
  void run();
  /// One step. False when it gave an error or an operand was missing.
  bool run(const Step& step);
  /// The value; null when there is none.
  const Tensor* find(Ref ref) const;
  const std::map<Ref, Tensor>& values() const { return values_; }
  /// 0 for a value of the forward, n for a value after n backwards.
  int order(Ref ref) const;
  int open_regions() const { return static_cast<int>(regions_.size()); }

  const std::vector<std::string>& lines() const { return lines_; }
  bool broken() const { return broken_; }

 private:
  struct Region;
  void execute(const Step& step, const Tensors& operands);
  Tensors call_row(const Step& step, const Tensors& operands) const;
  Tensor make_leaf(const Step& step) const;
  void write_in_place(const Step& step, const Tensors& operands);
  void differentiate(const Step& step, const Tensors& roots);
  void count_records(const Tensors& roots);
  void add_hook(const Step& step, const Tensors& operands);
  void keep(const Step& step, Tensors results, int order);
  void log_gradients(const Step& step);
  void end();

  // machine_hooks.cc
  rg::HookHandle register_hook(const Step& step, const Tensors& operands);
  Tensor run_hook(const Step& step, const Tensor& g);
  Tensors run_list_hook(const Step& step, std::string_view what, const Tensors& grads);
  void side_effect(const Step& step, const Tensor& g);
  rg::RefPtr<rg::SavedTensorHooks> make_pair(const Step& step);

  void log(std::string line) { lines_.push_back(std::move(line)); }
  std::string text_of(const Tensor& t) const;
  IntArray resolve(const std::vector<Int>& ints) const;

  const Program& program_;
  bool show_values_;
  Coverage* coverage_;
  std::map<Ref, Tensor> values_;
  std::map<int, int> orders_;  // of the steps
  std::map<int, rg::HookHandle> handles_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<std::string> lines_;
  Tensors dropped_;  // those whose .grad is to be cleared at the end
  bool broken_ = false;
};

}  // namespace fuzz
