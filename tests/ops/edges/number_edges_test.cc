// Powers, quotients and losses of one number with a second, fixed one.
// The numbers are PyTorch's; see edges.h.
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/creation.h"
#include "ops/losses.h"
#include "ops/unary.h"
#include "tests/ops/edges/edges.h"

namespace edges {
namespace {

// clang-format off
const std::vector<UnaryEdges> kTable{
    {"pow 0.0", [](const Tensor& x) { return rg::pow(x, 0.0); }, {{0, 1, 0}, {-0.0, 1, 0}, {inf, 1, 0},
        {-inf, 1, 0}, {nan, 1, 0}, {-1, 1, 0}, {1, 1, 0}, {-2.5, 1, 0}}},
    {"pow 1.0", [](const Tensor& x) { return rg::pow(x, 1.0); }, {{0, 0, 1}, {-0.0, -0.0, 1}, {inf, inf, 1},
        {-inf, -inf, 1}, {nan, nan, 1}, {-1, -1, 1}, {1, 1, 1}, {-2.5, -2.5, 1}}},
    {"pow 2.0", [](const Tensor& x) { return rg::pow(x, 2.0); }, {{0, 0, 0}, {-0.0, 0, -0.0}, {inf, inf,
        inf}, {-inf, inf, -inf}, {nan, nan, nan}, {-1, 1, -2}, {1, 1, 2}, {-2.5, 6.25, -5}}},
    {"pow 3.0", [](const Tensor& x) { return rg::pow(x, 3.0); }, {{0, 0, 0}, {-0.0, -0.0, 0}, {inf, inf,
        inf}, {-inf, -inf, inf}, {nan, nan, nan}, {-1, -1, 3}, {1, 1, 3}, {-2.5, -15.625, 18.75}}},
    {"pow -1.0", [](const Tensor& x) { return rg::pow(x, -1.0); }, {{0, inf, -inf}, {-0.0, -inf, -inf},
        {inf, 0, -0.0}, {-inf, -0.0, -0.0}, {nan, nan, nan}, {-1, -1, -1}, {1, 1, -1}, {-2.5, -0.4,
        -0.16}}},
    {"pow -2.0", [](const Tensor& x) { return rg::pow(x, -2.0); }, {{0, inf, -inf}, {-0.0, inf, inf}, {inf,
        0, -0.0}, {-inf, 0, 0}, {nan, nan, nan}, {-1, 1, 2}, {1, 1, -2}, {-2.5, 0.16, 0.128}}},
    {"pow 0.5", [](const Tensor& x) { return rg::pow(x, 0.5); }, {{0, 0, inf}, {-0.0, -0.0, -inf}, {inf,
        inf, 0}, {-inf, nan, nan}, {nan, nan, nan}, {-1, nan, nan}, {1, 1, 0.5}, {-2.5, nan, nan}}},
    {"pow -0.5", [](const Tensor& x) { return rg::pow(x, -0.5); }, {{0, inf, -inf}, {-0.0, -inf, -inf},
        {inf, 0, -0.0}, {-inf, nan, -0.0}, {nan, nan, nan}, {-1, nan, nan}, {1, 1, -0.5}, {-2.5, nan,
        nan}}},
    {"pow 1.5", [](const Tensor& x) { return rg::pow(x, 1.5); }, {{0, 0, 0}, {-0.0, 0, -0.0}, {inf, inf,
        inf}, {-inf, inf, nan}, {nan, nan, nan}, {-1, nan, nan}, {1, 1, 1.5}, {-2.5, nan, nan}}},
    {"pow inf", [](const Tensor& x) { return rg::pow(x, inf); }, {{0, 0, nan}, {-0.0, 0, nan}, {inf, inf,
        inf}, {-inf, inf, inf}, {nan, nan, nan}, {-1, 1, inf}, {1, 1, inf}, {-2.5, inf, inf}}},
    {"pow -inf", [](const Tensor& x) { return rg::pow(x, -inf); }, {{0, inf, -inf}, {-0.0, inf, -inf}, {inf,
        0, nan}, {-inf, 0, nan}, {nan, nan, nan}, {-1, 1, -inf}, {1, 1, -inf}, {-2.5, 0, nan}}},
    {"pow nan", [](const Tensor& x) { return rg::pow(x, nan); }, {{0, nan, nan}, {-0.0, nan, nan}, {inf,
        nan, nan}, {-inf, nan, nan}, {nan, nan, nan}, {-1, nan, nan}, {1, 1, nan}, {-2.5, nan, nan}}},
    {"0.0 pow", [](const Tensor& x) { return rg::pow(0.0, x); }, {{0, 1, 0}, {-0.0, 1, 0}, {inf, 0, 0},
        {-inf, inf, -inf}, {nan, nan, nan}, {-1, inf, -inf}, {1, 0, 0}}},
    {"1.0 pow", [](const Tensor& x) { return rg::pow(1.0, x); }, {{0, 1, 0}, {-0.0, 1, 0}, {inf, 1, 0},
        {-inf, 1, 0}, {nan, 1, 0}, {-1, 1, 0}, {1, 1, 0}}},
    {"2.0 pow", [](const Tensor& x) { return rg::pow(2.0, x); }, {{0, 1, 0.69314718056}, {-0.0, 1,
        0.69314718056}, {inf, inf, inf}, {-inf, 0, 0}, {nan, nan, nan}, {-1, 0.5, 0.34657359028}, {1, 2,
        1.38629436112}}},
    {"-1.0 pow", [](const Tensor& x) { return rg::pow(-1.0, x); }, {{0, 1, nan}, {-0.0, 1, nan}, {inf, 1,
        nan}, {-inf, 1, nan}, {nan, nan, nan}, {-1, -1, nan}, {1, -1, nan}}},
    {"inf pow", [](const Tensor& x) { return rg::pow(inf, x); }, {{0, 1, inf}, {-0.0, 1, inf}, {inf, inf,
        inf}, {-inf, 0, nan}, {nan, nan, nan}, {-1, 0, nan}, {1, inf, inf}}},
    {"1 / x", [](const Tensor& x) { return 1 / x; }, {{0, inf, -inf}, {-0.0, -inf, -inf}, {inf, 0, -0.0},
        {-inf, -0.0, -0.0}, {nan, nan, nan}, {9.99988867182683e-321, inf, -inf}}},
    {"x / 0", [](const Tensor& x) { return x / 0.0; }, {{0, nan, inf}, {-0.0, nan, inf}, {inf, inf, inf},
        {-inf, -inf, inf}, {nan, nan, inf}, {1, inf, inf}}},
    {"x * log(x)", [](const Tensor& x) { return x * rg::log(x); }, {{0, nan, nan}, {-0.0, nan, nan}, {inf,
        inf, nan}, {-inf, nan, nan}, {nan, nan, nan}, {-1, nan, nan}, {1, 0, 1}}},
    {"sqrt(x * x)", [](const Tensor& x) { return rg::sqrt(x * x); }, {{0, 0, nan}, {-0.0, 0, nan}, {inf,
        inf, nan}, {-inf, inf, nan}, {nan, nan, nan}, {-1, 1, -1}}},
    {"fmod 2", [](const Tensor& x) { return rg::fmod(x, 2.0); }, {{0, 0, 1}, {-0.0, -0.0, 1}, {inf, nan, 1},
        {-inf, nan, 1}, {nan, nan, 1}, {2, 0, 1}, {-2, -0.0, 1}, {-3.5, -1.5, 1}}},
    {"remainder 2", [](const Tensor& x) { return rg::remainder(x, 2.0); }, {{0, 0, 1}, {-0.0, -0.0, 1},
        {inf, nan, 1}, {-inf, nan, 1}, {nan, nan, 1}, {2, 0, 1}, {-2, -0.0, 1}, {-3.5, 0.5, 1}}},
    {"fmod 0", [](const Tensor& x) { return rg::fmod(x, 0.0); }, {{0, nan, 1}, {-0.0, nan, 1}, {inf, nan,
        1}, {-inf, nan, 1}, {nan, nan, 1}, {2, nan, 1}}},
    {"remainder inf", [](const Tensor& x) { return rg::remainder(x, inf); }, {{0, 0, 1}, {-0.0, -0.0, 1},
        {inf, nan, 1}, {-inf, nan, 1}, {nan, nan, 1}, {2, 2, 1}, {-2, inf, 1}}},
    {"smooth_l1", [](const Tensor& x) { return rg::smooth_l1_loss(x, rg::zeros_like(x), "sum"); }, {{0, 0,
        0}, {-0.0, 0, -0.0}, {inf, inf, 1}, {-inf, inf, -1}, {nan, nan, nan}, {1, 0.5, 1}, {-1, 0.5, -1},
        {2, 1.5, 1}}},
    {"huber", [](const Tensor& x) { return rg::huber_loss(x, rg::zeros_like(x), "sum", 0.5); }, {{0, 0, 0},
        {-0.0, 0, -0.0}, {inf, inf, 0.5}, {-inf, inf, -0.5}, {nan, nan, nan}, {0.5, 0.125, 0.5}, {-0.5,
        0.125, -0.5}, {2, 0.875, 0.5}}},
    {"l1", [](const Tensor& x) { return rg::l1_loss(x, rg::zeros_like(x), "sum"); }, {{0, 0, 0}, {-0.0, 0,
        0}, {inf, inf, 1}, {-inf, inf, -1}, {nan, nan, 0}, {1, 1, 1}}},
    {"bce 0.0", [](const Tensor& x) { return rg::binary_cross_entropy(x, rg::full_like(x, 0.0), {}, "sum");
        }, {{0, 0, 0}, {-0.0, 0, -0.0}, {1, 100, 1.000000004e+12}, {0.5, 0.69314718056, 2},
        {9.99988867182683e-321, 9.99988867183e-321, 9.99988871178e-309}, {0.99999999999999989,
        36.7368005697, 1.000000004e+12}}},
    {"bce with logits 0.0", [](const Tensor& x) { return rg::binary_cross_entropy_with_logits(x,
        rg::full_like(x, 0.0), {}, {}, "sum"); }, {{0, 0.69314718056, 0.5}, {-0.0, 0.69314718056, 0.5},
        {inf, inf, 1}, {-inf, 0, 0}, {nan, nan, nan}, {10000, 10000, 1}, {-10000, 0, 0}, {40, 40, 1},
        {-800, 0, 0}}},
    {"bce 1.0", [](const Tensor& x) { return rg::binary_cross_entropy(x, rg::full_like(x, 1.0), {}, "sum");
        }, {{0, 100, -1.000000004e+12}, {-0.0, 100, -1.000000004e+12}, {1, 0, 0}, {0.5, 0.69314718056, -2},
        {9.99988867182683e-321, 100, -1.000000004e+12}, {0.99999999999999989, 1.11022302463e-16,
        -0.000111022302906}}},
    {"bce with logits 1.0", [](const Tensor& x) { return rg::binary_cross_entropy_with_logits(x,
        rg::full_like(x, 1.0), {}, {}, "sum"); }, {{0, 0.69314718056, -0.5}, {-0.0, 0.69314718056, -0.5},
        {inf, 0, 0}, {-inf, inf, -1}, {nan, nan, nan}, {10000, 0, 0}, {-10000, 10000, -1}, {-800, 800,
        -1}}},
    {"bce 0.5", [](const Tensor& x) { return rg::binary_cross_entropy(x, rg::full_like(x, 0.5), {}, "sum");
        }, {{0, 50, -500000001998}, {-0.0, 50, -500000001998}, {1, 50, 500000001998}, {0.5, 0.69314718056,
        0}, {9.99988867182683e-321, 50, -500000001998}, {0.99999999999999989, 18.3684002848,
        500000001998}}},
    {"bce with logits 0.5", [](const Tensor& x) { return rg::binary_cross_entropy_with_logits(x,
        rg::full_like(x, 0.5), {}, {}, "sum"); }, {{0, 0.69314718056, 0}, {-0.0, 0.69314718056, 0}, {inf,
        inf, 0.5}, {-inf, inf, -0.5}, {nan, nan, nan}, {10000, 5000, 0.5}, {-10000, 5000, -0.5}, {40, 20,
        0.5}, {-800, 400, -0.5}}},
    {"kl_div 0", [](const Tensor& x) { return rg::kl_div(x, rg::zeros_like(x), "sum"); }, {{0, 0, -0.0},
        {-0.0, 0, -0.0}, {inf, nan, -0.0}, {-inf, nan, -0.0}, {nan, nan, -0.0}, {-1, 0, -0.0}}},
    {"kl_div target", [](const Tensor& x) { return rg::kl_div(rg::full_like(x, -1), x, "sum"); }, {{0, 0,
        nan}, {-0.0, 0, nan}, {inf, inf, nan}, {-inf, nan, nan}, {nan, nan, nan}, {1, 1, 2}, {-1, nan,
        nan}}},
};
// clang-format on

TEST_CASE("powers, quotients and losses at the edges") { check_unary(kTable, rg::kFloat64, 1e-9); }

}  // namespace
}  // namespace edges
