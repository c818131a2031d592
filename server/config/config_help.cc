#include <array>
#include <string_view>

#include "absl/strings/str_format.h"
#include "server/config/command_line.h"

namespace holdfast {
namespace {

struct Entry {
  std::string_view field;
  std::string_view otherwise;
  std::string_view text;
};

// One a field of v1::DaemonConfig, in its order; a test holds the two together.
constexpr std::array kEntries = {
    Entry{"worker_socket", "required", "Unix socket for gRPC, at most 107 bytes"},
    Entry{"memory_socket", "worker_socket + .memory", "Unix socket that hands memory over"},
    Entry{"socket_group", "owner only", "group that may use the sockets (mode 0660)"},
    Entry{"operator_address", "no TCP",
          "loopback address for operators and Pull, as 127.0.0.1:7700; port 0 takes a free one"},
    Entry{"metrics_address", "no metrics", "loopback address of /metrics, as 127.0.0.1:9464; port 0 takes a free one"},
    Entry{"backend", "auto", "auto or cpu"},
    Entry{"num_ranks", "required", "ranks of this node, 1 to 64"},
    Entry{"memory_limit_bytes", "90 % of what is free", "limit on the bytes of all models together"},
    Entry{"compute_threads", "one a core", "threads for gathers, reductions and EMA, 1 to 256"},
    Entry{"collective_timeout", "60s", "how long a collective call waits for its peers, 1ms to 24h"},
    Entry{"drain_grace_period", "20s", "how long leases may go on after SIGTERM, up to 24h"},
    Entry{"pull_staging_bytes", "4 GiB", "what all Pull streams together may stage"},
    Entry{"log_format", "text", "text or json, to standard error"},
    Entry{"log_level", "info", "debug, info, warning or error"},
    Entry{"ready_file", "none", "file that is written when the daemon serves: a JSON object with its addresses"},
};

}  // namespace

std::string ConfigHelp() {
  std::string help =
      "holdfastd: owns a training job's sharded parameters, gradients, EMA copies and optimizer state on this node.\n\n"
      "  holdfastd --config=FILE [--FIELD=VALUE ...]\n\n"
      "FILE is a holdfast.v1.DaemonConfig in text format; each field has a flag of its name, which goes before the "
      "file.\n"
      "  --check_config   checks the configuration, shows it, and ends\n"
      "  --version        shows the version\n"
      "  --help           shows this\n\n";
  absl::StrAppendFormat(&help, "  %-20s %-24s %s\n", "field", "default", "meaning");
  for (const Entry& entry : kEntries) {
    absl::StrAppendFormat(&help, "  %-20s %-24s %s\n", entry.field, entry.otherwise, entry.text);
  }
  help += "\nExit status: 0 after a drain, 2 for a wrong configuration, 1 for anything else.\n";
  return help;
}

}  // namespace holdfast
