// A text as characters to learn, for the examples that write: the vocabulary, the parts for training and
// validation, batches, and drawing the next character. Bytes are characters. The first nine tenths of a
// text are for training, the rest for validation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "retrograd/retrograd.h"

namespace examples {

struct Text {
  std::string characters;       // the vocabulary, sorted
  std::vector<uint8_t> tokens;  // indices into it
  size_t training;              // the number of tokens for training

  /// Reads a file. FileError when it is too short for pieces of `block` characters.
  Text(const std::string& path, int64_t block);
  int64_t vocabulary() const { return static_cast<int64_t>(characters.size()); }
  /// The vocabulary as numbers: "10 32 33 ...".
  std::string codes() const;
  std::span<const uint8_t> training_part() const { return {tokens.data(), training}; }
  std::span<const uint8_t> validation_part() const {
    return {tokens.data() + training, tokens.size() - training};
  }
};

struct TextBatch {
  retrograd::Tensor tokens, next;  // int64 [size, block]
};

/// Pieces of the text at random positions, and the same pieces one character later.
TextBatch draw_batch(std::span<const uint8_t> text, int64_t size, int64_t block);

/// While open, random numbers come from a separate stream, so that draws in between do not affect the training.
class OwnStream {
 public:
  explicit OwnStream(uint64_t seed);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;

 private:
  retrograd::GeneratorState outer_;
};

/// Draws an index with probabilities softmax(scores).
size_t draw_index(const std::vector<double>& scores);

}  // namespace examples
