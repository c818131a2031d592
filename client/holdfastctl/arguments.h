// The arguments of one command: flags and words.
#ifndef HOLDFAST_CLIENT_HOLDFASTCTL_ARGUMENTS_H_
#define HOLDFAST_CLIENT_HOLDFASTCTL_ARGUMENTS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace holdfast::ctl {

// A flag that a command takes.
struct FlagSpec {
  std::string_view name;
  // What stands for its value in the usage; empty for a switch.
  std::string_view value;
  std::string_view help;
};

class Arguments {
 public:
  // --NAME=VALUE, --NAME VALUE, --SWITCH, and words, in any order; after "--" all are words. INVALID_ARGUMENT names a
  // flag that is not among `flags`, lacks its value or has one too many.
  static absl::StatusOr<Arguments> Parse(absl::Span<const std::string> arguments, absl::Span<const FlagSpec> flags);

  const std::vector<std::string>& words() const { return words_; }
  bool Has(const std::string& flag) const { return flags_.contains(flag); }
  // What was given, or `otherwise`.
  std::string Get(const std::string& flag, const std::string& otherwise = "") const;
  // INVALID_ARGUMENT: it was given, and is no finite duration ≥ 0.
  absl::StatusOr<absl::Duration> GetDuration(const std::string& flag, absl::Duration otherwise) const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::string> flags_;
};

}  // namespace holdfast::ctl

#endif  // HOLDFAST_CLIENT_HOLDFASTCTL_ARGUMENTS_H_
