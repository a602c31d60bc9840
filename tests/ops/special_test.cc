// Special functions and their first and second derivatives against numbers that were computed with 40 digits (mpmath),
// in float64; float32 against float64; orders that have no derivative; errors. Values at infinities, NaN and kinks are
// in tests/ops/edges, derivatives against differences in tests/ops/derivatives.
#include "ops/special.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "ops/float_ops.h"
#include "ops/shrinkage.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace retrograd {
namespace {

using Function1 = Tensor (*)(const Tensor&);
const std::map<std::string, Function1> kFunctions{
    {"entr", [](const Tensor& x) { return special::entr(x); }},
    {"erfcx", [](const Tensor& x) { return special::erfcx(x); }},
    {"i0", [](const Tensor& x) { return special::i0(x); }},
    {"i0e", [](const Tensor& x) { return special::i0e(x); }},
    {"i1", [](const Tensor& x) { return special::i1(x); }},
    {"i1e", [](const Tensor& x) { return special::i1e(x); }},
    {"log_ndtr", [](const Tensor& x) { return special::log_ndtr(x); }},
    {"logit", [](const Tensor& x) { return logit(x); }},
    {"ndtr", [](const Tensor& x) { return special::ndtr(x); }},
    {"ndtri", [](const Tensor& x) { return special::ndtri(x); }},
    {"sinc", [](const Tensor& x) { return sinc(x); }},
    {"tanhshrink", [](const Tensor& x) { return tanhshrink(x); }},
};

// The value, the derivative, the second derivative: as many as there are.
struct Point {
  const char* name;
  double x;
  std::vector<double> values;
};
const Point kPoints[] = {
    {"erfcx", -3.5, {417962.42244577031, -2925738.0854995593, 21316091.443388456}},
    {"erfcx", 0.1, {0.89645697996912664, -0.94908777110168724, 1.6030964057179158}},
    {"erfcx", 1, {0.427583576155807, -0.27321201478389857, 0.30874312274381688}},
    {"erfcx", 7.9, {0.070857477367397131, -0.0088310246906378556, 0.0021847646227161367}},
    {"erfcx", 8.1, {0.069133920177343152, -0.0084096602225535656, 0.0020313447493185473}},
    {"erfcx", 30, {0.018795888861416751, -0.00062583541050748407, 4.1653092384458876e-5}},
    {"erfcx", 1e5, {5.6418958351954681e-6, -5.6418958346312785e-11, 1.1283791667569988e-15}},
    {"i0e", 0.3, {0.75758062518254786, -0.64520306454270906, 0.91581426028595546}},
    {"i0e", 7.9, {0.14436986414104192, -0.0094733647011481534, 0.0018712231440819065}},
    {"i0e", -8.1, {0.14251180948829528, 0.009111121162458651, 0.0017530215439498157}},
    {"i0e", 29, {0.074407468222225585, -0.0012943502828372199, 6.7558567764496275e-5}},
    {"i0e", 31, {0.071946496696983833, -0.0011701038625981526, 5.7098278925799375e-5}},
    {"i0e", 1e4, {0.0039894726746047321, -1.9947862106984188e-7, 2.9922541317535869e-11}},
    {"i1e", 0.3, {0.1123775606398388, 0.2706111957432464}},
    {"i1e", -7.9, {-0.13489649943989377, -0.0076021415570662469}},
    {"i1e", 8.1, {0.13340068832583663, -0.0073580996185088352}},
    {"i1e", 31, {0.07077639283438568, -0.0011130055836723532}},
    {"i1e", 1e4, {0.0039892731959836623, -1.9944869852852435e-7}},
    {"i0", -0.3, {1.022626879351597, -0.15169384000359277, 0.51698074600628772}},
    {"i0", 8.1, {469.50060671012147, 439.48430891035846, 415.2432846224229}},
    {"i1", -0.3, {-0.15169384000359277, 0.51698074600628772, -0.11391179780033126}},
    {"i1", 3, {3.9533702174026094, 3.5630025133974876, 3.204966070425959}},
    {"i1", 29, {287432108126.25481, 282609179781.33725, 278028738202.91055}},
    {"i1", 31, {2055972795294.5647, 2023641263417.8856, 1992833454638.3109}},
    {"ndtr", -30, {4.9067139271481871e-198}},
    {"ndtr", 0.7, {0.75803634777692697}},
    {"log_ndtr", -1e4, {-50000010.129278915, 10000.000099999998, -0.9999999900000006}},
    {"log_ndtr", -30, {-454.3212439563432, 30.033259667433677, -0.99889622848810991}},
    {"log_ndtr", -0.5, {-1.1759117615936186, 1.1410777703680645, -0.73151959284412105}},
    {"log_ndtr", 0.7, {-0.27702394227713126, 0.41192475041929067, -0.45802932530149836}},
    {"log_ndtr", 6, {-9.8658764552437573e-10, 6.0758828558176764e-9, -3.6455297171822411e-8}},
    {"ndtri", 1e-20, {-9.2623400897984076, 1.0674725333013999e+19}},
    {"ndtri", 0.01, {-2.3263478740408411, 37.520436157295173}},
    {"ndtri", 0.3, {-0.52440051270804082, 2.8761036592642924}},
    {"ndtri", 0.99999, {4.2648907939238408, 22327.743230295394}},
    {"sinc", 1e-5, {0.99999999983550659, -3.2898681333717562e-5, -3.289868132722362}},
    {"sinc", 0.3, {0.85839369133413979, -0.90202813013888879, -2.4584852862661743}},
    {"sinc", 0.9, {0.10929240478705175, -1.178165467869117, 1.5394726848616677}},
    {"sinc", 1000.5, {0.00031815081077840147, -3.1799181487096599e-7, -0.0031400220066028621}},
    {"tanhshrink", 1e-5, {3.3333333332000008e-16, 9.999999999333335e-11, 1.9999999997333335e-5}},
    {"tanhshrink", 0.74, {0.11085483858596451, 0.39582363413069276, 0.76022927445478132}},
    {"tanhshrink", 0.76, {0.11892303881465361, 0.41097967016263813, 0.75521472625705274}},
    {"tanhshrink", 3, {2.0049452463132695, 0.99013396283455981, 0.019634494363042436}},
    {"logit", 1e-12, {-27.631021115927548, 1000000000001.0}},
    {"logit", 0.5000000001, {4.000000330961484e-10, 4}},
    {"logit", 0.9, {2.1972245773362196, 11.111111111111113}},
    {"logit", 0.9999990463256836, {13.862942657524135, 1048577.0000009537}},
    {"entr", 0.01, {0.046051701859880914, 3.6051701859880913}},
    {"entr", 2, {-1.3862943611198906, -1.6931471805599453}},
};

// Elements are equal, so that a vector loop, its tail and a single element are all compared.
Tensors value_and_derivatives(const Point& p, int64_t elements) {
  const Tensor x = full({elements}, p.x, {kFloat64}).requires_grad_();
  Tensors all{kFunctions.at(p.name)(x)};
  while (all.size() < p.values.size())
    all.push_back(autograd::grad({sum(all.back())}, {x}, {}, true, true)[0]);
  return all;
}

TEST_CASE("special functions and their derivatives") {
  for (const Point& p : kPoints)
    for (const int64_t elements : {1, 9}) {
      const Tensors all = value_and_derivatives(p, elements);
      for (size_t order = 0; order < all.size(); ++order) {
        INFO(p.name << " at " << p.x << ", derivative " << order);
        for (const double got : all[order].detach().to_vector())
          CHECK(std::abs(got - p.values[order]) <= (order < 2 ? 4e-13 : 4e-12) * std::abs(p.values[order]));
      }
    }
}

// Most functions of floats are rounded once.
TEST_CASE("floats are as accurate as their digits allow") {
  for (const Point& p : kPoints) {
    const Tensor x = tensor({p.x}, {kFloat32});
    const double got = kFunctions.at(p.name)(x).item<float>();
    const double want = kFunctions.at(p.name)(x.to(kFloat64)).item<double>();
    const double units = std::string_view(p.name) == "logit" ? 2 : 0.51;
    INFO(p.name << " at " << p.x);
    if (std::abs(want) > 1e-37) CHECK(std::abs(got - want) <= units * 0x1p-23 * std::abs(want));
  }
}

TEST_CASE("derivatives of the highest order, and beyond it") {
  const Tensor x = tensor({0.5}, {kFloat64, kCPU, true});
  for (Function1 f : {kFunctions.at("erfcx"), kFunctions.at("i0e")}) {
    Tensor y = f(x);
    for (int64_t order = 0; order < ops::kMostDerivatives; ++order)
      y = autograd::grad({y}, {x}, {}, true, true)[0];
    CHECK(category_of([&] { autograd::grad({y}, {x}, {}, true, true); }) == Category::bad_argument);
  }
}

TEST_CASE("dtypes of special functions") {
  CHECK(special::i0(tensor({1, 2}, {kInt64})).dtype() == kFloat32);
  CHECK(special::ndtr(tensor({1, 2}, {kBFloat16})).dtype() == kBFloat16);
  CHECK(xlogy(tensor({1, 2}, {kInt64}), tensor({1, 2}, {kUInt8})).dtype() == kFloat32);
  CHECK(xlogy(2.0, tensor({1, 2}, {kFloat16})).dtype() == kFloat16);
  CHECK(category_of([] { special::erfcx(zeros({2}, {kFloat8_e5m2})); }) == Category::dtype_mismatch);
}

TEST_CASE("arguments of special functions") {
  const Tensor x = tensor({0.5, 1.5});
  CHECK(category_of([&] { polygamma(-1, x); }) == Category::bad_argument);
  CHECK(category_of([&] { polygamma(171, x); }) == Category::bad_argument);
  CHECK(polygamma(1, x).to_vector()[0] == Approx(4.9348022005446793));
  CHECK(logit(x, 0.25).to_vector()[1] == Approx(std::log(3.0)));
}

}  // namespace
}  // namespace retrograd
