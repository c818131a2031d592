#include "client/holdfastctl/table.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace holdfast::ctl {
namespace {

constexpr size_t kGap = 2;

// Characters of UTF-8, each one column wide: not its continuation bytes.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// `value` with three significant digits, or as it is if it is small and whole.
std::string Digits(double value) { return absl::StrFormat("%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value); }

}  // namespace

void Table::Print(std::ostream& out) const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const bool last = i + 1 == widths.size();
      out << row[i] << std::string(last ? 0 : widths[i] - Width(row[i]) + kGap, ' ');
    }
    out << '\n';
  }
}

std::string BytesText(uint64_t size_bytes) {
  if (size_bytes < 1024) return absl::StrCat(size_bytes, " B");
  double value = static_cast<double>(size_bytes);
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(Digits(value), " ", units[unit]);
}

std::string CountText(uint64_t count) {
  if (count < 1000) return absl::StrCat(count);
  double value = static_cast<double>(count);
  const char* const units[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return absl::StrCat(Digits(value), units[unit]);
}

}  // namespace holdfast::ctl
