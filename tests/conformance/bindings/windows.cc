// Windows, grids and channels: pools in an L^p norm, fold and unfold, grid_sample, shuffles, bags of embeddings.
#include "ops/channels.h"
#include "ops/embedding_bag.h"
#include "ops/grid_sample.h"
#include "ops/patches.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

Tensor affine_grid_of(Operand theta, const IntArray& size, std::optional<bool> align_corners) {
  return affine_grid(theta, size, align_corners);
}

constexpr Binding kBindings[] = {
    {"lp_pool2d", call<lp_pool2d>},
    {"fold", call<col2im>},
    {"unfold2d", call<im2col>},
    {"grid_sample", call<grid_sample>},
    {"affine_grid", call<affine_grid_of>},
    {"pixel_shuffle", call<pixel_shuffle>},
    {"pixel_unshuffle", call<pixel_unshuffle>},
    {"channel_shuffle", call<channel_shuffle>},
    {"local_response_norm", call<local_response_norm>},
    {"embedding_bag", call<embedding_bag>},
};

}  // namespace

BindingList window_bindings() { return kBindings; }

}  // namespace retrograd::conformance
