// Bytes that nobody can guess.
#ifndef HOLDFAST_COMMON_RANDOM_BYTES_H_
#define HOLDFAST_COMMON_RANDOM_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast {

// From the kernel (getrandom). Thread-safe.
std::string RandomBytes(size_t count);
// Never 0.
uint64_t RandomId();

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_RANDOM_BYTES_H_
