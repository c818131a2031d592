#include "server/config/command_line.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/config/config_file.h"
#include "server/config/field_value.h"

namespace holdfast {
namespace {

struct Flag {
  std::string name;
  std::string value;
};

// The switch of that name; null for a flag that takes a value.
bool* FindSwitch(CommandLine& line, std::string_view name) {
  if (name == "help") return &line.help;
  if (name == "version") return &line.version;
  if (name == "check_config") return &line.check_config;
  return nullptr;
}

// Sets the switches of `line`, and returns all other flags.
absl::StatusOr<std::vector<Flag>> SplitFlags(const std::vector<std::string>& arguments, CommandLine& line) {
  std::vector<Flag> flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--") || argument.size() == 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", argument, "': holdfastd takes flags only, as --num_ranks=4; see --help"));
    }
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string name = argument.substr(2, equals - 2);
    if (bool* const found = FindSwitch(line, name); found != nullptr) {
      if (equals < argument.size()) {
        return absl::InvalidArgumentError(absl::StrCat(argument, ": --", name, " takes no value"));
      }
      *found = true;
    } else if (equals < argument.size()) {
      flags.push_back({.name = name, .value = argument.substr(equals + 1)});
    } else if (i + 1 < arguments.size()) {
      flags.push_back({.name = name, .value = arguments[++i]});
    } else {
      return absl::InvalidArgumentError(absl::StrCat(argument, ": a value is required, as ", argument, "=VALUE"));
    }
  }
  return flags;
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  const absl::StatusOr<std::vector<Flag>> flags = SplitFlags(arguments, line);
  if (line.help || line.version) return line;
  if (!flags.ok()) return flags.status();
  const auto is_file = [](const Flag& flag) { return flag.name == "config"; };
  const auto file = std::find_if(flags->rbegin(), flags->rend(), is_file);
  if (file != flags->rend()) {
    if (absl::Status status = ReadConfigFile(file->value, line.config, line.origins); !status.ok()) return status;
  }
  for (const Flag& flag : *flags) {
    if (is_file(flag)) continue;
    if (absl::Status status = SetConfigField(flag.name, flag.value, line.config); !status.ok()) return status;
    line.origins.Set(flag.name, "--");
  }
  return line;
}

}  // namespace holdfast
