// What holdfast is told about the model.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_MODEL_SPEC_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_MODEL_SPEC_H_

#include <string>

#include "client/examples/text/training_config.h"
#include "holdfast/v1/model.pb.h"

namespace text {

// Names in the spec.
inline constexpr char kEma[] = "default";
inline constexpr char kExpAvg[] = "exp_avg";
inline constexpr char kExpAvgSq[] = "exp_avg_sq";

// How the model is kept.
struct Sharding {
  std::string model_name = "text";
  holdfast::v1::ShardingStrategy strategy = holdfast::v1::SHARDING_STRATEGY_FULL_SHARD;
  // Copies of the model, for HYBRID_SHARD; 0 otherwise.
  int32_t num_replicate = 0;
};

// Each Unit of the model is a unit; gathered in config.param_dtype, reduced and kept in float32, with the two averages
// of AdamW as the worker's optimizer state, and one EMA. Wrong values are named by RegisterModel.
holdfast::v1::ModelSpec MakeModelSpec(const TrainingConfig& config, const Sharding& sharding);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_MODEL_SPEC_H_
