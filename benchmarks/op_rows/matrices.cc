// Rows of matrix products, linear algebra and attention at the sizes of usual models.
#include "benchmarks/op_rows/row.h"

namespace bench {
namespace {

rg::Tensor attend(In t, bool is_causal) {
  return rg::scaled_dot_product_attention(t[0], t[1], t[2], {}, 0.0, is_causal);
}

}  // namespace

Table matrix_rows() {
  return {
      {"mm_32", "x:32,32 x:32,32", [](In t) { return rg::mm(t[0], t[1]); }, 2 * cube(32)},
      {"mm_128", "x:128,128 x:128,128", [](In t) { return rg::mm(t[0], t[1]); }, 2 * cube(128)},
      {"mm_512", "x:512,512 x:512,512", [](In t) { return rg::mm(t[0], t[1]); }, 2 * cube(512)},
      {"mm_1024", "x:1024,1024 x:1024,1024", [](In t) { return rg::mm(t[0], t[1]); }, 2 * cube(1024)},
      {"mm_transposed", "x:512,512 x:512,512", [](In t) { return rg::mm(rg::t(t[0]), t[1]); }, 2 * cube(512)},
      {"mm_tall", "x:16384,64 x:64,64", [](In t) { return rg::mm(t[0], t[1]); }, 2. * 16384 * 64 * 64},
      {"mm_inner", "x:64,16384 x:16384,64", [](In t) { return rg::mm(t[0], t[1]); }, 2. * 16384 * 64 * 64},
      {"mm_f64", "d:512,512 d:512,512", [](In t) { return rg::mm(t[0], t[1]); }, 2 * cube(512)},
      {"mm_bf16", "h:512,512 h:512,512", [](In t) { return rg::mm(t[0], t[1]); }, 2 * cube(512)},
      {"mv", "x:2048,2048 x:2048", [](In t) { return rg::mv(t[0], t[1]); }},
      {"vm", "x:2048 x:2048,2048", [](In t) { return rg::matmul(t[0], t[1]); }},
      {"dot", "x:n x:n", [](In t) { return rg::dot(t[0], t[1]); }},
      {"outer", "x:2048 x:2048", [](In t) { return rg::outer(t[0], t[1]); }},
      {"bmm_64", "x:96,64,64 x:96,64,64", [](In t) { return rg::bmm(t[0], t[1]); }, 2 * 96 * cube(64)},
      {"bmm_4", "x:4096,4,4 x:4096,4,4", [](In t) { return rg::bmm(t[0], t[1]); }},
      {"matmul_shared", "x:8,256,768 x:768,768", [](In t) { return rg::matmul(t[0], t[1]); },
       2. * 8 * 256 * 768 * 768},
      {"linear_small", "x:32,64 x:64,64 x:64", [](In t) { return rg::linear(t[0], t[1], t[2]); },
       2. * 32 * 64 * 64},
      {"linear", "x:512,768 x:3072,768 x:3072", [](In t) { return rg::linear(t[0], t[1], t[2]); },
       2. * 512 * 768 * 3072},
      {"addmm", "x:512,512 x:512,512 x:512,512", [](In t) { return rg::addmm(t[0], t[1], t[2]); },
       2 * cube(512)},
      {"einsum_bhqk", "x:8,128,8,64 x:8,128,8,64",
       [](In t) {
         return rg::einsum("bqhd,bkhd->bhqk", {t[0], t[1]});
       },
       2. * 64 * 128 * 128 * 64},
      {"tensordot", "x:64,32,32 x:32,32,64", [](In t) { return rg::tensordot(t[0], t[1], 2); },
       2. * 64 * 64 * 1024},

      {"cholesky", "s:512,512", [](In t) { return rg::cholesky(t[0]); }, cube(512) / 3},
      {"cholesky_batch", "s:1024,8,8", [](In t) { return rg::cholesky(t[0]); }},
      {"inverse", "s:512,512", [](In t) { return rg::inverse(t[0]); }, 2 * cube(512)},
      {"inverse_batch", "s:1024,8,8", [](In t) { return rg::inverse(t[0]); }},
      {"det", "s:256,256", [](In t) { return rg::det(t[0]); }, 2 * cube(256) / 3},
      {"slogdet_batch", "s:1024,8,8", [](In t) { return rg::slogdet(t[0]).logabsdet; }},
      {"solve", "s:512,512 x:512,64", [](In t) { return rg::solve(t[0], t[1]); }, 2 * cube(512) / 3},
      {"solve_batch", "s:1024,8,8 x:1024,8,4", [](In t) { return rg::solve(t[0], t[1]); }},
      {"solve_triangular", "s:512,512 x:512,512",
       [](In t) { return rg::solve_triangular(t[0], t[1], false); }, cube(512)},
      {"matrix_power", "s:256,256", [](In t) { return rg::matrix_power(t[0], 5); }, 6 * cube(256)},
      {"trace", "x:1024,1024", [](In t) { return rg::trace(t[0]); }},

      {"attention", "x:2,12,512,64 x:2,12,512,64 x:2,12,512,64", [](In t) { return attend(t, false); },
       4. * 24 * 512 * 512 * 64},
      {"attention_causal", "x:2,12,512,64 x:2,12,512,64 x:2,12,512,64", [](In t) { return attend(t, true); },
       2. * 24 * 512 * 512 * 64},
      {"attention_short", "x:64,4,32,16 x:64,4,32,16 x:64,4,32,16", [](In t) { return attend(t, true); },
       2. * 256 * 32 * 32 * 16},
  };
}

}  // namespace bench
