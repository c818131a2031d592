// Where every byte of a model is: flat parameters, shards, slots and arenas, computed from the spec alone, alike in
// the daemon and in its workers.
#ifndef HOLDFAST_COMMON_LAYOUT_H_
#define HOLDFAST_COMMON_LAYOUT_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dtype.h"
#include "common/glob.h"  // IWYU pragma: export
#include "common/ids.h"
#include "holdfast/v1/model.pb.h"

namespace holdfast {

// Every flat parameter, in every arena and slot, begins at a multiple of it, in bytes.
inline constexpr int64_t kFlatParameterAlignment = 64;
// Every arena, and every slot of a ring, begins at a multiple of it, in bytes.
inline constexpr int64_t kPageBytes = 4096;

// The ranks as num_replicate rows of num_shard: rank r is shard r % num_shard of replica r / num_shard.
struct MeshShape {
  int32_t num_replicate = 1;
  int32_t num_shard = 1;

  int32_t world() const { return num_replicate * num_shard; }
  int32_t ShardOf(Rank rank) const { return rank.value() % num_shard; }
  int32_t ReplicaOf(Rank rank) const { return rank.value() / num_shard; }
  Rank RankAt(int32_t replica, int32_t shard) const { return Rank(replica * num_shard + shard); }
};

// A parameter's place in its flat parameter.
struct ParameterLayout {
  std::string name;
  std::vector<int64_t> shape;
  DType dtype = DType::kUnspecified;
  int64_t num_elements = 0;
  // First element, counted in the unsharded flat parameter.
  int64_t offset = 0;
};

// The parameters of a unit with one dtype and one trainability, concatenated in registration order with nothing
// between, and right-padded so that every shard has the same length: torch.distributed.fsdp's FlatParameter with
// use_orig_params=False. All *_offset are bytes from the start of the arena's data (behind the header page) or of the
// slot, and multiples of kFlatParameterAlignment.
struct FlatParameter {
  bool trainable = true;
  // The parameters' own dtype, what Gather delivers, what is reduced in, what shards are kept in.
  DType dtype = DType::kUnspecified;
  DType param_dtype = DType::kUnspecified;
  DType reduce_dtype = DType::kUnspecified;
  DType master_dtype = DType::kUnspecified;
  // Without padding.
  int64_t num_elements = 0;
  // ceil(num_elements / num_shard); the last shards may be padding in part or whole.
  int64_t shard_elements = 0;
  std::vector<ParameterLayout> parameters;

  // In the PARAMETERS arena: shard_elements of master_dtype.
  int64_t shard_offset = 0;
  // In the GRADIENTS arena: shard_elements of master_dtype. −1 if frozen, as the next two.
  int64_t gradient_offset = -1;
  // In the OPTIMIZER_STATE arena, one a state of the spec: shard_elements of that state's dtype.
  std::vector<int64_t> state_offsets;
  // In the EMA arena, one an EMA of the spec: shard_elements of that copy's dtype.
  std::vector<int64_t> ema_offsets;
  // In a gather slot: padded_elements of param_dtype.
  int64_t gather_offset = 0;
  // In a gradient slot: padded_elements of reduce_dtype. −1 if frozen.
  int64_t gradient_slot_offset = -1;

  int64_t padded_elements(int32_t num_shard) const { return shard_elements * num_shard; }
};

// A buffer's place: the whole tensor, on every rank.
struct BufferLayout {
  std::string name;
  std::vector<int64_t> shape;
  // What it is kept in.
  DType dtype = DType::kUnspecified;
  int64_t num_elements = 0;
  // In the BUFFERS arena, bytes.
  int64_t offset = 0;
};

struct UnitLayout {
  std::string name;
  // In the order in which the first parameter of each appears.
  std::vector<FlatParameter> flat_parameters;
  std::vector<BufferLayout> buffers;
  // Bytes used of a gather slot and of a gradient slot; 0 if the unit has nothing to gather or reduce.
  int64_t gather_bytes = 0;
  int64_t gradient_bytes = 0;
};

// Where a name leads.
struct TensorLocation {
  UnitIndex unit;
  // Index into UnitLayout::flat_parameters, or −1 for a buffer.
  int32_t flat_parameter = -1;
  // Index into FlatParameter::parameters or UnitLayout::buffers.
  int32_t index = 0;
};

// An EMA copy or an optimizer state, with the defaults filled in. master_dtype stands for kUnspecified of a state.
struct NamedCopy {
  std::string name;
  DType dtype = DType::kUnspecified;
};

// Immutable; safe to share between threads.
class ModelLayout {
 public:
  // INVALID_ARGUMENT, naming the field, its value and what is valid, if the spec contradicts itself, if its mesh is not
  // of `world` ranks, or if what a rank would hold is beyond any machine (2^46 bytes).
  static absl::StatusOr<ModelLayout> Create(const v1::ModelSpec& spec, int32_t world);

  // As given, with the defaults filled in (mesh, slots, update_protection, and dtype and update_every of the EMAs): two
  // specs that mean the same are equal, and a layout made of this one is the same layout.
  const v1::ModelSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name(); }
  const MeshShape& mesh() const { return mesh_; }
  v1::ShardingStrategy strategy() const { return spec_.mesh().strategy(); }
  const std::vector<UnitLayout>& units() const { return units_; }
  const UnitLayout& unit(UnitIndex index) const { return units_[static_cast<size_t>(index.value())]; }
  const std::vector<NamedCopy>& emas() const { return emas_; }
  // The dtype of a state is its own, or kUnspecified for the flat parameter's master dtype.
  const std::vector<NamedCopy>& states() const { return states_; }
  DType StateDType(const FlatParameter& flat, size_t state) const;

  // NOT_FOUND names the unit and some that there are.
  absl::StatusOr<UnitIndex> FindUnit(std::string_view name) const;
  // Every parameter, alias and buffer that is not ignored, unit by unit, a unit's parameters before its buffers.
  const std::vector<std::string>& tensor_names() const { return tensor_names_; }
  // Aliases lead to what they share. NOT_FOUND for an unknown name.
  absl::StatusOr<TensorLocation> FindTensor(std::string_view name) const;

  int32_t gather_slots() const { return gather_slots_; }
  int32_t gradient_slots() const { return gradient_slots_; }
  // Distance between slots in their arenas, bytes, a multiple of kPageBytes. Slot 0 begins the arena's data.
  int64_t gather_slot_bytes() const { return gather_slot_bytes_; }
  int64_t gradient_slot_bytes() const { return gradient_slot_bytes_; }

  // Size of a rank's arena, header page included; an arena that holds nothing still has its header page. UNDO holds the
  // data of the arenas that it saves: PARAMETERS, OPTIMIZER_STATE and BUFFERS, in that order, each from a page's start.
  int64_t ArenaBytes(v1::MemoryPurpose purpose) const;
  // One entry a purpose, as RegisterModelResponse has it. UNDO is left out with UPDATE_PROTECTION_NONE.
  std::vector<v1::MemoryUse> Memory() const;
  int64_t BytesPerRank() const;

  // Elements of all parameters, tied weights once, no padding.
  int64_t num_elements() const { return num_elements_; }
  // Of everything in a layout but the model's name: equal for equal layouts on every machine and build, and different
  // where two builds would place a byte differently.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  ModelLayout() = default;
  friend class LayoutBuilder;

  v1::ModelSpec spec_;
  MeshShape mesh_;
  std::vector<UnitLayout> units_;
  std::vector<NamedCopy> emas_;
  std::vector<NamedCopy> states_;
  std::vector<std::string> tensor_names_;
  absl::flat_hash_map<std::string, TensorLocation> tensors_;
  absl::flat_hash_map<std::string, UnitIndex> unit_indices_;
  int32_t gather_slots_ = 0;
  int32_t gradient_slots_ = 0;
  int64_t gather_slot_bytes_ = 0;
  int64_t gradient_slot_bytes_ = 0;
  // By purpose.
  std::array<int64_t, v1::MemoryPurpose_ARRAYSIZE> arena_bytes_ = {};
  int64_t num_elements_ = 0;
  uint64_t fingerprint_ = 0;
};

// The fingerprint as the API shows it: 16 hexadecimal digits.
std::string FingerprintText(uint64_t fingerprint);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_LAYOUT_H_
