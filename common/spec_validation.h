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

// No arena may be larger, bytes; far beyond any machine, and sums of such numbers don't overflow.
inline constexpr int64_t kMaxArenaBytes = int64_t{1} << 46;

// INVALID_ARGUMENT: "<field>: <what it is>; <what is valid>".
absl::Status InvalidSpec(const std::string& field, const std::string& is, const std::string& valid);

// Everything but the units: name, counts, precision, EMAs, optimizer, slots. Fields are named as in the message.
absl::Status ValidateOptions(const v1::ModelSpec& spec);
// The mesh with what the strategy implies filled in.
absl::StatusOr<MeshShape> ValidateMesh(const v1::Mesh& mesh, int32_t world);
// Name and dtype of a parameter or buffer; the number of elements, checked against overflow.
absl::StatusOr<int64_t> ValidateTensor(const std::string& field, const std::string& name,
                                       const google::protobuf::RepeatedField<int64_t>& shape, v1::DataType dtype);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_SPEC_VALIDATION_H_
