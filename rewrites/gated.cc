// The ops of the pass `gated_derivatives`.
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "rewrites/rewrites.h"
#include "rewrites/rules.h"

namespace retrograd::inline v0::rewrites {
namespace {

constexpr ops::Mul::Attrs kNoNumber{};

template <class F>
constexpr ir::GatedOps gated{
    op<F>, op<ops::Backward<F>>, op<ops::Gate<F>>, op<ops::Slope<F>>, op<ops::Mul>, &kNoNumber};

constexpr ir::GatedOps kGated[] = {gated<ops::Silu>, gated<ops::Gelu>};

}  // namespace

std::span<const ir::GatedOps> gated_activations() { return kGated; }

}  // namespace retrograd::rewrites
