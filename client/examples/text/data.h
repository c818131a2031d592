// A text as characters, and batches drawn from it.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_DATA_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_DATA_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace text {

// Pieces of the text: int64 [batch, length] both; targets[i][j] is the character behind inputs[i][j].
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;
};

// Immutable; safe to share between threads.
class TextData {
 public:
  // NOT_FOUND: the file cannot be read. INVALID_ARGUMENT: it has less than two different bytes.
  static absl::StatusOr<TextData> Load(const std::string& path);
  static absl::StatusOr<TextData> FromString(std::string_view text);

  // The bytes that occur, in ascending order: character i of the model is byte vocabulary()[i].
  const std::string& vocabulary() const { return vocabulary_; }
  int64_t num_characters() const { return characters_.numel(); }

  // int64 [length]. Bytes outside the vocabulary are left out.
  at::Tensor Encode(std::string_view text) const;

  // `batch_size` pieces of `length` characters from random places; length < num_characters(). Depends on seed, step
  // and rank only: a rank that starts again draws what it would have drawn.
  Batch Draw(uint64_t seed, uint64_t step, int32_t rank, int64_t batch_size, int64_t length) const;

 private:
  TextData() = default;

  std::string vocabulary_;
  // The index of each byte in the vocabulary; −1 for one that does not occur.
  std::array<int64_t, 256> index_{};
  // The whole text; int64 [num_characters].
  at::Tensor characters_;
};

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_DATA_H_
