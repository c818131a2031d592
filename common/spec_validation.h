// What a model spec must be like by itself, before anything is laid out.
#ifndef HOLDFAST_COMMON_SPEC_VALIDATION_H_
#define HOLDFAST_COMMON_SPEC_VALIDATION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dtype.h"
#include "common/layout.h"
#include "holdfast/v1/model.pb.h"

namespace holdfast {

// What a rank may hold, bytes, and so no arena or tensor may be larger; far beyond any machine, and sums of such
// numbers don't overflow.
inline constexpr int64_t kMaxRankBytes = int64_t{1} << 46;
inline constexpr uint32_t kMaxRingSlots = 256;

// INVALID_ARGUMENT: "<field>: <what it is>; <what is valid>".
absl::Status InvalidSpec(const std::string& field, const std::string& is, const std::string& valid);

// Everything but mesh and units: name, counts, precision, EMAs, optimizer, ignored names, slots. Fields are named as in
// the message.
absl::Status ValidateOptions(const v1::ModelSpec& spec);
// The mesh with what the strategy implies filled in. `world` is the number of ranks.
absl::StatusOr<MeshShape> ValidateMesh(const v1::Mesh& mesh, int32_t world);
// `name`, in `field`, as a unit, a parameter or a buffer may be called.
absl::Status ValidateName(const std::string& field, const std::string& name);
// Name, shape and dtype of the parameter or buffer in `field`; its number of elements.
absl::StatusOr<int64_t> ValidateTensor(const std::string& field, const std::string& name,
                                       const google::protobuf::RepeatedField<int64_t>& shape, v1::DataType dtype);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_SPEC_VALIDATION_H_
