// See tracer/backward/drive_log.h.
#include "tracer/backward/drive_log.h"

#include <utility>

namespace retrograd::inline v0 {

std::vector<ir::ValueId> DriveLog::values() const {
  std::vector<ir::ValueId> all(lists.begin(), lists.end());
  for (const Event& e : events)
    if (e.kind == Kind::arrived || e.kind == Kind::captured) all.push_back(e.value);
  return all;
}

std::vector<KeptValue> DriveLog::kept() const {
  std::vector<KeptValue> kept;
  std::vector<ir::ValueId> arrived;  // by the gradient's number
  const auto keep = [&](ir::ValueId v, uint32_t node) {
    if (v != ir::kNoValue) kept.push_back({v, node});
  };
  const auto use = [&](size_t grad, uint32_t node) {
    if (grad < arrived.size()) keep(std::exchange(arrived[grad], ir::kNoValue), node);
  };
  for (const Event& e : events) {
    switch (e.kind) {
      case Kind::arrived:
        if (arrived.size() <= e.index) arrived.resize(e.index + 1, ir::kNoValue);
        arrived[e.index] = e.value;
        break;
      case Kind::record:
        for (uint32_t i = 0; i < e.count; ++i) use(static_cast<size_t>(e.value) + i, e.node);
        break;
      case Kind::leaf: use(static_cast<size_t>(e.value), e.node); break;
      case Kind::gave:
        for (uint32_t i = 0; i < e.count; ++i) keep(lists[static_cast<size_t>(e.value) + i], e.node);
        break;
      case Kind::captured: break;
    }
  }
  return kept;
}

}  // namespace retrograd
