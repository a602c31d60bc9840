// Emitter defaults, and the text of a failed call.
#include "engine/emitter.h"

#include <fmt/format.h>

#include "engine/batching.h"
#include "engine/region.h"
#include "engine/runner.h"

namespace retrograd::inline v0 {

const void* Emitter::attrs_of(const Record& record) { return record.attrs(); }
const void* Emitter::attrs_of(const Region& region, size_t call) {
  return region.attrs(region.calls()[call]);
}
TensorType Emitter::type_of(const Record& record, int i) {
  return i < record.operands ? record.operand_type(i) : record.output_type(i - record.operands);
}

std::string_view no_data_text(const TensorImpl& value) {
  if (is_batched(value))
    return Batching::innermost() ? "vmap: It looks like you're calling .item() on a Tensor, or reading its "
                                   "data in another way. It stands "
                                   "for all samples of a batch at once. Hint: where() in place of a branch, "
                                   "or do this outside of vmap"
                                 : "a value of vmap has no data: it was made in the function of a vmap that "
                                   "is over. Hint: return it from the function";
  return Emitter::current().is_symbolic()
             ? "a value of a recorded graph has no data. Hint: recorded code, a rule or a traceable hook may "
               "not read values"
             : "a value of a recorded graph has no data: it was made while a function was recorded, which is "
               "over. Hint: return it from the function";
}

Emitter& eager_runner() {
  static Runner runner(cpu_executor());
  return runner;
}

Emitter& eager_emitter() {
  static Taper taper(eager_runner());
  return taper;
}

void fail_counts(std::string_view op, size_t operands, size_t results, SourceLocation where) {
  fail(Category::unsupported, op,
       fmt::format(
           "{} operands and {} results: there are at most {}. Hint: of a compiled function each argument, "
           "each leaf from outside and each result is one; join some with stack or cat",
           operands, results, kMaxOperands),
       where);
}

void fail_call(const Call& call, Category category, std::string_view text) {
  constexpr size_t kMostNamed = 16;
  std::string operands;
  for (const TensorImpl* x : call.operands.first(std::min(call.operands.size(), kMostNamed)))
    operands += (operands.empty() ? "" : ", ") + (x ? to_string(x->type()) : "none");
  if (call.operands.size() > kMostNamed)
    operands += fmt::format(" and {} more", call.operands.size() - kMostNamed);
  fail(category, call.op->name, fmt::format("{}. Operands: {}", text, operands.empty() ? "none" : operands),
       call.where);
}

}  // namespace retrograd
