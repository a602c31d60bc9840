// Rows of special functions, functions of the float format and of integers, shrinkage, and functions composed of
// others.
#include "benchmarks/op_rows/row.h"

namespace bench {

Table special_rows() {
  return {
      {"entr", "u:n", [](In t) { return rg::special::entr(t[0]); }},
      {"erfcx", "x:n", [](In t) { return rg::special::erfcx(t[0]); }},
      {"i0", "x:n", [](In t) { return rg::special::i0(t[0]); }},
      {"i0e", "x:n", [](In t) { return rg::special::i0e(t[0]); }},
      {"i1", "x:n", [](In t) { return rg::special::i1(t[0]); }},
      {"i1e", "x:n", [](In t) { return rg::special::i1e(t[0]); }},
      {"ndtr", "x:n", [](In t) { return rg::special::ndtr(t[0]); }},
      {"ndtri", "u:n", [](In t) { return rg::special::ndtri(t[0]); }},
      {"log_ndtr", "x:n", [](In t) { return rg::special::log_ndtr(t[0]); }},
      {"xlog1py", "x:n u:n", [](In t) { return rg::special::xlog1py(t[0], t[1]); }},
      {"xlogy", "x:n u:n", [](In t) { return rg::xlogy(t[0], t[1]); }},
      {"sinc", "x:n", [](In t) { return rg::sinc(t[0]); }},
      {"logit", "u:n", [](In t) { return rg::logit(t[0]); }},
      {"polygamma_2", "g:n", [](In t) { return rg::polygamma(2, t[0]); }},
      {"logaddexp2", "x:n x:n", [](In t) { return rg::logaddexp2(t[0], t[1]); }},

      {"signbit", "~x:n", [](In t) { return rg::signbit(t[0]); }},
      {"isposinf", "~x:n", [](In t) { return rg::isposinf(t[0]); }},
      {"copysign", "x:n ~x:n", [](In t) { return rg::copysign(t[0], t[1]); }},
      {"heaviside", "~x:n ~x:n", [](In t) { return rg::heaviside(t[0], t[1]); }},
      {"nextafter", "~x:n ~x:n", [](In t) { return rg::nextafter(t[0], t[1]); }},
      {"ldexp", "x:n ~i10:n", [](In t) { return rg::ldexp(t[0], t[1]); }},
      {"fmax", "x:n x:n", [](In t) { return rg::fmax(t[0], t[1]); }},
      {"isclose", "~x:n ~x:n", [](In t) { return rg::isclose(t[0], t[1]); }},
      {"allclose", "~x:n ~x:n", [](In t) { return rg::allclose(t[0], t[1]); }},
      {"equal", "~x:n ~x:n", [](In t) { return rg::equal(t[0], t[1]); }},

      {"bitwise_and", "l:n l:n", [](In t) { return rg::bitwise_and(t[0], t[1]); }},
      {"bitwise_not", "l:n", [](In t) { return rg::bitwise_not(t[0]); }},
      {"bitwise_left_shift", "l:n i8:n", [](In t) { return rg::bitwise_left_shift(t[0], t[1]); }},
      {"gcd", "l:n l:n", [](In t) { return rg::gcd(t[0], t[1]); }},
      {"lcm", "l:n l:n", [](In t) { return rg::lcm(t[0], t[1]); }},

      {"tanhshrink", "x:n", [](In t) { return rg::tanhshrink(t[0]); }},
      {"softshrink", "x:n", [](In t) { return rg::softshrink(t[0]); }},
      {"hardshrink", "x:n", [](In t) { return rg::hardshrink(t[0]); }},
      {"prelu", "x:r,c x:c", [](In t) { return rg::prelu(t[0], t[1]); }},
      {"glu", "x:r,c", [](In t) { return rg::glu(t[0]); }},

      {"rsub", "x:n x:n", [](In t) { return rg::rsub(t[0], t[1]); }},
      {"floor_divide", "~x:n ~g:n", [](In t) { return rg::floor_divide(t[0], t[1]); }},
      {"float_power", "u:n", [](In t) { return rg::float_power(t[0], 2.5); }},
      {"clamp_min", "x:n", [](In t) { return rg::clamp_min(t[0], 0.1); }},
      {"softmin", "x:r,c", [](In t) { return rg::softmin(t[0], 1); }},
      {"normalize", "x:r,c", [](In t) { return rg::normalize(t[0]); }},
  };
}

}  // namespace bench
