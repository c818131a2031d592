// What holdfastd --help says.
#ifndef HOLDFAST_SERVER_CONFIG_CONFIG_HELP_H_
#define HOLDFAST_SERVER_CONFIG_CONFIG_HELP_H_

#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace holdfast {

// One field of v1::DaemonConfig.
struct FieldHelp {
  std::string_view field;
  // What holds if it is not set.
  std::string_view otherwise;
  std::string_view text;
};

// All fields, in the order of the message.
absl::Span<const FieldHelp> AllFieldHelp();

// Usage, flags, every field, exit codes.
std::string ConfigHelp();

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_CONFIG_HELP_H_
