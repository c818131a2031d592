#include "client/examples/text/flags.h"

#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"

ABSL_FLAG(std::string, role, "launch",
          "launch: start the workers, and show what they do; worker: be one of them; solo: train without holdfast");
ABSL_FLAG(int32_t, rank, 0, "the rank of a worker");
ABSL_FLAG(std::string, daemon, "/run/holdfast/worker.sock", "the daemon's worker socket");
ABSL_FLAG(std::string, model, "text", "the model's name on the daemon");
ABSL_FLAG(std::string, text, "/usr/share/common-licenses/GPL-3", "the text to learn");
ABSL_FLAG(std::string, svg, "loss.svg", "where the loss curve is written; empty: nowhere");
ABSL_FLAG(int32_t, ranks, 4, "workers; as many as the daemon has ranks");
ABSL_FLAG(std::string, strategy, "FULL_SHARD", "FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD or NO_SHARD");
ABSL_FLAG(int32_t, replicas, 0, "copies of the model, for HYBRID_SHARD");
ABSL_FLAG(std::string, param_dtype, "bfloat16", "what weights are gathered in: float32, bfloat16 or float16");
ABSL_FLAG(uint64_t, steps, 400, "optimizer steps");
ABSL_FLAG(int64_t, kill_at_step, -1, "kill one worker when this step is committed; 0: none; -1: half way");
ABSL_FLAG(uint64_t, seed, 1, "of the first weights and of the batches");
ABSL_FLAG(double, ema_decay, 0.98, "of the averaged weights");
ABSL_FLAG(double, learning_rate, 5e-3, "at its highest");
ABSL_FLAG(int64_t, batch_size, 8, "pieces of text a worker and step");
ABSL_FLAG(int64_t, layers, 2, "transformer layers");
ABSL_FLAG(int64_t, width, 128, "length of the vector that stands for a character");
ABSL_FLAG(int64_t, heads, 4, "attention heads of a layer");
ABSL_FLAG(int64_t, context, 64, "characters that the model looks back on");

namespace text {
namespace {

// The value that a name stands for.
template <typename T, size_t N>
absl::StatusOr<T> Choose(const std::string& flag, const std::string& name,
                         const std::pair<const char*, T> (&choices)[N]) {
  std::string names;
  for (const auto& [choice, value] : choices) {
    if (choice == name) return value;
    absl::StrAppend(&names, names.empty() ? "" : ", ", choice);
  }
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " is '", name, "'; it must be one of ", names));
}

}  // namespace

absl::StatusOr<Settings> SettingsFromFlags() {
  namespace v1 = holdfast::v1;
  const auto role = Choose<Role>("role", absl::GetFlag(FLAGS_role),
                                 {{"launch", Role::kLaunch}, {"worker", Role::kWorker}, {"solo", Role::kSolo}});
  if (!role.ok()) return role.status();
  const auto strategy = Choose<v1::ShardingStrategy>("strategy", absl::GetFlag(FLAGS_strategy),
                                                     {{"FULL_SHARD", v1::SHARDING_STRATEGY_FULL_SHARD},
                                                      {"SHARD_GRAD_OP", v1::SHARDING_STRATEGY_SHARD_GRAD_OP},
                                                      {"HYBRID_SHARD", v1::SHARDING_STRATEGY_HYBRID_SHARD},
                                                      {"NO_SHARD", v1::SHARDING_STRATEGY_NO_SHARD}});
  if (!strategy.ok()) return strategy.status();
  const auto param_dtype =
      Choose<at::ScalarType>("param_dtype", absl::GetFlag(FLAGS_param_dtype),
                             {{"float32", at::kFloat}, {"bfloat16", at::kBFloat16}, {"float16", at::kHalf}});
  if (!param_dtype.ok()) return param_dtype.status();

  Settings settings;
  settings.role = *role;
  settings.rank = holdfast::Rank(absl::GetFlag(FLAGS_rank));
  settings.daemon_socket = absl::GetFlag(FLAGS_daemon);
  settings.text_path = absl::GetFlag(FLAGS_text);
  settings.svg_path = absl::GetFlag(FLAGS_svg);
  settings.sharding = {
      .model_name = absl::GetFlag(FLAGS_model), .strategy = *strategy, .num_replicate = absl::GetFlag(FLAGS_replicas)};
  TrainingConfig& training = settings.training;
  training.num_ranks = absl::GetFlag(FLAGS_ranks);
  training.num_steps = absl::GetFlag(FLAGS_steps);
  training.batch_size = absl::GetFlag(FLAGS_batch_size);
  training.param_dtype = *param_dtype;
  training.ema_decay = absl::GetFlag(FLAGS_ema_decay);
  training.seed = absl::GetFlag(FLAGS_seed);
  training.adamw.learning_rate = absl::GetFlag(FLAGS_learning_rate);
  training.model.num_layers = absl::GetFlag(FLAGS_layers);
  training.model.width = absl::GetFlag(FLAGS_width);
  training.model.num_heads = absl::GetFlag(FLAGS_heads);
  training.model.context = absl::GetFlag(FLAGS_context);
  const int64_t kill_at_step = absl::GetFlag(FLAGS_kill_at_step);
  settings.kill_at_step = kill_at_step < 0 ? training.num_steps / 2 : static_cast<uint64_t>(kill_at_step);
  if (kill_at_step < -1 || (kill_at_step > 0 && settings.kill_at_step >= training.num_steps)) {
    return absl::InvalidArgumentError(absl::StrCat("--kill_at_step is ", kill_at_step,
                                                   "; it must be -1, or below --steps, which is ", training.num_steps));
  }
  return settings;
}

}  // namespace text
