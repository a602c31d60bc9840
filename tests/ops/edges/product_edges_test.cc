// Products with zeros, variances of one element, normalisations of equal ones, losses, sorting with ties.
// The numbers are PyTorch's; see edges.h.
#include "ops/creation.h"
#include "ops/losses.h"
#include "ops/norms.h"
#include "ops/reduce.h"
#include "ops/scan.h"
#include "ops/sort.h"
#include "ops/views.h"
#include "tests/ops/edges/edges.h"

namespace edges {
namespace {

// clang-format off
const std::vector<ListEdges> kTable{
    {"prod", [](const Tensor& x) { return rg::prod(x); }, {{"0,2,3", "0", "6,0,0"}, {"0,0,3", "0", "0,0,0"},
        {"0,0,0", "0", "0,0,0"}, {"2", "2", "1"}, {"0", "0", "1"}, {"nan,2", "nan", "2,nan"}, {"", "1",
        ""}, {"inf,2", "inf", "2,inf"}, {"-0.0,2", "-0.0", "2,-0.0"}}},
    {"prod dim", [](const Tensor& x) { return rg::prod(x, 0); }, {{"0,2,3", "0", "6,0,0"}, {"0,0,3", "0",
        "0,0,0"}, {"0,0,0", "0", "0,0,0"}, {"2", "2", "1"}, {"0", "0", "1"}, {"nan,2", "nan", "2,nan"},
        {"", "1", ""}, {"inf,2", "inf", "2,inf"}, {"-0.0,2", "-0.0", "2,-0.0"}}},
    {"cumprod", [](const Tensor& x) { return rg::cumprod(x, 0); }, {{"0,2,3", "0,0,0", "9,0,0"}, {"0,0,3",
        "0,0,0", "1,0,0"}, {"0,0,0", "0,0,0", "1,0,0"}, {"2", "2", "1"}, {"0", "0", "1"}, {"inf,0",
        "inf,nan", "1,inf"}, {"", "", ""}, {"-0.0,2", "-0.0,-0.0", "3,0"}, {"2,0,3,0,5", "2,0,0,0,0",
        "1,8,0,0,0"}}},
    {"cumsum", [](const Tensor& x) { return rg::cumsum(x, 0); }, {{"inf,-inf,1", "inf,nan,nan", "3,2,1"},
        {"nan,1", "nan,nan", "2,1"}, {"", "", ""}}},
    {"var 0", [](const Tensor& x) { return rg::var(x, 0, 0); }, {{"1", "0", "0"}, {"2,2", "0", "0,0"},
        {"1,2", "0.25", "-0.5,0.5"}, {"", "nan", ""}, {"inf,1", "nan", "nan,-inf"}, {"nan,1", "nan",
        "nan,nan"}, {"1e+200,-1e+200", "inf", "1e+200,-1e+200"}, {"3,3,3", "0", "0,0,0"}}},
    {"std 0", [](const Tensor& x) { return rg::std(x, 0, 0); }, {{"1", "0", "0"}, {"2,2", "0", "0,0"},
        {"1,2", "0.5", "-0.5,0.5"}, {"", "nan", ""}, {"inf,1", "nan", "nan,nan"}, {"nan,1", "nan",
        "nan,nan"}, {"1e+200,-1e+200", "1e+200", "0.5,-0.5"}, {"3,3,3", "0", "0,0,0"}}},
    {"var 1", [](const Tensor& x) { return rg::var(x, 0, 1); }, {{"1", "nan", "nan"}, {"2,2", "0", "0,0"},
        {"1,2", "0.5", "-1,1"}, {"", "nan", ""}, {"inf,1", "nan", "nan,-inf"}, {"nan,1", "nan", "nan,nan"},
        {"1e+200,-1e+200", "inf", "2e+200,-2e+200"}, {"3,3,3", "0", "0,0,0"}}},
    {"std 1", [](const Tensor& x) { return rg::std(x, 0, 1); }, {{"1", "nan", "nan"}, {"2,2", "0", "0,0"},
        {"1,2", "0.707106781187", "-0.707106781187,0.707106781187"}, {"", "nan", ""}, {"inf,1", "nan",
        "nan,nan"}, {"nan,1", "nan", "nan,nan"}, {"1e+200,-1e+200", "1.41421356237e+200", "0.707106781187,-0.707106781187"}, {"3,3,3", "0",
        "0,0,0"}}},
    {"var 2", [](const Tensor& x) { return rg::var(x, 0, 2); }, {{"1", "nan", "-0.0"}, {"2,2", "nan",
        "nan,nan"}, {"1,2", "inf", "-inf,inf"}, {"", "nan", ""}, {"inf,1", "nan", "nan,-inf"}, {"nan,1",
        "nan", "nan,nan"}, {"1e+200,-1e+200", "inf", "inf,-inf"}, {"3,3,3", "0", "0,0,0"}}},
    {"std 2", [](const Tensor& x) { return rg::std(x, 0, 2); }, {{"1", "nan", "nan"}, {"2,2", "nan",
        "nan,nan"}, {"1,2", "inf", "nan,nan"}, {"", "nan", ""}, {"inf,1", "nan", "nan,nan"}, {"nan,1",
        "nan", "nan,nan"}, {"1e+200,-1e+200", "inf", "nan,nan"}, {"3,3,3", "0", "0,0,0"}}},
    {"mean", [](const Tensor& x) { return rg::mean(x); }, {{"", "nan", ""}, {"inf,-inf", "nan", "0.5,0.5"},
        {"nan", "nan", "1"}, {"1e+308,1e+308", "inf", "0.5,0.5"}}},
    {"sum", [](const Tensor& x) { return rg::sum(x); }, {{"", "0", ""}, {"inf,-inf", "nan", "1,1"}, {"nan",
        "nan", "1"}, {"1e+308,1e+308", "inf", "1,1"}}},
    {"layer_norm", [](const Tensor& x) { return rg::select(rg::layer_norm(x, x.impl().shape()), 0, 0); },
        {{"1,1", "0", "158.113883008,-158.113883008"}, {"0,0,0", "0",
        "210.818510678,-105.409255339,-105.409255339"}, {"1e+200,-1e+200", "1", "0,0"}, {"inf,1", "nan",
        "nan,nan"}, {"nan,1,2", "nan", "nan,nan,nan"}, {"1e-30,0", "1.58113883008e-28",
        "158.113883008,-158.113883008"}, {"5", "0", "0"}}},
    {"rms_norm", [](const Tensor& x) { return rg::select(rg::rms_norm(x, x.impl().shape()), 0, 0); },
        {{"1,1", "1", "0.5,-0.5"}, {"0,0,0", "0", "67108864,0,0"}, {"1e+200,-1e+200", "1", "5e-201,5e-201"}, {"inf,1",
        "nan", "nan,nan"}, {"nan,1,2", "nan", "nan,nan,nan"}, {"1e-30,0", "6.7108864e-23", "67108864,0"}}},
    {"layer_norm eps 0", [](const Tensor& x) { return rg::select(rg::layer_norm(x, x.impl().shape(), {}, {},
        0.0), 0, 0); }, {{"1,1", "nan", "nan,nan"}, {"0,0,0", "nan", "nan,nan,nan"}, {"1e+200,-1e+200", "1", "0,0"}}},
    {"cross_entropy", [](const Tensor& x) { return rg::cross_entropy(x, rg::tensor({0}, {}, {rg::kInt64}));
        }, {{"10000,-10000", "0", "0,0"}, {"-inf,0", "inf", "-1,1"}, {"0,-inf", "0", "0,0"}, {"inf,0",
        "nan", "nan,nan"}, {"nan,0", "nan", "nan,nan"}, {"-10000,10000", "20000", "-1,1"}, {"5", "0",
        "0"}}},
    {"cross_entropy ignored", [](const Tensor& x) { return rg::cross_entropy(x, rg::tensor({0}, {},
        {rg::kInt64}), {}, "mean", 0); }, {{"10000,-10000", "nan", "0,0"}, {"-inf,0", "nan", "0,0"}}},
    {"nll_loss", [](const Tensor& x) { return rg::nll_loss(x, rg::tensor({0}, {}, {rg::kInt64})); },
        {{"10000,-10000", "-10000", "-1,0"}, {"-inf,0", "inf", "-1,0"}, {"0,-inf", "0", "-1,0"}, {"inf,0",
        "-inf", "-1,0"}, {"nan,0", "nan", "-1,0"}, {"-10000,10000", "10000", "-1,0"}, {"5", "-5", "-1"}}},
    {"cosine_similarity of itself", [](const Tensor& x) { return rg::cosine_similarity(x, x, 0); }, {{"0,0",
        "0", "0,0"}, {"1,2", "1", "5.55111512313e-17,1.11022302463e-16"}, {"1e-20,0", "1e-24", "0.0002,0"},
        {"inf,1", "nan", "nan,nan"}}},
    {"sort", [](const Tensor& x) { return rg::sort(x).values; }, {{"1,1", "1,1", "1,1"}, {"1,2,2", "1,2,2",
        "1,1,1"}, {"0,-0.0", "0,-0.0", "1,1"}, {"nan,1", "1,nan", "1,1"}, {"1,nan,nan", "1,nan,nan",
        "1,1,1"}, {"inf,inf", "inf,inf", "1,1"}, {"-inf,-inf", "-inf,-inf", "1,1"}, {"3", "3", "1"},
        {"-inf,inf", "-inf,inf", "1,1"}}},
    {"topk", [](const Tensor& x) { return rg::topk(x, 1).values; }, {{"nan,1", "nan", "1,0"}, {"2,1", "2",
        "1,0"}, {"-inf,inf", "inf", "0,1"}}},
};
// clang-format on

TEST_CASE("products, variances, normalisations, losses, sorting at the edges") { check_list(kTable); }

}  // namespace
}  // namespace edges
