// Text in columns, and numbers for people.
#ifndef HOLDFAST_CLIENT_HOLDFASTCTL_TABLE_H_
#define HOLDFAST_CLIENT_HOLDFASTCTL_TABLE_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::ctl {

// Rows under a heading; each column is as wide as its widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}

  // Has as many cells as the heading.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void Print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// 1536 → "1.5 KiB".
std::string BytesText(uint64_t size_bytes);
// 1234567 → "1.23M".
std::string CountText(uint64_t count);

}  // namespace holdfast::ctl

#endif  // HOLDFAST_CLIENT_HOLDFASTCTL_TABLE_H_
