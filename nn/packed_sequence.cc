// See nn/packed_sequence.h.
#include "nn/packed_sequence.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/named_call.h"
#include "ops/creation.h"
#include "ops/join.h"
#include "ops/rearrange.h"
#include "ops/recurrent.h"
#include "ops/ternary.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn::utils::rnn {
namespace {

// x (L, N, ...) with `padding` beyond the lengths.
Tensor padded_with(const Tensor& x, const Tensor& lengths, double padding) {
  Tensor is_step = ops::steps_within(x.sym_size(0), lengths);
  while (is_step.dim() < x.dim()) is_step = unsqueeze(is_step, -1);
  return where(is_step, x, padding);
}

}  // namespace

PackedSequence::PackedSequence(const Tensor& x, const Tensor& lengths, SourceLocation where) {
  if (!x.defined() || !lengths.defined() || x.dim() < 2 || lengths.dim() != 1)
    fail(Category::bad_dim, "PackedSequence",
         fmt::format("sequences in {}, lengths {}", describe(x), describe(lengths)), where);
  if (lengths.dtype() != kInt64)
    fail(Category::dtype_mismatch, "PackedSequence", "lengths are int64, not " + describe(lengths), where);
  if (!(lengths.sym_size(0) == x.sym_size(1)))
    fail(Category::shape_mismatch, "PackedSequence",
         fmt::format("{} for the sequences in {}", describe(lengths), describe(x)), where);
  lengths_ = lengths.device() == x.device() ? lengths : lengths.to(x.device());
  padded_ = padded_with(x, lengths_, 0);
}

PackedSequence pack_padded_sequence(Operand input, const Tensor& lengths, bool batch_first) {
  const NamedCall name("pack_padded_sequence", input.where());
  const Tensor& given = input.tensor();
  return {batch_first && given.dim() > 1 ? given.transpose(0, 1) : given, lengths, input.where()};
}

std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& packed, bool batch_first,
                                              double padding_value, std::optional<int64_t> total_length,
                                              SourceLocation where) {
  const NamedCall name("pad_packed_sequence", where);
  Tensor x = packed.padded();
  if (total_length) {
    const Dim more = Dim(*total_length) - x.sym_size(0);
    if (more < 0)
      fail(Category::bad_argument, "", fmt::format("a total length of {} for {}", *total_length, describe(x)),
           where);
    Shape shape = x.sym_sizes();
    shape[0] = more;
    x = cat({x, zeros(shape, {x.dtype(), x.device()})});
  }
  if (padding_value != 0) x = padded_with(x, packed.lengths(), padding_value);
  return {batch_first ? x.transpose(0, 1) : x, packed.lengths()};
}

Tensor pad_sequence(const Tensors& sequences, bool batch_first, double padding_value, SourceLocation where) {
  const NamedCall name("pad_sequence", where);
  if (sequences.empty()) fail(Category::bad_argument, "", "no sequences", where);
  int64_t longest = 0;
  for (const Tensor& s : sequences) {
    if (s.dim() == 0) fail(Category::bad_dim, "", "a sequence without dims", where);
    longest = std::max(longest, s.size(0));
  }
  Tensors padded;
  for (const Tensor& s : sequences) {
    IntArray pairs(static_cast<size_t>(2 * s.dim()));
    pairs.back() = longest - s.size(0);
    padded.push_back(pad(s, pairs, "constant", padding_value));
  }
  return stack(padded, batch_first ? 0 : 1);
}

PackedSequence pack_sequence(const Tensors& sequences, SourceLocation where) {
  const NamedCall name("pack_sequence", where);
  const Tensor padded = pad_sequence(sequences, false, 0, where);
  std::vector<int64_t> lengths;
  for (const Tensor& s : sequences) lengths.push_back(s.size(0));
  return {padded, tensor(lengths, {std::ssize(lengths)}, {kInt64, padded.device()}), where};
}

Tensors unpack_sequence(const PackedSequence& packed, SourceLocation where) {
  const NamedCall name("unpack_sequence", where);
  Tensors sequences;
  int64_t i = 0;
  for (double length : packed.lengths().to_vector())
    sequences.push_back(packed.padded().select(1, i++).narrow(0, 0, static_cast<int64_t>(length)));
  return sequences;
}

}  // namespace retrograd::nn::utils::rnn
