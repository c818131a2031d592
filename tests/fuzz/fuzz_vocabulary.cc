#include "tests/fuzz/fuzz_vocabulary.h"

#include "absl/strings/str_cat.h"
#include "holdfast/v1/admin_service.pb.h"
#include "holdfast/v1/checkpoint_service.pb.h"
#include "holdfast/v1/parameter_service.pb.h"

namespace holdfast {

const std::vector<std::string>& FuzzModels() {
  static const auto* const models = new std::vector<std::string>{"base", "f0", "f1", "f2"};
  return *models;
}

const std::vector<std::string>& FuzzUnits() {
  static const auto* const units = new std::vector<std::string>{"a", "b", "c", "d"};
  return *units;
}

std::vector<std::string> FuzzWords() {
  std::vector<std::string> words = {"a.weight", "tied", "slow", "*", "?.weight", "momentum"};
  words.insert(words.end(), FuzzModels().begin(), FuzzModels().end());
  words.insert(words.end(), FuzzUnits().begin(), FuzzUnits().end());
  return words;
}

v1::ModelSpec FuzzSpec(const std::string& name) {
  v1::ModelSpec spec;
  spec.set_name(name);
  for (const std::string& unit : FuzzUnits()) {
    v1::UnitSpec& added = *spec.add_units();
    added.set_name(unit);
    v1::ParameterSpec& parameter = *added.add_parameters();
    parameter.set_name(unit + ".weight");
    parameter.add_shape(3);
    parameter.add_shape(37);
    parameter.set_dtype(unit == "b" ? v1::DATA_TYPE_BFLOAT16 : v1::DATA_TYPE_FLOAT32);
    parameter.set_frozen(unit == "c");
  }
  v1::ParameterSpec& tied = *spec.mutable_units(3)->add_parameters();
  tied = spec.units(0).parameters(0);
  tied.set_name("tied");
  tied.set_alias_of("a.weight");
  v1::BufferSpec& buffer = *spec.mutable_units(1)->add_buffers();
  buffer.set_name("b.steps");
  buffer.set_dtype(v1::DATA_TYPE_INT64);
  spec.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_FULL_SHARD);
  spec.mutable_precision()->set_param(v1::DATA_TYPE_BFLOAT16);
  v1::EmaSpec& ema = *spec.add_emas();
  ema.set_name("slow");
  ema.mutable_warmup()->set_decay(0.9999);
  spec.mutable_optimizer()->mutable_worker()->add_states()->set_name("momentum");
  return spec;
}

std::vector<FuzzMethod> FuzzMethods() {
  std::vector<FuzzMethod> methods;
  const auto add = [&](const std::string& service, const std::string& method,
                       const google::protobuf::Message& request) {
    methods.push_back({.path = absl::StrCat("/holdfast.v1.", service, "/", method), .request = &request});
  };
  for (int i = 0; i < 3; ++i) {
    add("ParameterService", "Gather", v1::GatherRequest::default_instance());
    add("ParameterService", "ReduceScatter", v1::ReduceScatterRequest::default_instance());
    add("ParameterService", "BeginUpdate", v1::BeginUpdateRequest::default_instance());
    add("ParameterService", "CommitUpdate", v1::CommitUpdateRequest::default_instance());
  }
  add("ParameterService", "EmaStep", v1::EmaStepRequest::default_instance());
  add("ParameterService", "Release", v1::ReleaseRequest::default_instance());
  add("ParameterService", "Rejoin", v1::RejoinRequest::default_instance());
  add("ParameterService", "RegisterModel", v1::RegisterModelRequest::default_instance());
  add("ParameterService", "ClipGradNorm", v1::ClipGradNormRequest::default_instance());
  add("ParameterService", "OptimizerStep", v1::OptimizerStepRequest::default_instance());
  add("AdminService", "GetStatus", v1::GetStatusRequest::default_instance());
  add("AdminService", "ListModels", v1::ListModelsRequest::default_instance());
  add("AdminService", "DropModel", v1::DropModelRequest::default_instance());
  add("AdminService", "Drain", v1::DrainRequest::default_instance());
  add("AdminService", "ListCheckpoints", v1::ListCheckpointsRequest::default_instance());
  add("CheckpointService", "SaveCheckpoint", v1::SaveCheckpointRequest::default_instance());
  add("CheckpointService", "LoadCheckpoint", v1::LoadCheckpointRequest::default_instance());
  return methods;
}

}  // namespace holdfast
