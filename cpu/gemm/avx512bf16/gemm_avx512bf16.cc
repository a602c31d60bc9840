// Matrix products of bfloat16 by AVX-512 BF16, a level of its own next to the three of cpu/gemm/levels:
// see cpu/gemm/levels/gemm_kernels.h.
//
// vdpbf16ps adds both products of a pair to a float. It treats subnormal operands as zeros, returns zeros for
// subnormal sums, and rounds after each product: results are within a few float roundings of exact sums, far below
// the rounding to bfloat16, except for products with subnormal numbers.
#include "cpu/gemm/levels/gemm_pack_bfloat16.h"
#include "cpu/gemm/levels/gemm_panels.h"

#ifndef __AVX512BF16__
#error "this file needs AVX-512 BF16"
#endif

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr GemmKernels<BFloat16> kKernels{.rows = kRows,
                                         .columns = kColumns,
                                         .row_panels = kRowPanels<BFloat16>,
                                         .column_panels = kColumnPanels,
                                         .near_b = kNearB,
                                         .far_step = kFarStep,
                                         .block = block<BFloat16>,
                                         .pack = pack};

}  // namespace

const GemmKernels<BFloat16>& gemm_kernels() { return kKernels; }

}  // namespace retrograd::cpu::RG_ISA
