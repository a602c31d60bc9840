// Special functions, functions of the float format and shrinkage at zeros, kinks, infinities and NaN. The numbers are
// PyTorch's, except for ndtr(-37), which is 0 there; see edges.h. Omitted, since the gradient here is a number and
// PyTorch's is none: erfcx, log_ndtr and copysign at infinity.
#include "ops/composed.h"
#include "ops/float_ops.h"
#include "ops/shrinkage.h"
#include "ops/special.h"
#include "tests/ops/edges/edges.h"

namespace edges {
namespace {

// clang-format off
const std::vector<UnaryEdges> kTable{
    {"entr", rg::special::entr, {{0, 0, inf}, {1, -0.0, -1}, {inf, -inf, -inf}, {-inf, -inf, nan}, {nan, nan, nan}, {-1,
        -inf, nan}, {1e-300, 6.90775527898e-298, 689.775527898}, {1e+300, -6.90775527898e+302, -691.775527898}}},
    {"erfcx", rg::special::erfcx, {{0, 1, -1.1283791671}, {-inf, inf, -inf}, {nan, nan, nan}, {-1e+200, inf, -inf},
        {-27, inf, -inf}, {1e-300, 1, -1.1283791671}, {10, 0.0561409927438, -0.00555931221906}}},
    {"i0", rg::special::i0, {{0, 1, 0}, {nan, nan, nan}, {-1, 1.26606587775, -0.565159103992}, {8, 427.564115722,
        399.873136783}, {1e-200, 1, 5e-201}, {700, 1.52959334767e+302, 1.52850039023e+302}}},
    {"i0e", rg::special::i0e, {{0, 1, 0}, {inf, 0, 0}, {-inf, 0, 0}, {nan, nan, nan}, {2, 0.308508322554,
        -0.0932390333047}, {-2, 0.308508322554, 0.0932390333047}}},
    {"i1", rg::special::i1, {{0, 0, 0.5}, {nan, nan, nan}, {-1, -0.565159103992, 0.70090677376}, {700,
        1.52850039023e+302, 1.52740977569e+302}}},
    {"i1e", rg::special::i1e, {{0, 0, 0.5}, {inf, 0, 0}, {-inf, -0.0, 0}, {nan, nan, nan}, {2, 0.215269289249,
        -0.0143956113197}, {-2, -0.215269289249, -0.0143956113197}, {1e-200, 5e-201, 0.5}}},
    {"ndtr", rg::special::ndtr, {{0, 0.5, 0.398942280401}, {inf, 1, 0}, {-inf, 0, 0}, {nan, nan, nan}, {-37,
        5.72557122252e-300, 2.12000655152e-298}, {9, 1, 1.02797735717e-18}}},
    {"ndtri", rg::special::ndtri, {{0, -inf, inf}, {1, inf, inf}, {0.5, 0, 2.50662827463}, {nan, nan, nan}, {-1, nan,
        nan}, {2, nan, nan}, {1e-300, -37.0470962994, 2.69730446504e+298}}},
    {"log_ndtr", rg::special::log_ndtr, {{0, -0.69314718056, 0.797884560803}, {nan, nan, nan}, {-10, -53.2312851505,
        10.098093234}, {9, -1.12858840595e-19, 1.02797735717e-18}}},
    {"sinc", rg::sinc, {{0, 1, 0}, {nan, nan, nan}, {0.5, 0.636619772368, -1.27323954474}, {1.5, -0.212206590789,
        0.141471060526}, {inf, nan, nan}}},
    {"logit", [](const Tensor& x) { return rg::logit(x); }, {{0, -inf, inf}, {1, inf, inf}, {0.5, 0, 4}, {nan, nan,
        nan}, {1e-300, -690.775527898, 1e+300}, {-1, nan, nan}, {2, nan, nan}}},
    {"logit within 1/8", [](const Tensor& x) { return rg::logit(x, 0.125); }, {{0, -1.94591014906, 0}, {0.125,
        -1.94591014906, 9.14285714286}, {0.875, 1.94591014906, 9.14285714286}, {0.97, 1.94591014906, 0}}},
    {"polygamma 0", [](const Tensor& x) { return rg::polygamma(0, x); }, {{1, -0.577215664902, 1.64493406685}}},
    {"tanhshrink", rg::tanhshrink, {{0, 0, 0}, {inf, inf, 1}, {-inf, -inf, 1}, {nan, nan, nan}, {50, 49, 1}}},
    {"softshrink", [](const Tensor& x) { return rg::softshrink(x); }, {{0.5, 0, 0}, {-0.5, -0.0, 0}, {0, 0, 0}, {inf,
        inf, 1}, {-inf, -inf, 1}, {nan, nan, 1}, {1, 0.5, 1}}},
    {"hardshrink", rg::hardshrink, {{0.5, 0, 0}, {-0.5, 0, 0}, {0, 0, 0}, {inf, inf, 1}, {-inf, -inf, 1}, {nan, nan,
        1}, {1, 1, 1}}},
};
const std::vector<BinaryEdges> kPairs{
    {"xlogy", rg::xlogy, {{0, 0, 0, 0, nan}, {0, -1, 0, 0, -0.0}, {0, nan, nan, nan, nan}, {0, 2, 0, 0.69314718056, 0},
        {0, inf, 0, inf, 0}, {2, 0, -inf, -inf, inf}, {nan, 2, nan, 0.69314718056, nan}, {inf, 1, nan, 0, inf}}},
    {"xlog1py", rg::special::xlog1py, {{0, -1, 0, 0, nan}, {0, -2, 0, 0, -0.0}, {0, nan, nan, nan, nan}, {0, 2, 0,
        1.09861228867, 0}, {2, -1, -inf, -inf, inf}}},
    {"logaddexp2", rg::logaddexp2, {{1000, 1000, 1001, 0.5, 0.5}, {-2000, 0, 0, 0, 1}, {nan, 0, nan, nan, nan}, {0, inf,
        inf, 0, 1}, {-inf, 0, 0, 0, 1}}},
    {"copysign", rg::copysign, {{0, -1, -0.0, 0, 0}, {1, -0.0, -1, -1, 0}, {-2, 3, 2, -1, 0}}},
    {"fmax", rg::fmax, {{1, 1, 1, 0.5, 0.5}, {nan, 1, 1, 0, 1}, {1, nan, 1, 1, 0}, {2, 1, 2, 1, 0}, {-inf, inf, inf, 0,
        1}}},
    {"fmin", rg::fmin, {{1, 1, 1, 0.5, 0.5}, {nan, 1, 1, 0, 1}, {1, nan, 1, 1, 0}, {2, 1, 1, 0, 1}, {-inf, inf, -inf, 1,
        0}}},
    {"nextafter", rg::nextafter, {{1, 1, 1, 0, 0}, {1, 2, 1.0000000000000002, 1, 0}, {1, -2, 0.9999999999999999, 1, 0},
        {0, 1, 5e-324, 1, 0}, {0, -1, -5e-324, 1, 0}, {inf, 0, 1.79769313486231571e+308, 1, 0}, {nan, 1, nan, 1, 0},
        {1.79769313486231571e+308, inf, inf, 1, 0}}},
    {"ldexp", rg::ldexp, {{1, -1074, 5e-324, 5e-324, 5e-324}, {1.5, 3, 12, 8, 8.31776616672}, {inf, -3, inf, 0.125,
        inf}, {1, 2000, inf, inf, inf}, {5e-324, 2000, 0x1p926, inf, 0x1p926 * 0.69314718056}}},
    {"clamp_min", rg::clamp_min, {{1, 1, 1, 0.5, 0.5}, {2, 1, 2, 1, 0}, {0, 1, 1, 0, 1}}},
    {"clamp_max", rg::clamp_max, {{1, 1, 1, 0.5, 0.5}, {2, 1, 1, 0, 1}, {0, 1, 0, 1, 0}}},
    {"prelu", rg::prelu, {{0, 3, 0, 3, 0}, {-2, 3, -6, 3, -2}, {2, 3, 2, 1, 0}, {nan, 3, nan, 3, nan}}},
};
// clang-format on

TEST_CASE("special functions at the edges") { check_unary(kTable, rg::kFloat64, 1e-9); }

TEST_CASE("functions of two numbers and the float format at the edges") { check_binary(kPairs); }

TEST_CASE("a row of zeros is normalised by eps") {
  const Tensor x = rg::zeros({1, 2}, {rg::kFloat64}).requires_grad_();
  const Tensor y = rg::normalize(x, 2.0, 1, 0.25);
  CHECK(y.detach().to_vector() == std::vector<double>{0, 0});
  CHECK(rg::autograd::grad({rg::sum(y)}, {x})[0].to_vector() == std::vector<double>{4, 4});
}

}  // namespace
}  // namespace edges
