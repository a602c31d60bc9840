// The list of all ops, made from the families' type lists at the first question. See ops/all_ops.h. It is in
// the engine since the bookkeeping ops belong to it. Asked by who reads graphs, by the plan cache, documents and
// tests: never by a call of an op.
#include "ops/all_ops.h"

#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/bookkeeping.h"
#include "ops/families.h"

namespace retrograd::ops {
namespace {

std::vector<const OpInfo*> collect() {
  std::vector<const OpInfo*> all{
      &unpack, &hook, &accumulate, &accumulate_grad, &retain_grad, &function_backward, &pack};
  for_each_family(
      [&]<class List>(std::string_view) { List::for_each([&]<class Op>() { all.push_back(&info<Op>); }); });
  return all;
}

}  // namespace

std::span<const OpInfo* const> all_ops() {
  static const std::vector<const OpInfo*>* all = new std::vector<const OpInfo*>(collect());
  return *all;
}

const OpInfo* find_op(std::string_view name) {
  static const auto& by_name = *[] {
    auto* ops = new std::unordered_map<std::string_view, const OpInfo*>;
    for (const OpInfo* op : all_ops()) ops->emplace(op->name, op);
    return ops;
  }();
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

}  // namespace retrograd::ops
