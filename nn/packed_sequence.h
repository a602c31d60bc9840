// Batches of sequences of different lengths, for recurrent layers.
//
//   const auto packed = nn::utils::rnn::pack_padded_sequence(x, lengths, /*batch_first=*/true);
//   const auto [output, state] = lstm.forward_with_packed_input(packed);
//   const auto [padded, same_lengths] = nn::utils::rnn::pad_packed_sequence(output, /*batch_first=*/true);
//
// A PackedSequence holds the padded tensor and the lengths. (PyTorch removes the padding, which makes the size of a
// tensor depend on data.) Layers do not process the padding: their states are those after the last step of each
// sequence, their outputs zeros beyond it, gradients of padding zeros, whatever numbers are there. Sequences may be in
// any order. The lengths are data: other lengths in a compiled function need no new recording.
#pragma once

#include <optional>
#include <utility>

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn::utils::rnn {

class PackedSequence {
 public:
  /// Of x (L, N, ...) and lengths int64 (N), which are moved to the device of x. Errors: bad_dim, dtype_mismatch,
  /// shape_mismatch.
  PackedSequence(const Tensor& x, const Tensor& lengths, SourceLocation where = SourceLocation::current());
  /// (L, N, ...), zeros beyond the length of each sequence.
  const Tensor& padded() const { return padded_; }
  /// int64 (N), on the device of padded().
  const Tensor& lengths() const { return lengths_; }

 private:
  Tensor padded_, lengths_;
};

/// Input (L, N, ...), with batch_first (N, L, ...); lengths int64 (N), from 0 to L. Errors: as above. A length outside
/// the sequence is an Error(index_out_of_range) of the layer that meets it.
PackedSequence pack_padded_sequence(Operand input, const Tensor& lengths, bool batch_first = false);
/// The padded tensor (L, N, ...) and the lengths. Padding is filled with `padding_value`; with total_length, L becomes
/// so many. Error(bad_argument) if total_length is less than L.
std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& packed, bool batch_first = false,
                                              double padding_value = 0,
                                              std::optional<int64_t> total_length = {},
                                              SourceLocation where = SourceLocation::current());

/// Tensors (length, ...) that differ in length only, as one tensor (L, N, ...), L the longest.
/// Errors: bad_argument for no sequences, shape_mismatch.
Tensor pad_sequence(const Tensors& sequences, bool batch_first = false, double padding_value = 0,
                    SourceLocation where = SourceLocation::current());
PackedSequence pack_sequence(const Tensors& sequences, SourceLocation where = SourceLocation::current());
/// The inverse of pack_sequence(). Reads the lengths, so it cannot be recorded.
Tensors unpack_sequence(const PackedSequence& packed, SourceLocation where = SourceLocation::current());

}  // namespace retrograd::nn::utils::rnn
#pragma GCC visibility pop
