#include "tests/fuzz/choices.h"

#include <algorithm>
#include <limits>

namespace holdfast {

uint64_t Choices::Number(int num_bytes) {
  if (endless_) return random_();
  uint64_t number = 0;
  for (int i = 0; i < num_bytes && next_ < bytes_.size(); ++i) number = number << 8 | bytes_[next_++];
  return number;
}

uint64_t Choices::AnyNumber() {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  constexpr uint64_t kEdges[] = {0,          1,          2,        3,        64,           65,      255,
                                 256,        257,        4095,     4096,     4097,         1 << 20, 0x7fffffff,
                                 0x80000000, 0xffffffff, kMax / 2, kMax - 1, kMax / 2 + 1, kMax};
  switch (Below(4)) {
    case 0:
      return Below(8);
    case 1:
      return Number(8);
    default:
      return kEdges[Below(std::size(kEdges))];
  }
}

std::string Choices::Bytes(size_t max_size) {
  std::string bytes(Below(max_size + 1), '\0');
  std::generate(bytes.begin(), bytes.end(), [this] { return static_cast<char>(Number(1)); });
  return bytes;
}

}  // namespace holdfast
