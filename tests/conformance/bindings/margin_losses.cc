// Losses of margins, likelihoods and alignments, and functions of pairs of vectors.
#include "ops/margin_losses.h"
#include "ops/ctc_loss.h"
#include "ops/likelihood_losses.h"
#include "ops/vector_pairs.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

constexpr Binding kBindings[] = {
    {"bilinear", call<bilinear>},
    {"pairwise_distance", call<pairwise_distance>},
    {"margin_ranking_loss", call<margin_ranking_loss>},
    {"cosine_embedding_loss", call<cosine_embedding_loss>},
    {"hinge_embedding_loss", call<hinge_embedding_loss>},
    {"triplet_margin_loss", call<triplet_margin_loss>},
    {"multi_margin_loss", call<multi_margin_loss>},
    {"multilabel_margin_loss", call<multilabel_margin_loss>},
    {"soft_margin_loss", call<soft_margin_loss>},
    {"multilabel_soft_margin_loss", call<multilabel_soft_margin_loss>},
    {"poisson_nll_loss", call<poisson_nll_loss>},
    {"gaussian_nll_loss", call<gaussian_nll_loss>},
    {"ctc_loss", call<ctc_loss>},
};

}  // namespace

BindingList margin_loss_bindings() { return kBindings; }

}  // namespace retrograd::conformance
