// Computes a ModelLayout from its spec.
#ifndef HOLDFAST_COMMON_LAYOUT_BUILDER_H_
#define HOLDFAST_COMMON_LAYOUT_BUILDER_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ignored_names.h"
#include "common/layout.h"

namespace holdfast {

// Used once: make it, call Build. Its time grows with the size of the spec, not faster.
class LayoutBuilder {
 public:
  // `spec` must outlive it.
  LayoutBuilder(const v1::ModelSpec& spec, int32_t world)
      : spec_(spec), world_(world), ignored_(spec.ignored_parameters()) {}

  // As ModelLayout::Create.
  absl::StatusOr<ModelLayout> Build();

 private:
  void FillCopies();
  absl::Status AddUnit(int index);
  absl::Status AddParameter(const std::string& field, const v1::ParameterSpec& parameter, UnitLayout& unit);
  absl::Status AddAlias(const std::string& field, const v1::ParameterSpec& parameter);
  absl::Status AddBuffer(const std::string& field, const v1::BufferSpec& buffer, UnitLayout& unit);
  // True if the name is ignored, and then only remembered, as no other tensor may have it.
  absl::StatusOr<bool> IsIgnored(const std::string& field, const std::string& name);
  // Records where a name leads; it must be new. By value, as it may come from the map that this grows.
  absl::Status AddName(const std::string& field, const std::string& name, TensorLocation location);
  // Gives every flat parameter of the unit its places.
  absl::Status PlaceUnit(const std::string& field, UnitLayout& unit);
  absl::Status PlaceRings();
  absl::Status SizeArenas();
  // Writes into the layout's spec what was left to a default.
  void FillSpec();

  const v1::ModelSpec& spec_;
  const int32_t world_;
  IgnoredNames ignored_;
  ModelLayout layout_;
  // The specs of the parameters that an alias may name.
  absl::flat_hash_map<std::string, const v1::ParameterSpec*> parameters_;
  absl::flat_hash_set<std::string> ignored_so_far_;
  // Data bytes so far, by purpose.
  std::array<int64_t, v1::MemoryPurpose_ARRAYSIZE> cursors_ = {};
};

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_LAYOUT_BUILDER_H_
