#include "common/spec_validation.h"

#include <cmath>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/quoted.h"

namespace holdfast {
namespace {

constexpr int kMaxUnits = 65536;
constexpr int kMaxDimensions = 64;
constexpr size_t kMaxNameBytes = 1024;
constexpr int kMaxEmas = 16;
constexpr int kMaxStates = 8;
constexpr int kMaxGlobs = 256;

bool IsWord(std::string_view name, size_t max_bytes, std::string_view extra) {
  if (name.empty() || name.size() > max_bytes) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && extra.find(c) == std::string_view::npos) return false;
  }
  return true;
}

// An enumerator's name; the number of one that is unknown.
std::string NameOf(v1::DataType dtype) {
  return v1::DataType_IsValid(dtype) ? v1::DataType_Name(dtype) : absl::StrCat(dtype);
}

absl::Status ValidatePrecision(const std::string& field, v1::DataType dtype) {
  if (dtype == v1::DATA_TYPE_UNSPECIFIED || IsArithmetic(FromProto(dtype))) return absl::OkStatus();
  return InvalidSpec(field, NameOf(dtype), "unspecified, FLOAT32, BFLOAT16, FLOAT16 and FLOAT64 are valid");
}

absl::Status ValidateCopyDType(const std::string& field, v1::DataType dtype) {
  if (dtype == v1::DATA_TYPE_UNSPECIFIED || dtype == v1::DATA_TYPE_FLOAT32 || dtype == v1::DATA_TYPE_FLOAT64 ||
      dtype == v1::DATA_TYPE_BFLOAT16) {
    return absl::OkStatus();
  }
  return InvalidSpec(field, NameOf(dtype), "unspecified, FLOAT32, FLOAT64 and BFLOAT16 are valid");
}

absl::Status ValidateDecay(const std::string& field, double decay) {
  // Not-a-number fails both comparisons.
  if (decay >= 0 && decay < 1) return absl::OkStatus();
  return InvalidSpec(field, absl::StrCat(decay), "it must be at least 0 and less than 1");
}

absl::Status ValidateSchedule(const std::string& field, const v1::EmaSpec& ema) {
  switch (ema.schedule_case()) {
    case v1::EmaSpec::kConstant:
      return ValidateDecay(field + ".constant.decay", ema.constant().decay());
    case v1::EmaSpec::kWarmup:
      return ValidateDecay(field + ".warmup.decay", ema.warmup().decay());
    case v1::EmaSpec::kPowerFunction: {
      const v1::PowerFunctionDecay& power = ema.power_function();
      const std::string of_power = field + ".power_function";
      switch (power.width_case()) {
        case v1::PowerFunctionDecay::kGamma:
          if (power.gamma() > 0 && std::isfinite(power.gamma())) return absl::OkStatus();
          return InvalidSpec(of_power + ".gamma", absl::StrCat(power.gamma()), "it must be above 0 and finite");
        case v1::PowerFunctionDecay::kSigmaRel:
          // 1/√12 is the flat profile's; below 10⁻⁶ gamma is beyond what a double's step counter resolves.
          if (power.sigma_rel() >= 1e-6 && power.sigma_rel() < 0.2886) return absl::OkStatus();
          return InvalidSpec(of_power + ".sigma_rel", absl::StrCat(power.sigma_rel()),
                             "it must be at least 0.000001 and less than 0.2886");
        case v1::PowerFunctionDecay::WIDTH_NOT_SET:
          return InvalidSpec(of_power, "neither gamma nor sigma_rel is set", "one of them is required");
      }
      break;
    }
    case v1::EmaSpec::SCHEDULE_NOT_SET:
      break;
  }
  return InvalidSpec(field, "no schedule is set", "one of constant, warmup and power_function is required");
}

absl::Status ValidateEmas(const v1::ModelSpec& spec) {
  if (spec.emas_size() > kMaxEmas) {
    return InvalidSpec("spec.emas", absl::StrCat(spec.emas_size(), " copies"), absl::StrCat("at most ", kMaxEmas));
  }
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < spec.emas_size(); ++i) {
    const v1::EmaSpec& ema = spec.emas(i);
    const std::string field = absl::StrCat("spec.emas[", i, "]");
    if (!IsWord(ema.name(), 64, "_-")) {
      return InvalidSpec(field + ".name", Quoted(ema.name()), "1 to 64 letters, digits, '_' and '-' are valid");
    }
    if (!names.insert(ema.name()).second) {
      return InvalidSpec(field + ".name", Quoted(ema.name()), "another EMA has that name");
    }
    if (absl::Status status = ValidateCopyDType(field + ".dtype", ema.dtype()); !status.ok()) return status;
    if (absl::Status status = ValidateSchedule(field, ema); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ValidateIgnored(const v1::ModelSpec& spec) {
  // Every name is held against every glob.
  if (spec.ignored_parameters_size() > kMaxGlobs) {
    return InvalidSpec("spec.ignored_parameters", absl::StrCat(spec.ignored_parameters_size(), " globs"),
                       absl::StrCat("at most ", kMaxGlobs));
  }
  for (int i = 0; i < spec.ignored_parameters_size(); ++i) {
    const std::string field = absl::StrCat("spec.ignored_parameters[", i, "]");
    if (absl::Status status = ValidateName(field, spec.ignored_parameters(i)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ValidateOptimizer(const v1::ModelSpec& spec) {
  const v1::WorkerOptimizer& worker = spec.optimizer().worker();
  const std::string field = "spec.optimizer.worker.states";
  if (worker.states_size() > kMaxStates) {
    return InvalidSpec(field, absl::StrCat(worker.states_size(), " states"), absl::StrCat("at most ", kMaxStates));
  }
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < worker.states_size(); ++i) {
    const v1::OptimizerStateSpec& state = worker.states(i);
    const std::string of_state = absl::StrCat(field, "[", i, "]");
    if (!IsWord(state.name(), 64, "_")) {
      return InvalidSpec(of_state + ".name", Quoted(state.name()), "1 to 64 letters, digits and '_' are valid");
    }
    if (!names.insert(state.name()).second) {
      return InvalidSpec(of_state + ".name", Quoted(state.name()), "another state has that name");
    }
    if (absl::Status status = ValidateCopyDType(of_state + ".dtype", state.dtype()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InvalidSpec(const std::string& field, const std::string& is, const std::string& valid) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", is, "; ", valid));
}

absl::Status ValidateOptions(const v1::ModelSpec& spec) {
  if (!IsWord(spec.name(), 128, "_-.")) {
    return InvalidSpec("spec.name", Quoted(spec.name()), "1 to 128 letters, digits, '_', '-' and '.' are valid");
  }
  if (spec.units_size() < 1 || spec.units_size() > kMaxUnits) {
    return InvalidSpec("spec.units", absl::StrCat(spec.units_size(), " units"), absl::StrCat("1 to ", kMaxUnits));
  }
  const v1::Precision& precision = spec.precision();
  for (const auto& [name, dtype] : {std::pair{"param", precision.param()}, std::pair{"reduce", precision.reduce()},
                                    std::pair{"master", precision.master()}, std::pair{"buffer", precision.buffer()}}) {
    if (absl::Status status = ValidatePrecision(absl::StrCat("spec.precision.", name), dtype); !status.ok()) {
      return status;
    }
  }
  if (absl::Status status = ValidateEmas(spec); !status.ok()) return status;
  if (absl::Status status = ValidateOptimizer(spec); !status.ok()) return status;
  if (absl::Status status = ValidateIgnored(spec); !status.ok()) return status;
  for (const auto& [name, slots] :
       {std::pair{"gather_slots", spec.gather_slots()}, std::pair{"gradient_slots", spec.gradient_slots()}}) {
    if (slots > kMaxRingSlots) {
      return InvalidSpec(absl::StrCat("spec.", name), absl::StrCat(slots),
                         absl::StrCat("1 to ", kMaxRingSlots, ", or 0 for the default"));
    }
  }
  if (!v1::UpdateProtection_IsValid(spec.update_protection())) {
    return InvalidSpec("spec.update_protection", absl::StrCat(spec.update_protection()),
                       "UPDATE_PROTECTION_UNDO_COPY (1) and UPDATE_PROTECTION_NONE (2) are valid");
  }
  return absl::OkStatus();
}

absl::StatusOr<MeshShape> ValidateMesh(const v1::Mesh& mesh, int32_t world) {
  const std::string ranks = absl::StrFormat("%d × %d", mesh.num_replicate(), mesh.num_shard());
  if (world < 1) return InvalidSpec("world", absl::StrCat(world, " ranks"), "at least 1 is needed");
  const auto fixed = [&](int32_t num_replicate, int32_t num_shard) -> absl::StatusOr<MeshShape> {
    const auto agrees = [](uint32_t asked, int32_t implied) {
      return asked == 0 || asked == static_cast<uint32_t>(implied);
    };
    if (agrees(mesh.num_replicate(), num_replicate) && agrees(mesh.num_shard(), num_shard)) {
      return MeshShape{.num_replicate = num_replicate, .num_shard = num_shard};
    }
    return InvalidSpec("spec.mesh", absl::StrCat(ranks, " (num_replicate × num_shard)"),
                       absl::StrFormat("%s over %d ranks is %d × %d; leave the numbers out",
                                       v1::ShardingStrategy_Name(mesh.strategy()), world, num_replicate, num_shard));
  };
  switch (mesh.strategy()) {
    case v1::SHARDING_STRATEGY_FULL_SHARD:
    case v1::SHARDING_STRATEGY_SHARD_GRAD_OP:
      return fixed(1, world);
    case v1::SHARDING_STRATEGY_NO_SHARD:
      return fixed(world, 1);
    case v1::SHARDING_STRATEGY_HYBRID_SHARD:
      if (uint64_t{mesh.num_replicate()} * mesh.num_shard() != static_cast<uint64_t>(world)) {
        return InvalidSpec("spec.mesh", absl::StrCat(ranks, " (num_replicate × num_shard)"),
                           absl::StrFormat("the product must be the number of ranks, %d", world));
      }
      return MeshShape{.num_replicate = static_cast<int32_t>(mesh.num_replicate()),
                       .num_shard = static_cast<int32_t>(mesh.num_shard())};
    default:
      return InvalidSpec("spec.mesh.strategy", absl::StrCat(mesh.strategy()),
                         "FULL_SHARD (1), SHARD_GRAD_OP (2), HYBRID_SHARD (3) and NO_SHARD (4) are valid");
  }
}

absl::Status ValidateName(const std::string& field, const std::string& name) {
  if (!name.empty() && name.size() <= kMaxNameBytes) return absl::OkStatus();
  return InvalidSpec(field, Quoted(name), absl::StrCat("1 to ", kMaxNameBytes, " bytes are valid"));
}

absl::StatusOr<int64_t> ValidateTensor(const std::string& field, const std::string& name,
                                       const google::protobuf::RepeatedField<int64_t>& shape, v1::DataType dtype) {
  if (absl::Status status = ValidateName(field + ".name", name); !status.ok()) return status;
  if (FromProto(dtype) == DType::kUnspecified) {
    return InvalidSpec(field + ".dtype", absl::StrCat("that of ", Quoted(name), " is ", NameOf(dtype)),
                       "a DataType is required");
  }
  if (shape.size() > kMaxDimensions) {
    return InvalidSpec(field + ".shape", absl::StrCat(shape.size(), " dimensions"),
                       absl::StrCat("at most ", kMaxDimensions, " are possible"));
  }
  // Lengths of 0 are left out: strides are computed without them, and must not overflow either.
  int64_t product = 1;
  bool overflows = false;
  bool is_empty = false;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) {
      return InvalidSpec(absl::StrCat(field, ".shape[", i, "]"), absl::StrCat(shape[i]), "a length can't be negative");
    }
    if (shape[i] == 0) {
      is_empty = true;
    } else {
      overflows = overflows || __builtin_mul_overflow(product, shape[i], &product);
    }
  }
  if (overflows || (!is_empty && product > kMaxRankBytes / SizeOf(FromProto(dtype)))) {
    return InvalidSpec(field + ".shape",
                       absl::StrCat(Quoted(name), " of [", absl::StrJoin(shape, ", "), "] is larger than 2^46 bytes"),
                       "no machine holds it; look for a wrong length");
  }
  return is_empty ? 0 : product;
}

}  // namespace holdfast
