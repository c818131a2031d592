// Computes a ModelLayout from its spec.
#ifndef HOLDFAST_COMMON_LAYOUT_BUILDER_H_
#define HOLDFAST_COMMON_LAYOUT_BUILDER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout.h"

namespace holdfast {

// Used once: make it, call Build.
class LayoutBuilder {
 public:
  // `spec` must outlive it.
  LayoutBuilder(const v1::ModelSpec& spec, int32_t world) : spec_(spec), world_(world) {}

  // As ModelLayout::Create.
  absl::StatusOr<ModelLayout> Build();

 private:
  bool IsIgnored(const std::string& name) const;
  void FillCopies();
  absl::Status AddUnit(int index);
  absl::Status AddParameter(const std::string& field, const v1::ParameterSpec& parameter, UnitLayout& unit);
  absl::Status AddAlias(const std::string& field, const v1::ParameterSpec& parameter);
  absl::Status AddBuffer(const std::string& field, const v1::BufferSpec& buffer, UnitLayout& unit);
  // Records where a name leads; it must be new.
  absl::Status AddName(const std::string& field, const std::string& name, const TensorLocation& location);
  // Gives every flat parameter of the unit its places.
  absl::Status PlaceUnit(UnitLayout& unit);
  // Takes num_elements of `dtype` at the end of what `cursor` counts; the offset, bytes.
  absl::StatusOr<int64_t> Take(int64_t& cursor, int64_t num_elements, DType dtype) const;
  absl::Status PlaceRings();
  void Fingerprint();

  const v1::ModelSpec& spec_;
  const int32_t world_;
  ModelLayout layout_;
  // The specs of the parameters that an alias may name.
  absl::flat_hash_map<std::string, const v1::ParameterSpec*> parameters_;
  absl::flat_hash_set<std::string> ignored_;
  // Data bytes so far, by purpose.
  absl::flat_hash_map<int, int64_t> cursors_;
};

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_LAYOUT_BUILDER_H_
