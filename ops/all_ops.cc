// The list of all ops (ops/all_ops.h): the engine's bookkeeping ops and the families' type lists (ops/families.h), put
// together on first use. Used by graph readers, the plan cache, documents and tests, and never by a call of an op.
#include "ops/all_ops.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include "engine/bookkeeping.h"
#include "engine/error.h"
#include "ops/families.h"

namespace retrograd::inline v0::ops {
namespace {

// Arrays of static lifetime: the list may be needed while the process ends, so it must not be destroyed, and heap
// memory that is never freed would leak from an unloaded library.
constexpr size_t kMost = 1024;

struct AllOps {
  std::array<const OpInfo*, kMost> in_order, by_name;
  size_t count = 0;

  AllOps() {
    for (const OpInfo* op : {&unpack, &hook, &accumulate, &accumulate_grad, &retain_grad, &function_backward,
                             &pack, &function, &post_accumulate, &give_grad, &write_out, &begin_backward,
                             &end_backward, &note_versions, &check_version})
      add(op);
    for_each_family(
        [&]<class List>(std::string_view) { List::for_each([&]<class Op>() { add(&info<Op>); }); });
    by_name = in_order;
    std::sort(by_name.begin(), by_name.begin() + static_cast<ptrdiff_t>(count),
              [](const OpInfo* a, const OpInfo* b) { return a->name < b->name; });
  }
  void add(const OpInfo* op) {
    RG_ASSERT(count < kMost);
    in_order[count++] = op;
  }
};
static_assert(std::is_trivially_destructible_v<AllOps>);

const AllOps& all() {
  static const AllOps all;
  return all;
}

}  // namespace

std::span<const OpInfo* const> all_ops() { return {all().in_order.data(), all().count}; }

const OpInfo* find_op(std::string_view name) {
  const auto begin = all().by_name.begin(), end = begin + static_cast<ptrdiff_t>(all().count);
  const auto it =
      std::lower_bound(begin, end, name, [](const OpInfo* op, std::string_view n) { return op->name < n; });
  return it != end && (*it)->name == name ? *it : nullptr;
}

}  // namespace retrograd::ops
