// See tracer/observe/work.h.
#include "tracer/observe/work.h"

#include "engine/bookkeeping.h"
#include "ops/attention.h"
#include "ops/convolution.h"
#include "ops/matmul.h"

namespace retrograd::inline v0 {
namespace {

using Types = std::span<const TensorType>;

double numel(const TensorType& t) {
  double n = 1;
  for (Dim d : t.shape) n *= static_cast<double>(d.raw());
  return n;
}
// Size of a dim, counted from the end.
double size(const TensorType& t, int from_end) {
  return static_cast<double>(t.shape[t.shape.rank() - from_end].raw());
}
// The elements of one feature of a weight (features, channels, kernel...).
double taps(const TensorType& weight) {
  double n = 1;
  for (int d = 1; d < weight.shape.rank(); ++d) n *= static_cast<double>(weight.shape[d].raw());
  return n;
}

template <int Factor>  // the operand whose last size is the inner size
double product(Types in, Types out) {
  return 2 * numel(out[0]) * size(in[Factor], 1);
}
double convolution(Types in, Types out) { return 2 * numel(out[0]) * taps(in[1]); }
double convolution_transpose(Types in, Types) { return 2 * numel(in[0]) * taps(in[1]); }
double convolution_weight(Types in, Types out) { return 2 * numel(in[1]) * taps(out[0]); }
double attention(Types in, Types out) { return 2 * size(in[1], 2) * (numel(in[0]) + numel(out[0])); }
// Recomputed scores, gradients of query and key, gradients of the weights and of value.
double attention_backward(Types in, Types) {
  return 2 * size(in[1], 2) * (3 * numel(in[0]) + 2 * numel(in[5]));
}

struct Counter {
  const OpInfo* op;
  double (*flops)(Types operands, Types results);
};
constexpr Counter kCounters[] = {
    {&ops::info<ops::Mm>, product<0>},
    {&ops::info<ops::Bmm>, product<0>},
    {&ops::info<ops::Mv>, product<0>},
    {&ops::info<ops::Dot>, product<0>},
    {&ops::info<ops::Addmm>, product<1>},
    {&ops::info<ops::Baddbmm>, product<1>},
    {&ops::info<ops::Linear>, product<0>},
    {&ops::info<ops::Convolution>, convolution},
    {&ops::info<ops::ConvolutionTranspose>, convolution_transpose},
    {&ops::info<ops::ConvolutionWeight>, convolution_weight},
    {&ops::info<ops::Attention>, attention},
    {&ops::info<ops::AttentionBackward>, attention_backward},
    {&ops::info<ops::AttentionBackwardJoined>, attention_backward},
};

}  // namespace

double bytes_of(Types types) {
  double sum = 0;
  for (const TensorType& t : types)
    if (t.dtype != ScalarType::Undefined) sum += numel(t) * static_cast<double>(element_size(t.dtype));
  return sum;
}

Work work_of(const OpInfo& op, Types operands, Types results) {
  if (op.is(Trait::view) || (op.is(Trait::bookkeeping) && &op != &ops::accumulate)) return {};
  Work work{bytes_of(operands) + bytes_of(results), 0};
  for (const Counter& c : kCounters)
    if (c.op == &op) work.flops = c.flops(operands, results);
  return work;
}

}  // namespace retrograd
