// A fused group and its reference for tests: nodes are added one by one and run immediately by the eager Runner;
// check() then runs them as a group and compares every output bit for bit (NaN equals NaN).
//
// GroupTest is built by input() and node(), whose results are numbers of operands for later nodes, and
// output(). Inputs may have any layout. The temporary memory of each run is checked as well
// (cpu/scratch_check.h).
#pragma once

#include <catch2/catch.hpp>
#include <cstring>

#include "cpu/parallel.h"
#include "cpu/scratch_check.h"
#include "engine/runner.h"
#include "ops/elementwise_list.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "retrograd/retrograd.h"

namespace retrograd::testing {

class GroupTest {
 public:
  static constexpr int32_t kNone = FusedNode::kNone;

  /// An operand: input or node. Of any layout.
  int32_t input(const Tensor& x) {
    inputs_.push_back(x);
    return static_cast<int32_t>(inputs_.size()) - 1;
  }
  /// Runs the op now; its number as an operand of later ones.
  int32_t node(const OpInfo& op, std::initializer_list<int32_t> operands, const void* attrs = nullptr) {
    return node(op, std::vector<int32_t>(operands), attrs);
  }
  int32_t node(const OpInfo& op, std::vector<int32_t> operands, const void* attrs = nullptr) {
    Node n{&op, std::move(operands), {}, {}};
    if (op.attrs_size) {
      n.attrs.resize(op.attrs_size);
      std::memcpy(n.attrs.data(), attrs, op.attrs_size);
    }
    std::vector<TensorImpl*> cells;
    for (int32_t k : n.operands) cells.push_back(k == kNone ? nullptr : value(k).get());
    eager_runner().emit({&op, cells, n.attrs.empty() ? nullptr : n.attrs.data(), {}, 1}, &n.result);
    nodes_.push_back(std::move(n));
    return ~(static_cast<int32_t>(nodes_.size()) - 1);
  }
  template <class Op>
  int32_t node(std::initializer_list<int32_t> operands, typename Op::Attrs attrs = {}) {
    return node(ops::info<Op>, operands, &attrs);
  }
  /// An op of two tensors with a number in place of operand `at`.
  template <class Op>
  int32_t with_number(int32_t x, double number, int at = 1) {
    typename Op::Attrs attrs;
    attrs.scalar = number;
    return at == 1 ? node<Op>({x, kNone}, attrs) : node<Op>({kNone, x}, attrs);
  }
  void output(int32_t node) { outputs_.push_back(~node); }
  size_t nodes() const { return nodes_.size(); }

  const Tensor& value(int32_t operand) const {
    return operand >= 0 ? inputs_[static_cast<size_t>(operand)]
                        : nodes_[static_cast<size_t>(~operand)].result;
  }

  std::unique_ptr<FusedKernel> fuse() const {
    std::vector<TensorType> types;
    for (const Tensor& x : inputs_) types.push_back(x.impl().type());
    std::vector<FusedNode> nodes;
    for (const Node& n : nodes_) nodes.push_back({n.op, n.operands, n.attrs.data(), n.result.impl().type()});
    return cpu_executor().fuse({types, nodes, outputs_});
  }

  /// Runs the group with 1, 2 and 3 threads.
  void check() const {
    const cpu::CheckScratch memory;
    const std::unique_ptr<FusedKernel> kernel = fuse();
    REQUIRE(kernel);
    const int threads = cpu::get_num_threads();
    for (int count : {1, 2, 3}) {
      cpu::set_num_threads(count);
      const Tensors results = run(*kernel, -1);
      cpu::set_num_threads(threads);
      INFO(text() << count << " threads");
      compare(results);
    }
    check_donation(*kernel);
  }

  /// All outputs that may use the memory of an input do so.
  void check_donation(const FusedKernel& kernel) const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].is_contiguous()) {
        INFO(text() << "on the memory of input " << i);
        compare(run(kernel, static_cast<int>(i)));
      }
  }

  std::string text() const;

 private:
  struct Node {
    const OpInfo* op;
    std::vector<int32_t> operands;
    std::vector<std::byte> attrs;
    Tensor result;
  };

  // With one output on the memory of an input, if there is one that may.
  Tensors run(const FusedKernel& kernel, int donor) const {
    Tensors inputs = inputs_, results;
    std::vector<TensorImpl*> in, out;
    std::vector<const void*> attrs;
    if (donor >= 0) inputs[static_cast<size_t>(donor)] = inputs[static_cast<size_t>(donor)].clone();
    for (const Tensor& x : inputs) in.push_back(x.get());
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const Tensor& expected = nodes_[static_cast<size_t>(outputs_[o])].result;
      const bool taken = donor >= 0 &&
                         inputs[static_cast<size_t>(donor)].impl().type() == expected.impl().type() &&
                         kernel.may_overwrite(donor, static_cast<int>(o));
      results.push_back(taken ? inputs[static_cast<size_t>(donor)] : empty_like(expected));
      if (taken) donor = -1;
      out.push_back(results.back().get());
    }
    for (const Node& n : nodes_) attrs.push_back(n.attrs.data());
    kernel.run(in.data(), out.data(), attrs.data());
    return results;
  }

  void compare(const Tensors& results) const {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const Tensor& expected = nodes_[static_cast<size_t>(outputs_[o])].result;
      INFO("output " << o << ", of node " << outputs_[o]);
      REQUIRE(different_elements(expected, results[o]) == 0);
    }
  }

  static int64_t different_elements(const Tensor& a, const Tensor& b) {
    const size_t item = element_size(a.dtype());
    const char *p = static_cast<const char*>(a.raw_data()), *q = static_cast<const char*>(b.raw_data());
    if (std::memcmp(p, q, item * static_cast<size_t>(a.numel())) == 0) return 0;
    int64_t different = 0;
    const std::vector<double> x = a.to_vector(), y = b.to_vector();
    for (size_t i = 0; i < x.size(); ++i)
      different += std::memcmp(p + i * item, q + i * item, item) != 0 && !(x[i] != x[i] && y[i] != y[i]);
    return different;
  }

  Tensors inputs_;
  std::vector<Node> nodes_;
  std::vector<int32_t> outputs_;
};

inline std::string GroupTest::text() const {
  std::string text;
  for (size_t i = 0; i < inputs_.size(); ++i)
    text += "input " + std::to_string(i) + ": " + to_string(inputs_[i].impl().type()) + "\n";
  for (size_t n = 0; n < nodes_.size(); ++n) {
    text += std::to_string(n) + ": " + std::string(nodes_[n].op->name);
    for (int32_t k : nodes_[n].operands)
      text += k == kNone ? " number" : k >= 0 ? " in" + std::to_string(k) : " " + std::to_string(~k);
    text += " : " + to_string(nodes_[n].result.impl().type()) + "\n";
  }
  return text + "outputs:" + [&] {
    std::string list;
    for (int32_t o : outputs_) list += " " + std::to_string(o);
    return list;
  }() + "\n";
}

}  // namespace retrograd::testing
