// Rows of convolutions, pools and interpolation at the sizes of usual models.
#include "benchmarks/op_rows/row.h"

namespace bench {
namespace {

// Multiplications and additions of a convolution with `results` results, of `taps` products each.
double products(double results, double taps) { return 2 * results * taps; }

rg::Tensor resize(In t, std::string_view mode) {
  return rg::interpolate(t[0], {.scale_factor = 2.0, .mode = std::string(mode)});
}

}  // namespace

Table window_rows() {
  return {
      {"conv1d", "x:8,64,1024 x:64,64,3 x:64", [](In t) { return rg::conv1d(t[0], t[1], t[2], 1, 1); },
       products(8. * 64 * 1024, 64 * 3)},
      {"conv2d_7x7_rgb", "~x:4,3,224,224 x:64,3,7,7 x:64",
       [](In t) { return rg::conv2d(t[0], t[1], t[2], 2, 3); }, products(4. * 64 * 112 * 112, 3 * 49)},
      {"conv2d_3x3", "x:8,64,56,56 x:64,64,3,3", [](In t) { return rg::conv2d(t[0], t[1], {}, 1, 1); },
       products(8. * 64 * 56 * 56, 64 * 9)},
      {"conv2d_3x3_deep", "x:8,512,7,7 x:512,512,3,3", [](In t) { return rg::conv2d(t[0], t[1], {}, 1, 1); },
       products(8. * 512 * 49, 512 * 9)},
      {"conv2d_3x3_stride", "x:8,64,56,56 x:128,64,3,3",
       [](In t) { return rg::conv2d(t[0], t[1], {}, 2, 1); }, products(8. * 128 * 28 * 28, 64 * 9)},
      {"conv2d_1x1", "x:8,256,28,28 x:128,256,1,1", [](In t) { return rg::conv2d(t[0], t[1]); },
       products(8. * 128 * 28 * 28, 256)},
      {"conv2d_dilated", "x:8,64,28,28 x:64,64,3,3", [](In t) { return rg::conv2d(t[0], t[1], {}, 1, 2, 2); },
       products(8. * 64 * 28 * 28, 64 * 9)},
      {"conv2d_small", "x:1,8,16,16 x:8,8,3,3 x:8", [](In t) { return rg::conv2d(t[0], t[1], t[2], 1, 1); },
       products(8. * 16 * 16, 8 * 9)},
      {"conv2d_depthwise", "x:8,96,56,56 x:96,1,3,3",
       [](In t) { return rg::conv2d(t[0], t[1], {}, 1, 1, 1, 96); }, products(8. * 96 * 56 * 56, 9)},
      {"conv2d_groups", "x:8,64,28,28 x:64,8,3,3",
       [](In t) { return rg::conv2d(t[0], t[1], {}, 1, 1, 1, 8); }, products(8. * 64 * 28 * 28, 8 * 9)},
      {"conv3d", "x:2,16,16,28,28 x:32,16,3,3,3", [](In t) { return rg::conv3d(t[0], t[1], {}, 1, 1); },
       products(2. * 32 * 16 * 28 * 28, 16 * 27)},
      {"conv_transpose2d", "x:8,64,28,28 x:64,32,4,4",
       [](In t) { return rg::conv_transpose2d(t[0], t[1], {}, 2, 1); }, products(8. * 64 * 28 * 28, 32 * 16)},

      {"max_pool1d", "x:16,64,1024", [](In t) { return rg::max_pool1d(t[0], 2); }},
      {"max_pool2d", "x:16,64,56,56", [](In t) { return rg::max_pool2d(t[0], 2); }},
      {"max_pool2d_3x3", "x:16,64,56,56", [](In t) { return rg::max_pool2d(t[0], 3, 2, 1); }},
      {"avg_pool1d", "x:16,64,1024", [](In t) { return rg::avg_pool1d(t[0], 2); }},
      {"avg_pool2d", "x:16,64,56,56", [](In t) { return rg::avg_pool2d(t[0], 2); }},
      {"avg_pool2d_3x3", "x:16,64,56,56", [](In t) { return rg::avg_pool2d(t[0], 3, 1, 1); }},
      {"adaptive_avg_pool2d_1", "x:16,512,7,7", [](In t) { return rg::adaptive_avg_pool2d(t[0], 1); }},
      {"adaptive_avg_pool2d_7", "x:16,64,56,56", [](In t) { return rg::adaptive_avg_pool2d(t[0], 7); }},
      {"adaptive_max_pool2d_7", "x:16,64,56,56", [](In t) { return rg::adaptive_max_pool2d(t[0], 7); }},
      {"max_pool3d", "x:4,16,16,28,28", [](In t) { return rg::max_pool3d(t[0], 2); }},

      {"interpolate_nearest", "x:16,64,28,28", [](In t) { return resize(t, "nearest"); }},
      {"interpolate_linear", "x:16,64,1024", [](In t) { return resize(t, "linear"); }},
      {"interpolate_bilinear", "x:16,64,28,28", [](In t) { return resize(t, "bilinear"); }},
      {"interpolate_bicubic", "x:16,64,28,28", [](In t) { return resize(t, "bicubic"); }},
      {"interpolate_area", "x:16,64,56,56",
       [](In t) { return rg::interpolate(t[0], {.size = 28, .mode = "area"}); }},
  };
}

}  // namespace bench
