// torch::nn::utils: gradients clipped, parameters as one vector, packed sequences. Names for this library's own.
#pragma once

#include "nn/packed_sequence.h"
#include "nn/utils.h"
#include "optim/clip_grad.h"
#include "torch/nn/names.h"

#pragma GCC visibility push(default)
namespace torch::nn::utils {

using retrograd::optim::clip_grad_norm_;
using retrograd::optim::clip_grad_value_;

// Of one tensor.
inline retrograd::optim::GradNorm clip_grad_norm_(
    const Tensor& parameter, double max_norm, double norm_type = 2, bool error_if_nonfinite = false,
    retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  return clip_grad_norm_(retrograd::Tensors{parameter}, max_norm, norm_type, error_if_nonfinite, where);
}
inline void clip_grad_value_(const Tensor& parameter, double clip_value,
                             retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  clip_grad_value_(retrograd::Tensors{parameter}, clip_value, where);
}

using retrograd::nn::utils::parameters_to_vector;
using retrograd::nn::utils::vector_to_parameters;

namespace rnn {

using retrograd::nn::utils::rnn::PackedSequence;
using retrograd::nn::utils::rnn::pad_packed_sequence;
using retrograd::nn::utils::rnn::pad_sequence;

/// Sequences may be in any order, with enforce_sorted, too: nothing depends on it here.
inline PackedSequence pack_padded_sequence(Operand input, const Tensor& lengths, bool batch_first = false,
                                           bool /*enforce_sorted*/ = true) {
  return retrograd::nn::utils::rnn::pack_padded_sequence(input, lengths, batch_first);
}
inline PackedSequence pack_sequence(const retrograd::Tensors& sequences, bool /*enforce_sorted*/ = true,
                                    retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  return retrograd::nn::utils::rnn::pack_sequence(sequences, where);
}

}  // namespace rnn
}  // namespace torch::nn::utils
#pragma GCC visibility pop
