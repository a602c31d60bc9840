// Rows of factorisations, at orders and numbers of matrices around the point where a device's kernels and its vendor's
// library are equally fast.
#include "benchmarks/op_rows/row.h"

namespace bench {
namespace {

// The factors cost much more than the values computed from them.
rg::Tensor lu(In t) { return rg::slogdet(t[0]).logabsdet; }
rg::Tensor cholesky(In t) { return rg::cholesky(t[0]); }

}  // namespace

Table factorisation_rows() {
  return {
      {"lu_64", "s:64,64", lu, 2 * cube(64) / 3},
      {"lu_128", "s:128,128", lu, 2 * cube(128) / 3},
      {"lu_256", "s:256,256", lu, 2 * cube(256) / 3},
      {"lu_512", "s:512,512", lu, 2 * cube(512) / 3},
      {"lu_1024", "s:1024,1024", lu, 2 * cube(1024) / 3},
      {"lu_2048", "s:2048,2048", lu, 2 * cube(2048) / 3},
      {"lu_4x128", "s:4,128,128", lu, 2 * 4 * cube(128) / 3},
      {"lu_16x128", "s:16,128,128", lu, 2 * 16 * cube(128) / 3},
      {"lu_64x128", "s:64,128,128", lu, 2 * 64 * cube(128) / 3},
      {"lu_4x512", "s:4,512,512", lu, 2 * 4 * cube(512) / 3},
      {"lu_16x512", "s:16,512,512", lu, 2 * 16 * cube(512) / 3},
      {"lu_64x512", "s:64,512,512", lu, 2 * 64 * cube(512) / 3},
      {"lu_4x1024", "s:4,1024,1024", lu, 2 * 4 * cube(1024) / 3},
      {"lu_16x1024", "s:16,1024,1024", lu, 2 * 16 * cube(1024) / 3},
      {"cholesky_64", "s:64,64", cholesky, cube(64) / 3},
      {"cholesky_128", "s:128,128", cholesky, cube(128) / 3},
      {"cholesky_256", "s:256,256", cholesky, cube(256) / 3},
      {"cholesky_512", "s:512,512", cholesky, cube(512) / 3},
      {"cholesky_1024", "s:1024,1024", cholesky, cube(1024) / 3},
      {"cholesky_2048", "s:2048,2048", cholesky, cube(2048) / 3},
      {"cholesky_4x128", "s:4,128,128", cholesky, 4 * cube(128) / 3},
      {"cholesky_16x128", "s:16,128,128", cholesky, 16 * cube(128) / 3},
      {"cholesky_64x128", "s:64,128,128", cholesky, 64 * cube(128) / 3},
      {"cholesky_4x512", "s:4,512,512", cholesky, 4 * cube(512) / 3},
      {"cholesky_16x512", "s:16,512,512", cholesky, 16 * cube(512) / 3},
      {"cholesky_64x512", "s:64,512,512", cholesky, 64 * cube(512) / 3},
      {"cholesky_4x1024", "s:4,1024,1024", cholesky, 4 * cube(1024) / 3},
      {"cholesky_16x1024", "s:16,1024,1024", cholesky, 16 * cube(1024) / 3},
  };
}

}  // namespace bench
