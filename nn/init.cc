// See nn/init.h.
#include "nn/init.h"

#include <cmath>

#include "engine/emitter.h"
#include "ops/random_ops.h"

namespace retrograd::inline v0::nn::init {

void uniform_(const Tensor& x, double low, double high, SourceLocation where) {
  fill_uniform(x, low, high, where);
}
void normal_(const Tensor& x, double mean, double std, SourceLocation where) {
  fill_normal(x, mean, std, where);
}

void constant_(const Tensor& x, double value, SourceLocation where) {
  NoGradGuard no_grad;
  x.fill_(value, where);
}
void zeros_(const Tensor& x, SourceLocation where) { constant_(x, 0, where); }
void ones_(const Tensor& x, SourceLocation where) { constant_(x, 1, where); }

Fans fans(const Tensor& weight, SourceLocation where) {
  if (weight.dim() < 2)
    fail(Category::bad_dim, "fans", "a weight of at least two dims is needed, this is " + describe(weight),
         where);
  int64_t kernel = 1;
  for (int64_t d = 2; d < weight.dim(); ++d) kernel *= weight.size(d);
  return {weight.size(1) * kernel, weight.size(0) * kernel};
}

void kaiming_uniform_(const Tensor& weight, double a, SourceLocation where) {
  const double bound = std::sqrt(6 / ((1 + a * a) * static_cast<double>(fans(weight, where).in)));
  uniform_(weight, -bound, bound, where);
}

void xavier_uniform_(const Tensor& weight, double gain, SourceLocation where) {
  const Fans f = fans(weight, where);
  const double bound = gain * std::sqrt(6 / static_cast<double>(f.in + f.out));
  uniform_(weight, -bound, bound, where);
}

}  // namespace retrograd::nn::init
