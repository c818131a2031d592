// config check.
#include "absl/status/statusor.h"
#include "client/holdfastctl/command.h"
#include "server/config/config.h"
#include "server/config/config_file.h"

namespace holdfast::ctl {

absl::Status RunConfigCheck(const Arguments& arguments, std::ostream& out) {
  v1::DaemonConfig message;
  FieldOrigins origins;
  if (absl::Status status = ReadConfigFile(arguments.words().front(), message, origins); !status.ok()) return status;
  const absl::StatusOr<Config> config = ResolveConfig(message, origins);
  if (!config.ok()) return config.status();
  out << config->ToText();
  return absl::OkStatus();
}

}  // namespace holdfast::ctl
