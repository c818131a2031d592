#include "client/examples/text/data.h"

#include <ATen/ATen.h>

#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"

namespace text {

absl::StatusOr<TextData> TextData::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream contents;
  if (!(contents << file.rdbuf())) {
    return absl::NotFoundError(absl::StrCat("cannot read the text '", path, "': give a readable file with --text"));
  }
  absl::StatusOr<TextData> data = FromString(contents.str());
  if (!data.ok()) return absl::Status(data.status().code(), absl::StrCat(path, ": ", data.status().message()));
  return data;
}

absl::StatusOr<TextData> TextData::FromString(std::string_view text) {
  const std::set<unsigned char> bytes(text.begin(), text.end());
  if (bytes.size() < 2) return absl::InvalidArgumentError("the text has less than two different characters");
  TextData data;
  data.vocabulary_.assign(bytes.begin(), bytes.end());
  data.index_.fill(-1);
  int64_t next = 0;
  for (const unsigned char byte : bytes) data.index_[byte] = next++;
  data.characters_ = data.Encode(text);
  return data;
}

at::Tensor TextData::Encode(std::string_view text) const {
  std::vector<int64_t> characters;
  for (const unsigned char byte : text) {
    if (index_[byte] >= 0) characters.push_back(index_[byte]);
  }
  return at::tensor(characters, at::kLong);
}

Batch TextData::Draw(uint64_t seed, uint64_t step, int32_t rank, int64_t batch_size, int64_t length) const {
  // The standard fixes what seed_seq and mt19937_64 give, so that every machine draws the same.
  std::seed_seq mix{seed & 0xffffffff, seed >> 32, step & 0xffffffff, step >> 32, static_cast<uint64_t>(rank)};
  std::mt19937_64 random(mix);
  const uint64_t num_places = static_cast<uint64_t>(num_characters() - length);
  std::vector<at::Tensor> inputs, targets;
  for (int64_t i = 0; i < batch_size; ++i) {
    const int64_t place = static_cast<int64_t>(random() % num_places);
    inputs.push_back(characters_.slice(0, place, place + length));
    targets.push_back(characters_.slice(0, place + 1, place + 1 + length));
  }
  return {.inputs = at::stack(inputs), .targets = at::stack(targets)};
}

}  // namespace text
