// What holdfastctl can do: one command a word.
#ifndef HOLDFAST_CLIENT_HOLDFASTCTL_COMMAND_H_
#define HOLDFAST_CLIENT_HOLDFASTCTL_COMMAND_H_

#include <cstddef>
#include <limits>
#include <ostream>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/holdfastctl/arguments.h"

namespace holdfast::ctl {

inline constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

struct Command {
  // One word, or two: "config check".
  std::string_view name;
  // For the usage: "MODEL [NAME...]".
  std::string_view words;
  std::string_view summary;
  size_t min_words = 0;
  size_t max_words = 0;
  absl::Span<const FlagSpec> flags;
  // Writes its result to `out`. INVALID_ARGUMENT of its own making is a matter of usage.
  absl::Status (*run)(const Arguments& arguments, std::ostream& out) = nullptr;
};

// status, models, drop, drain, pull, config check.
absl::Span<const Command> AllCommands();

absl::Status RunStatus(const Arguments& arguments, std::ostream& out);
absl::Status RunModels(const Arguments& arguments, std::ostream& out);
absl::Status RunDrop(const Arguments& arguments, std::ostream& out);
absl::Status RunDrain(const Arguments& arguments, std::ostream& out);
absl::Status RunPull(const Arguments& arguments, std::ostream& out);
absl::Status RunConfigCheck(const Arguments& arguments, std::ostream& out);

}  // namespace holdfast::ctl

#endif  // HOLDFAST_CLIENT_HOLDFASTCTL_COMMAND_H_
