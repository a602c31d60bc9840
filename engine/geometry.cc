// See engine/geometry.h.
#include "engine/geometry.h"

namespace retrograd::inline v0::ops {

Geometry geometry_of(const TensorImpl& view, const TensorImpl& base) {
  Geometry g;
  g.size = view.shape();
  for (int i = 0; i < view.rank(); ++i) g.stride.push_back(view.stride(i));
  g.offset = view.offset() - base.offset();
  for (int i = 0; i < base.rank(); ++i) g.base_stride.push_back(base.stride(i));
  g.base_is_dense = base.is_contiguous();
  return g;
}

}  // namespace retrograd::ops
