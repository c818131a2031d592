#include "server/device/cpu/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace holdfast {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The number behind `key` and white space, on a line of its own.
std::optional<int64_t> FindNumber(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string name;
  std::string rest;
  while (file >> name && std::getline(file, rest)) {
    int64_t value = 0;
    if (name == key && absl::SimpleAtoi(absl::StripSuffix(rest, " kB"), &value)) return value;
  }
  return std::nullopt;
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  int64_t value = 0;
  if (!(file >> text) || !absl::SimpleAtoi(text, &value)) return std::nullopt;
  return value;
}

// What the limit of the group at `directory` leaves. Cached file pages count as used there, but give way.
int64_t LeftInGroup(const std::string& directory) {
  const std::optional<int64_t> limit = ReadNumber(directory + "/memory.max");
  const std::optional<int64_t> used = ReadNumber(directory + "/memory.current");
  if (!limit || !used) return kNoLimit;
  const int64_t cached = FindNumber(directory + "/memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *used - cached));
}

// The path of this process's group below the root, "/" if it cannot be told.
std::string OwnGroup(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (absl::StartsWith(line, "0::")) return line.substr(3);
  }
  return "/";
}

int64_t LeftInGroups(const MemorySources& sources) {
  std::string group = OwnGroup(sources.self_cgroup);
  int64_t left = kNoLimit;
  while (true) {
    left = std::min(left, LeftInGroup(absl::StrCat(sources.cgroup_root, group)));
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return left;
    group.resize(slash);
  }
}

}  // namespace

int64_t AvailableMemoryBytes(const MemorySources& sources) {
  const std::optional<int64_t> kibibytes = FindNumber(sources.meminfo, "MemAvailable:");
  if (!kibibytes) return 0;
  return std::min(*kibibytes * 1024, LeftInGroups(sources));
}

}  // namespace holdfast
