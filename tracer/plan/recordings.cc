// See tracer/plan/recordings.h.
#include "tracer/plan/recordings.h"

#include <algorithm>
#include <bit>

namespace retrograd::inline v0 {

Recordings::Recordings(const Program& program)
    : segments(program.segments.list.size()),
      memory(program.layout.count()),
      is_copied(program.layout.count()) {
  for (size_t i = 0; i < segments.size(); ++i) {
    segments[i].reads.resize(program.segments.list[i].reads.size());
    segments[i].memory.resize(program.segments.list[i].memory.size());
  }
}

Recordings::Updates::Updates(const Program& program, const Step& s)
    : is_cut_(program.fused_of(s).attrs.size()) {
  const size_t bytes = program.node(s).op->attrs_size;
  for (const StepAttrs& attrs : program.fused_of(s).attrs)
    numbers_.push_back(program.attrs.patches(attrs, bytes));
}

bool Recordings::Updates::is_parted(size_t n, const Frame& frame) const {
  using Patch = AttrTable::Patch;
  const auto is_same = [&](const Patch& p, const Patch& q) {
    const double a = reinterpret_cast<const Scalar*>(frame.patched.data() + p.at)->to_double(),
                 b = reinterpret_cast<const Scalar*>(frame.patched.data() + q.at)->to_double();
    return a == b || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  };
  return !std::ranges::equal(numbers_[n - 1], numbers_[n], is_same);
}

void Recordings::Updates::cut(const Frame& frame) {
  for (size_t n = 1; n < numbers_.size(); ++n) is_cut_[n] = is_cut_[n] || is_parted(n, frame);
}

bool Recordings::Updates::have_parted(const Frame& frame) const {
  for (size_t n = 1; n < numbers_.size(); ++n)
    if (!is_cut_[n] && is_parted(n, frame)) return true;
  return false;
}

}  // namespace retrograd
