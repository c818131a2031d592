#include "common/random_bytes.h"

#include <sys/random.h>

#include <cstring>

namespace holdfast {

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  size_t filled = 0;
  while (filled < count) {
    const ssize_t got = ::getrandom(bytes.data() + filled, count - filled, 0);
    // It can only be interrupted; a kernel without getrandom can't run the daemon at all.
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return bytes;
}

uint64_t RandomId() {
  uint64_t id = 0;
  while (id == 0) std::memcpy(&id, RandomBytes(sizeof(id)).data(), sizeof(id));
  return id;
}

}  // namespace holdfast
