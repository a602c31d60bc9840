// Rows of decompositions, functions of matrices and products beyond matmul, from batches of 8 x 8 to 512 x 512.
#include "benchmarks/op_rows/row.h"

namespace bench {
namespace {

namespace linalg = rg::linalg;

rg::Tensor eigh(In t) { return linalg::eigh(t[0]).eigenvectors; }
rg::Tensor eigvalsh(In t) { return linalg::eigvalsh(t[0]); }
rg::Tensor svd(In t) { return linalg::svd(t[0], false).U; }
rg::Tensor svdvals(In t) { return linalg::svdvals(t[0]); }
rg::Tensor qr(In t) { return linalg::qr(t[0]).Q; }
rg::Tensor lu_factor(In t) { return linalg::lu_factor(t[0]).LU; }
rg::Tensor pinv(In t) { return linalg::pinv(t[0]); }
rg::Tensor lstsq(In t) { return linalg::lstsq(t[0], t[1]); }
rg::Tensor matrix_exp(In t) { return rg::matrix_exp(t[0] * 0.01); }

}  // namespace

Table decomposition_rows() {
  return {
      {"eigh", "s:512,512", eigh},
      {"eigh_128", "s:128,128", eigh},
      {"eigh_batch", "s:1024,8,8", eigh},
      {"eigvalsh", "s:512,512", eigvalsh},
      {"svd", "x:512,512", svd},
      {"svd_32", "x:16,32,32", svd},
      {"svd_128", "x:128,128", svd},
      {"svd_batch", "x:1024,8,8", svd},
      {"svdvals", "x:512,512", svdvals},
      {"qr", "x:512,512", qr},
      {"qr_tall", "x:4096,64", qr},
      {"qr_batch", "x:1024,8,8", qr},
      {"lu_factor", "x:512,512", lu_factor},
      {"lu_factor_batch", "x:1024,8,8", lu_factor},
      {"pinv", "x:256,256", pinv},
      {"pinv_batch", "x:1024,8,8", pinv},
      {"lstsq", "x:512,256 x:512,8", lstsq},
      {"lstsq_batch", "x:1024,8,4 x:1024,8,2", lstsq},
      {"matrix_exp", "x:256,256", matrix_exp},
      {"matrix_exp_batch", "x:1024,8,8", matrix_exp},
      {"cholesky_solve", "s:512,512 x:512,64", [](In t) { return rg::cholesky_solve(t[1], t[0]); }},
      {"cholesky_inverse", "s:512,512", [](In t) { return rg::cholesky_inverse(t[0]); }},
      {"matrix_norm_nuc", "x:256,256", [](In t) { return linalg::matrix_norm(t[0], "nuc"); }},
      {"matrix_norm_1", "x:1024,1024", [](In t) { return linalg::matrix_norm(t[0], 1); }},
      {"cross", "x:100000,3 x:100000,3", [](In t) { return linalg::cross(t[0], t[1]); }},
      {"vecdot", "x:1024,1024 x:1024,1024", [](In t) { return linalg::vecdot(t[0], t[1]); }},
      {"multi_dot", "x:512,16 x:16,512 x:512,16",
       [](In t) {
         return linalg::multi_dot({t[0], t[1], t[2]});
       }},
      {"inner", "x:256,512 x:256,512", [](In t) { return rg::inner(t[0], t[1]); }},
      {"addbmm", "x:128,128 x:32,128,64 x:32,64,128", [](In t) { return rg::addbmm(t[0], t[1], t[2]); }},
      {"addmv", "x:1024 x:1024,1024 x:1024", [](In t) { return rg::addmv(t[0], t[1], t[2]); }},
      {"addr", "x:1024,1024 x:1024 x:1024", [](In t) { return rg::addr(t[0], t[1], t[2]); }},
  };
}

}  // namespace bench
