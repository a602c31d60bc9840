// See tracer/backward/check_pairs.h.
#include "tracer/backward/check_pairs.h"

#include <fmt/format.h>

#include "tracer/backward/capture.h"
#include "tracer/backward/packed_slots.h"
#include "tracer/observe/checks.h"

namespace retrograd::inline v0 {
namespace {

// The gradients of all leaves that the backward wants, by a new capture; none if there is nothing to check.
Tensors gradients(const BackwardRequest& request, bool inlines) {
  Walk walk = request.walk();
  Reached reached = walk.reached();
  const uint64_t packed = find_packed_slots(reached);
  const auto capture = Capture::record(request, walk, reached, inlines);
  if (inlines && (!capture->recorded().has_parts() || capture->recorded().log.may_leave)) return {};
  std::string misfit;
  std::vector<Number> numbers = capture->values(request, reached, misfit);
  const Trail trail(request, walk, packed);
  const auto entry = capture->make_plan({}, std::move(numbers));
  return capture->recorded().run(*entry->plan, request, reached, trail, entry->values).gradients;
}

}  // namespace

void check_inlined_pairs(const BackwardRequest& request) {
  if (request.create_graph) return;
  BackwardRequest probe = request;
  probe.accumulate = false;
  probe.retain_graph = true;
  if (!probe.to_inputs) {
    probe.to_inputs = true;
    probe.ends_at_inputs = true;  // no hooks of leaves
    const Walk walk = request.walk();
    for (const Walk::Leaf& leaf : walk.leaves()) probe.input_edges.emplace_back(leaf.leaf);
  }
  const Tensors inlined = gradients(probe, true);
  if (inlined.empty()) return;
  const Tensors called = gradients(probe, false);
  for (size_t i = 0; i < inlined.size(); ++i)
    if (!has_same_bits(inlined[i], called[i]))
      fail(Category::bad_argument, "backward",
           fmt::format(
               "gradient {}, {}, has other bits with the unpacks of traceable pairs in the graph than with "
               "unpacks that are called. Hint: a traceable pair computes its result from the payload alone",
               i, describe(inlined[i])),
           request.where);
}

}  // namespace retrograd
