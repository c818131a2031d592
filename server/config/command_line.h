// The command line of holdfastd: a file, and a flag for each field of the configuration.
#ifndef HOLDFAST_SERVER_CONFIG_COMMAND_LINE_H_
#define HOLDFAST_SERVER_CONFIG_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "holdfast/v1/config.pb.h"
#include "server/config/field_origins.h"

namespace holdfast {

struct CommandLine {
  // --config's file, with the flags laid over it, wherever they stand.
  v1::DaemonConfig config;
  FieldOrigins origins;
  bool help = false;
  bool version = false;
  // Check the configuration, show it, and end.
  bool check_config = false;
};

// `arguments` without the program's name: --NAME=VALUE or --NAME VALUE; of two flags of one name the later counts.
// INVALID_ARGUMENT names the flag, or the file, line, column and field, and the value and what is valid; NOT_FOUND a
// file that can't be read. With --help or --version nothing else is looked at.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_COMMAND_LINE_H_
