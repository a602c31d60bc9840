// See random_graph.h.
#include "tests/ir/passes/random_graph.h"

#include <array>

#include "engine/bookkeeping.h"
#include "ir/type_check.h"
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/copy.h"
#include "ops/dropout.h"
#include "ops/full.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/fuzz/random.h"

namespace random_graph {
namespace {

namespace rg = retrograd;
using namespace rg::ops;
using rg::ir::kNoValue;
using rg::ir::ValueId;
using Kind = rg::ir::Input::Kind;

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  rg::ir::Graph run() {
    for (int64_t n = random_.between(1, 3); n > 0; --n) take(graph_.add_tensor_input(some_type()));
    const bool calls = random_.chance(0.7);
    for (int64_t n = random_.between(5, 40); n > 0; --n) {
      if (calls && random_.chance(0.2))
        bookkeeping();
      else if (random_.chance(0.25))
        again();
      else
        something();
    }
    std::vector<ValueId> outputs;
    for (int64_t n = random_.between(1, 4); n > 0; --n) outputs.push_back(late());
    graph_.set_outputs(std::move(outputs));
    return std::move(graph_);
  }

 private:
  void take(ValueId v) { values_.push_back(v); }
  ValueId any() { return random_.pick(values_); }
  ValueId late() {
    return values_[values_.size() - 1 -
                   static_cast<size_t>(
                       random_.below(std::min<int64_t>(6, static_cast<int64_t>(values_.size()))))];
  }
  rg::TensorType some_type() {
    static const std::array<rg::Shape, 5> shapes = {rg::Shape{2, 3}, {2, 3}, {3}, {1, 3}, {3, 2}};
    return {random_.chance(0.85) ? rg::kFloat32 : rg::kFloat16, rg::kCPU, random_.pick(shapes)};
  }
  const rg::Shape& shape(ValueId v) const { return graph_.type(v).shape; }
  rg::Scalar number() { return random_.pick(std::array<rg::Scalar, 7>{1.0, 2.0, 4.0, 0.5, 0.0, -0.0, 3.0}); }

  // Not where the type rule refuses.
  bool add(const rg::OpInfo& op, std::vector<ValueId> operands, const void* attrs) {
    std::vector<rg::RefPtr<rg::TensorImpl>> cells;
    std::vector<rg::TensorImpl*> given;
    for (ValueId v : operands) {
      cells.push_back(rg::TensorImpl::make());
      if (v != kNoValue) cells.back()->set_type(graph_.type(v).dtype, rg::kCPU, shape(v));
      given.push_back(v == kNoValue ? nullptr : cells.back().get());
    }
    const rg::RefPtr<rg::TensorImpl> result = rg::TensorImpl::make();
    rg::TensorImpl* out = result.get();
    try {
      rg::ir::infer_types({&op, given, const_cast<void*>(attrs), {}, 1}, &out);
    } catch (const rg::Error&) {
      return false;
    }
    const rg::TensorType type = result->type();
    take(graph_.append(op, operands, attrs, {&type, 1}).first_result);
    return true;
  }
  template <class Op>
  bool node(std::vector<ValueId> operands, typename Op::Attrs attrs = {}) {
    return add(info<Op>, std::move(operands), &attrs);
  }

  void again() {
    if (graph_.nodes().empty()) return;
    const rg::ir::Node old = random_.pick(graph_.nodes());
    if (!old.op->is(rg::Trait::pure) || old.results != 1) return;
    const auto operands = graph_.operands(old);
    std::vector<ValueId> list(operands.begin(), operands.end());
    if (list.size() == 2 && random_.chance(0.3)) std::swap(list[0], list[1]);
    add(*old.op, list, old.attrs);
  }

  void something() {
    const ValueId x = late(), y = any();
    switch (random_.below(31)) {
      case 0: node<Neg>({x}); break;
      case 1: node<Exp>({x}); break;
      case 2: node<Abs>({x}); break;
      case 3: node<Relu>({x}); break;
      case 4: node<Square>({x}); break;
      case 5: node<Add>({x, y}); break;
      case 6: node<Sub>({x, y}); break;
      case 7: node<Mul>({x, y}); break;
      case 8: node<Div>({x, y}); break;
      case 9: node<Maximum>({x, y}); break;
      case 10: node<Add>({x, kNoValue}, {number()}); break;
      case 11: node<Sub>({x, kNoValue}, {number()}); break;
      case 12: node<Mul>({kNoValue, x}, {number()}); break;
      case 13: node<Div>({x, kNoValue}, {number()}); break;
      case 14:
        node<To>({x}, {random_.pick(std::array{rg::kFloat32, rg::kFloat32, rg::kFloat64, rg::kFloat16})});
        break;
      case 15: resize(x); break;
      case 16: resize(x); break;
      case 17: expand(x); break;
      case 18: expand(any()); break;
      case 19: permute(x); break;
      case 20: node<Contiguous>({x}); break;
      case 21: node<Clone>({x}); break;
      case 22: node<Alias>({x}); break;
      case 23: node<Copy>({y, x}); break;
      case 24: reduce(x); break;
      case 25: slice(x); break;
      case 26: node<Flip>({x}, {shape(x).rank() ? rg::IntList{0} : rg::IntList{}}); break;
      case 27: node<Mm>({x, y}); break;
      case 28: node<Full>({}, {shape(x), number(), graph_.type(x).dtype}); break;
      case 29: activation(x, y); break;
      default: add(rg::ops::accumulate, {x, y}, nullptr);
    }
  }

  // An activation and its backward, of the same operand and with the same attributes, or not quite.
  void activation(ValueId x, ValueId y) {
    if (!node<Neg>({x})) return;
    const ValueId v = values_.back();
    const bool tanh = random_.chance(0.5);
    if (!node<Gelu>({v}, {tanh})) return;
    const ValueId result = values_.back();
    if (random_.chance(0.5)) node<Mul>({result, y});
    const ValueId of = random_.chance(0.8) ? v : x;
    const bool same = random_.chance(0.8);
    node<Backward<Gelu>>({result, of}, {same ? tanh : !tanh});
    if (random_.chance(0.2)) node<Backward<Gelu>>({result, v}, {tanh});
  }
  void resize(ValueId x) {
    rg::Shape to = shape(x);
    switch (random_.below(4)) {
      case 0: to = {shape(x).numel()}; break;
      case 1:
        if (to.rank() == 2) std::swap(to[0], to[1]);
        break;
      case 2: to.insert(0, 1); break;
      default: break;
    }
    if (node<Contiguous>({x})) node<Reshape>({values_.back()}, {to});
  }
  void expand(ValueId x) {
    rg::Shape to = shape(x);
    if (to.rank() == 0 || (to.rank() == 1 && random_.chance(0.7))) to.insert(0, 2);
    for (int d = 0; d < to.rank(); ++d)
      if (to[d].raw() == 1) to[d] = d == 0 ? 2 : 3;
    node<Expand>({x}, {to});
  }
  void permute(ValueId x) {
    Permute::Attrs attrs;
    for (int d = shape(x).rank(); d-- > 0;) attrs.dims.push_back(d);
    node<Permute>({x}, attrs);
  }
  void reduce(ValueId x) {
    if (shape(x).rank() == 0) return;
    const rg::IntList dim{random_.below(shape(x).rank())};
    random_.chance(0.5) ? node<Sum>({x}, {dim, true}) : node<Amax>({x}, {dim, random_.chance(0.5)});
  }
  void slice(ValueId x) {
    if (shape(x).rank() == 0) return;
    const rg::Dim length = shape(x)[0].raw() > 1 && random_.chance(0.5) ? rg::Dim(1) : shape(x)[0];
    node<Slice>({x}, {0, 0, length, 1});
  }

  void bookkeeping() {
    const ValueId x = late();
    const rg::TensorType type = graph_.type(x);
    const auto append = [&](const rg::OpInfo& op, int32_t handle, std::vector<ValueId> operands, bool gives) {
      rg::ir::Node& made = graph_.append(op, operands, nullptr,
                                         gives ? std::span(&type, 1) : std::span<const rg::TensorType>());
      made.handle = handle;
      if (gives) take(made.first_result);
    };
    switch (random_.below(5)) {
      case 0: append(rg::ops::unpack, graph_.add_handle(Kind::slot, type), {}, true); break;
      case 1: append(rg::ops::hook, graph_.add_handle(Kind::hook, {}), {x}, true); break;
      case 2: append(rg::ops::hook, graph_.add_handle(Kind::hook, {}), {}, false); break;
      case 3:
        if (rg::is_floating(type.dtype))
          append(rg::ops::accumulate_grad, graph_.add_handle(Kind::leaf, type), {x}, false);
        break;
      default: append(rg::ops::retain_grad, graph_.add_handle(Kind::box, type), {x}, false);
    }
  }

  fuzz::Random random_;
  rg::ir::Graph graph_;
  std::vector<ValueId> values_;
};

}  // namespace

rg::ir::Graph make(uint64_t seed) { return Maker(seed).run(); }

}  // namespace random_graph
