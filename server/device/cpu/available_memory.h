// How much memory this process could take now.
#ifndef HOLDFAST_SERVER_DEVICE_CPU_AVAILABLE_MEMORY_H_
#define HOLDFAST_SERVER_DEVICE_CPU_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace holdfast {

// Where the system tells. Other paths are for tests.
struct MemorySources {
  std::string meminfo = "/proc/meminfo";
  std::string self_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
};

// Bytes: the machine's MemAvailable, or less where a control group (version 2: a container, a systemd unit), or one
// that it is in, leaves less. What cannot be read counts as no limit; 0 if not even meminfo can.
int64_t AvailableMemoryBytes(const MemorySources& sources = MemorySources());

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DEVICE_CPU_AVAILABLE_MEMORY_H_
