// The command line of holdfastd: a file, and a flag for each field of the configuration.
#ifndef HOLDFAST_SERVER_CONFIG_COMMAND_LINE_H_
#define HOLDFAST_SERVER_CONFIG_COMMAND_LINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "holdfast/v1/config.pb.h"

namespace holdfast {

struct CommandLine {
  // --config's file, with the flags laid over it.
  v1::DaemonConfig config;
  bool help = false;
  bool version = false;
  // Check the configuration, show it, and end.
  bool check_config = false;
};

// `arguments` without the program's name. INVALID_ARGUMENT names the flag or the field (with file and line), its value
// and what is valid; NOT_FOUND a file that can't be read.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// Parses a text-format configuration. `file` is for messages.
absl::Status ParseConfigText(const std::string& file, const std::string& text, v1::DaemonConfig& config);

// Sets one field from the text of a flag. Enums by their short name ("cpu") or the whole one, durations as "1m30s".
absl::Status SetConfigField(std::string_view field, const std::string& value, v1::DaemonConfig& config);

// What --help prints.
std::string ConfigHelp();

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_COMMAND_LINE_H_
