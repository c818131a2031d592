// Where a fuzzer's decisions come from.
#ifndef HOLDFAST_TESTS_FUZZ_CHOICES_H_
#define HOLDFAST_TESTS_FUZZ_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "absl/types/span.h"

namespace holdfast {

// Decisions out of a seed (without end), or out of an input of libFuzzer's (0 once it is used up). Not thread-safe.
class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed), endless_(true) {}
  // `bytes` must outlive it.
  explicit Choices(absl::Span<const uint8_t> bytes) : bytes_(bytes), endless_(false) {}

  bool exhausted() const { return !endless_ && next_ == bytes_.size(); }
  // 0 to count − 1; count ≥ 1.
  uint64_t Below(uint64_t count) { return Number(count <= 256 ? 1 : 8) % count; }
  bool OneIn(uint64_t count) { return Below(count) == 0; }
  // Any number, but the ones on the edge of some range more often.
  uint64_t AnyNumber();
  std::string Bytes(size_t max_size);

 private:
  uint64_t Number(int num_bytes);

  std::mt19937_64 random_;
  absl::Span<const uint8_t> bytes_;
  size_t next_ = 0;
  const bool endless_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_FUZZ_CHOICES_H_
