#include "server/config/config_help.h"

#include "absl/strings/str_format.h"

namespace holdfast {
namespace {

constexpr FieldHelp kFields[] = {
    {"worker_socket", "required", "path of the Unix socket for gRPC, at most 107 bytes"},
    {"memory_socket", "worker_socket + .memory", "path of the Unix socket that hands memory over"},
    {"socket_group", "owner only", "group that may use the sockets (mode 0660)"},
    {"operator_address", "no TCP", "loopback address for operators and Pull, as 127.0.0.1:7700; port 0: a free one"},
    {"metrics_address", "no metrics", "loopback address of /metrics, as 127.0.0.1:9464; port 0: a free one"},
    {"backend", "auto", "auto or cpu"},
    {"num_ranks", "required", "ranks of this node, 1 to 64"},
    {"memory_limit_bytes", "90 % of what is free", "limit on the bytes of all models together"},
    {"compute_threads", "one a core", "threads for gathers, reductions and EMA, 1 to 256"},
    {"collective_timeout", "60s", "how long a collective call waits for its peers, 1ms to 24h"},
    {"drain_grace_period", "20s", "how long leases may go on after SIGTERM, 0 to 24h"},
    {"pull_staging_bytes", "4294967296 (4 GiB)", "bytes that all Pull streams together may stage, at least 4096"},
    {"log_format", "text", "text or json, to standard error"},
    {"log_level", "info", "debug, info, warning or error"},
    {"ready_file", "none", "file that is written when the daemon serves: a JSON object with its addresses"},
};

}  // namespace

absl::Span<const FieldHelp> AllFieldHelp() { return kFields; }

std::string ConfigHelp() {
  std::string help =
      "holdfastd owns a training job's sharded parameters, gradients, EMA copies and optimizer state on this node.\n"
      "\n"
      "  holdfastd [--config=FILE] [--FIELD=VALUE ...]\n"
      "\n"
      "FILE is a holdfast.v1.DaemonConfig in text format. Each field has a flag of its name, which goes before the\n"
      "file: --num_ranks=4, --backend=cpu, --collective_timeout=30s.\n"
      "\n"
      "  --check_config   checks the configuration, shows it with its defaults filled in, and ends\n"
      "  --version        shows the version, and ends\n"
      "  --help           shows this, and ends\n"
      "\n";
  absl::StrAppendFormat(&help, "  %-19s %-24s %s\n", "FIELD", "if not set", "meaning");
  for (const FieldHelp& field : kFields) {
    absl::StrAppendFormat(&help, "  %-19s %-24s %s\n", field.field, field.otherwise, field.text);
  }
  help += "\nExit codes: 0 after a drain, 2 for a wrong flag or configuration, 1 for any other failure.\n";
  return help;
}

}  // namespace holdfast
