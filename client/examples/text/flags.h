// The command line of holdfast_text.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_FLAGS_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/examples/text/model_spec.h"
#include "client/examples/text/training_config.h"
#include "common/ids.h"

namespace text {

enum class Role { kLaunch, kWorker, kSolo };

struct Settings {
  Role role = Role::kLaunch;
  // Of a worker.
  holdfast::Rank rank;
  std::string daemon_socket;
  std::string text_path;
  std::string svg_path;
  // 0: never.
  uint64_t kill_at_step = 0;
  // But for the size of the vocabulary, which the text decides.
  TrainingConfig training;
  Sharding sharding;
};

// From the flags, which main has parsed. INVALID_ARGUMENT names the flag, its value and what would do.
absl::StatusOr<Settings> SettingsFromFlags();

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_FLAGS_H_
