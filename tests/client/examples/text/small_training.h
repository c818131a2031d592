// A training that takes a moment, as a config and as the flags of holdfast_text.
#ifndef HOLDFAST_TESTS_CLIENT_EXAMPLES_TEXT_SMALL_TRAINING_H_
#define HOLDFAST_TESTS_CLIENT_EXAMPLES_TEXT_SMALL_TRAINING_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/examples/text/data.h"
#include "client/examples/text/launcher.h"
#include "client/examples/text/training_config.h"

namespace text {

inline constexpr char kGpl[] = "/usr/share/common-licenses/GPL-3";
inline constexpr int32_t kNumRanks = 4;
inline constexpr uint64_t kNumSteps = 40;

inline TrainingConfig SmallTraining(const TextData& data) {
  TrainingConfig config;
  config.model = {.vocabulary_size = static_cast<int64_t>(data.vocabulary().size()),
                  .context = 32,
                  .width = 36,
                  .num_heads = 3,
                  .num_layers = 2};
  config.num_ranks = kNumRanks;
  config.num_steps = kNumSteps;
  config.batch_size = 4;
  return config;
}

inline std::vector<std::string> SmallTrainingFlags(const std::string& daemon_socket) {
  return {absl::StrCat("--daemon=", daemon_socket),
          absl::StrCat("--text=", kGpl),
          absl::StrCat("--ranks=", kNumRanks),
          absl::StrCat("--steps=", kNumSteps),
          "--batch_size=4",
          "--context=32",
          "--width=36",
          "--heads=3",
          "--layers=2"};
}

// The workers of it, with `flags` more.
inline LaunchOptions SmallLaunch(const std::string& daemon_socket, const std::vector<std::string>& flags = {}) {
  LaunchOptions options{.executable = HOLDFAST_TEXT,
                        .worker_arguments = SmallTrainingFlags(daemon_socket),
                        .daemon_socket = daemon_socket,
                        .model_name = "text",
                        .num_ranks = kNumRanks,
                        .num_steps = kNumSteps};
  options.worker_arguments.push_back("--role=worker");
  options.worker_arguments.insert(options.worker_arguments.end(), flags.begin(), flags.end());
  return options;
}

}  // namespace text

#endif  // HOLDFAST_TESTS_CLIENT_EXAMPLES_TEXT_SMALL_TRAINING_H_
