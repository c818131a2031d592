// A few thousand random models, each against a second, plain implementation: it writes every flat parameter out as a
// list of elements and cuts it as torch.distributed.fsdp does.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/layout.h"
#include "common/shard_ranges.h"
#include "common/spec_difference.h"
#include "gtest/gtest.h"
#include "tests/common/random_spec.h"

namespace holdfast {
namespace {

constexpr uint64_t kSeed = 20261201;
constexpr int kSpecs = 3000;

// An element of a flat parameter: whose, and which of it.
using Element = std::pair<std::string, int64_t>;

struct ReferenceFlat {
  v1::DataType dtype;
  bool trainable;
  std::vector<Element> elements;
  // One a rank of the shard group; padding is nullopt.
  std::vector<std::vector<std::optional<Element>>> shards;
};

bool IsIgnored(const std::string& name) { return name.ends_with(kIgnoredEnding); }

int64_t NumElements(const google::protobuf::RepeatedField<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t length : shape) product *= length;
  return product;
}

// FlatParamHandle._get_unpadded_shard and _get_shard: torch.chunk gives pieces of ceil(n / num_shard) elements, the
// last shorter, and fewer than num_shard of them if the elements run out; each is padded to the length of the first.
void Shard(size_t num_shard, ReferenceFlat& flat) {
  const size_t length = (flat.elements.size() + num_shard - 1) / num_shard;
  for (size_t shard = 0; shard < num_shard; ++shard) {
    std::vector<std::optional<Element>>& piece = flat.shards.emplace_back();
    for (size_t i = shard * length; i < std::min((shard + 1) * length, flat.elements.size()); ++i) {
      piece.push_back(flat.elements[i]);
    }
    piece.resize(length);
  }
}

std::vector<ReferenceFlat> ReferenceOf(const v1::UnitSpec& unit, int32_t num_shard) {
  std::vector<ReferenceFlat> flats;
  for (const v1::ParameterSpec& parameter : unit.parameters()) {
    if (IsIgnored(parameter.name()) || !parameter.alias_of().empty()) continue;
    ReferenceFlat* flat = nullptr;
    for (ReferenceFlat& other : flats) {
      if (other.dtype == parameter.dtype() && other.trainable != parameter.frozen()) flat = &other;
    }
    if (flat == nullptr) {
      flats.push_back({.dtype = parameter.dtype(), .trainable = !parameter.frozen()});
      flat = &flats.back();
    }
    for (int64_t i = 0; i < NumElements(parameter.shape()); ++i) flat->elements.push_back({parameter.name(), i});
  }
  for (ReferenceFlat& flat : flats) Shard(static_cast<size_t>(num_shard), flat);
  return flats;
}

// What is in an arena or slot, byte ranges.
class Ranges {
 public:
  void Add(int64_t offset, int64_t num_elements, DType dtype) {
    EXPECT_GE(offset, 0);
    EXPECT_EQ(offset % kFlatParameterAlignment, 0);
    ranges_.push_back({offset, offset + num_elements * SizeOf(dtype)});
  }
  // No two overlap, and no space is lost but for alignment. The end of the last.
  int64_t Check() {
    std::sort(ranges_.begin(), ranges_.end());
    int64_t end = 0;
    for (const auto& [first, last] : ranges_) {
      EXPECT_GE(first, end);
      EXPECT_LT(first, end + kFlatParameterAlignment);
      end = last;
    }
    return end;
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;
};

int64_t Pages(int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

DType Resolved(v1::DataType asked, DType otherwise) {
  return asked == v1::DATA_TYPE_UNSPECIFIED ? otherwise : static_cast<DType>(asked);
}

class LayoutPropertyTest : public testing::Test {
 protected:
  void Check(const v1::ModelSpec& spec, const ModelLayout& layout) {
    num_shard_ = layout.mesh().num_shard;
    arenas_.clear();
    ASSERT_EQ(layout.units().size(), static_cast<size_t>(spec.units_size()));
    int64_t num_elements = 0;
    for (int u = 0; u < spec.units_size(); ++u) {
      const UnitLayout& unit = layout.units()[static_cast<size_t>(u)];
      EXPECT_EQ(layout.FindUnit(spec.units(u).name()).value(), UnitIndex(u));
      const std::vector<ReferenceFlat> reference = ReferenceOf(spec.units(u), num_shard_);
      ASSERT_EQ(unit.flat_parameters.size(), reference.size());
      Ranges gather;
      Ranges gradient;
      for (size_t f = 0; f < reference.size(); ++f) {
        const FlatParameter& flat = unit.flat_parameters[f];
        CheckElements(reference[f], flat);
        CheckDTypes(spec, reference[f], flat);
        gather.Add(flat.gather_offset, flat.padded_elements(num_shard_), flat.param_dtype);
        arenas_[v1::MEMORY_PURPOSE_PARAMETERS].Add(flat.shard_offset, flat.shard_elements, flat.master_dtype);
        if (flat.trainable)
          gradient.Add(flat.gradient_slot_offset, flat.padded_elements(num_shard_), flat.reduce_dtype);
        AddTrainable(layout, flat);
        num_elements += flat.num_elements;
      }
      EXPECT_EQ(gather.Check(), unit.gather_bytes);
      EXPECT_EQ(gradient.Check(), unit.gradient_bytes);
      EXPECT_LE(unit.gather_bytes, layout.gather_slot_bytes());
      EXPECT_LE(unit.gradient_bytes, layout.gradient_slot_bytes());
      for (const BufferLayout& buffer : unit.buffers) {
        arenas_[v1::MEMORY_PURPOSE_BUFFERS].Add(buffer.offset, buffer.num_elements, buffer.dtype);
      }
    }
    EXPECT_EQ(layout.num_elements(), num_elements);
    CheckNames(spec, layout);
    CheckSizes(layout);
  }

 private:
  // Every element of every parameter is where torch has it, and nothing is anywhere else.
  void CheckElements(const ReferenceFlat& reference, const FlatParameter& flat) {
    EXPECT_EQ(flat.trainable, reference.trainable);
    EXPECT_EQ(ToProto(flat.dtype), reference.dtype);
    ASSERT_EQ(flat.num_elements, static_cast<int64_t>(reference.elements.size()));
    ASSERT_EQ(flat.shard_elements, static_cast<int64_t>(reference.shards[0].size()));
    std::vector<std::vector<std::optional<Element>>> shards(static_cast<size_t>(num_shard_));
    for (auto& shard : shards) shard.resize(static_cast<size_t>(flat.shard_elements));
    for (const ParameterLayout& parameter : flat.parameters) {
      EXPECT_EQ(parameter.dtype, flat.dtype);
      for (int64_t i = 0; i < parameter.num_elements; ++i) {
        ASSERT_EQ(reference.elements[static_cast<size_t>(parameter.offset + i)], Element(parameter.name, i));
      }
      for (const ShardRange& range : ShardRangesOf(parameter, flat.shard_elements)) {
        for (int64_t i = 0; i < range.num_elements; ++i) {
          shards.at(static_cast<size_t>(range.shard)).at(static_cast<size_t>(range.shard_begin + i)) =
              Element(parameter.name, range.parameter_begin + i);
        }
      }
    }
    EXPECT_EQ(shards, reference.shards);
  }

  void CheckDTypes(const v1::ModelSpec& spec, const ReferenceFlat& reference, const FlatParameter& flat) {
    const auto own = static_cast<DType>(reference.dtype);
    if (!IsArithmetic(own)) {
      EXPECT_TRUE(flat.param_dtype == own && flat.reduce_dtype == own && flat.master_dtype == own);
      return;
    }
    EXPECT_EQ(flat.param_dtype, Resolved(spec.precision().param(), own));
    EXPECT_EQ(flat.reduce_dtype, Resolved(spec.precision().reduce(), Resolved(spec.precision().param(), own)));
    EXPECT_EQ(flat.master_dtype, Resolved(spec.precision().master(), own));
  }

  void AddTrainable(const ModelLayout& layout, const FlatParameter& flat) {
    if (!flat.trainable) {
      EXPECT_TRUE(flat.gradient_offset == -1 && flat.gradient_slot_offset == -1);
      EXPECT_TRUE(flat.state_offsets.empty() && flat.ema_offsets.empty());
      return;
    }
    const v1::ModelSpec& spec = layout.spec();
    arenas_[v1::MEMORY_PURPOSE_GRADIENTS].Add(flat.gradient_offset, flat.shard_elements, flat.master_dtype);
    ASSERT_EQ(flat.state_offsets.size(), static_cast<size_t>(spec.optimizer().worker().states_size()));
    for (size_t i = 0; i < flat.state_offsets.size(); ++i) {
      const DType dtype = Resolved(spec.optimizer().worker().states(static_cast<int>(i)).dtype(), flat.master_dtype);
      EXPECT_EQ(layout.StateDType(flat, i), dtype);
      arenas_[v1::MEMORY_PURPOSE_OPTIMIZER_STATE].Add(flat.state_offsets[i], flat.shard_elements, dtype);
    }
    ASSERT_EQ(flat.ema_offsets.size(), static_cast<size_t>(spec.emas_size()));
    for (size_t i = 0; i < flat.ema_offsets.size(); ++i) {
      const DType dtype = Resolved(spec.emas(static_cast<int>(i)).dtype(), DType::kFloat32);
      EXPECT_EQ(layout.emas()[i].dtype, dtype);
      arenas_[v1::MEMORY_PURPOSE_EMA].Add(flat.ema_offsets[i], flat.shard_elements, dtype);
    }
  }

  // Names are there in order and lead to what they name; the ignored ones are not there.
  void CheckNames(const v1::ModelSpec& spec, const ModelLayout& layout) {
    std::vector<std::string> names;
    for (const v1::UnitSpec& unit : spec.units()) {
      for (const v1::ParameterSpec& parameter : unit.parameters()) {
        if (IsIgnored(parameter.name())) continue;
        names.push_back(parameter.name());
        const TensorLocation location = layout.FindTensor(parameter.name()).value();
        const FlatParameter& flat =
            layout.unit(location.unit).flat_parameters.at(static_cast<size_t>(location.flat_parameter));
        const ParameterLayout& found = flat.parameters.at(static_cast<size_t>(location.index));
        EXPECT_EQ(found.name, parameter.alias_of().empty() ? parameter.name() : parameter.alias_of());
        EXPECT_EQ(found.shape, std::vector<int64_t>(parameter.shape().begin(), parameter.shape().end()));
      }
      for (const v1::BufferSpec& buffer : unit.buffers()) {
        if (IsIgnored(buffer.name())) {
          EXPECT_FALSE(layout.FindTensor(buffer.name()).ok());
          continue;
        }
        names.push_back(buffer.name());
        const TensorLocation location = layout.FindTensor(buffer.name()).value();
        ASSERT_EQ(location.flat_parameter, -1);
        const BufferLayout& found = layout.unit(location.unit).buffers.at(static_cast<size_t>(location.index));
        EXPECT_EQ(found.name, buffer.name());
        EXPECT_EQ(found.num_elements, NumElements(buffer.shape()));
        const auto own = static_cast<DType>(buffer.dtype());
        EXPECT_EQ(found.dtype, IsArithmetic(own) ? Resolved(spec.precision().buffer(), own) : own);
      }
    }
    EXPECT_EQ(layout.tensor_names(), names);
  }

  void CheckSizes(const ModelLayout& layout) {
    int64_t undo = 0;
    int64_t total = 0;
    for (const v1::MemoryPurpose purpose :
         {v1::MEMORY_PURPOSE_PARAMETERS, v1::MEMORY_PURPOSE_GRADIENTS, v1::MEMORY_PURPOSE_OPTIMIZER_STATE,
          v1::MEMORY_PURPOSE_BUFFERS, v1::MEMORY_PURPOSE_EMA}) {
      const int64_t data_bytes = Pages(arenas_[purpose].Check());
      EXPECT_EQ(layout.ArenaBytes(purpose), 4096 + data_bytes) << purpose;
      total += 4096 + data_bytes;
      if (purpose != v1::MEMORY_PURPOSE_GRADIENTS && purpose != v1::MEMORY_PURPOSE_EMA) undo += data_bytes;
    }
    EXPECT_EQ(layout.gather_slot_bytes() % 4096, 0);
    EXPECT_EQ(layout.gradient_slot_bytes() % 4096, 0);
    total += 4096 + layout.gather_slots() * layout.gather_slot_bytes();
    total += 4096 + layout.gradient_slots() * layout.gradient_slot_bytes();
    if (layout.spec().update_protection() != v1::UPDATE_PROTECTION_NONE) total += 4096 + undo;
    EXPECT_EQ(layout.BytesPerRank(), total);
    int64_t sum = 0;
    for (const v1::MemoryUse& use : layout.Memory()) {
      EXPECT_EQ(static_cast<int64_t>(use.size_bytes()), layout.ArenaBytes(use.purpose()));
      sum += static_cast<int64_t>(use.size_bytes());
    }
    EXPECT_EQ(sum, total);
  }

  int32_t num_shard_ = 1;
  std::map<v1::MemoryPurpose, Ranges> arenas_;
};

class RandomLayoutTest : public LayoutPropertyTest, public testing::WithParamInterface<int32_t> {};

TEST_P(RandomLayoutTest, Create_AsTheReference) {
  const int32_t world = GetParam();
  RecordProperty("seed", std::to_string(kSeed));
  std::mt19937_64 random(kSeed + static_cast<uint64_t>(world));
  for (int i = 0; i < kSpecs / 8; ++i) {
    const v1::ModelSpec spec = RandomSpec(random, world);
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", world " << world << ", spec " << i);
    const absl::StatusOr<ModelLayout> layout = ModelLayout::Create(spec, world);
    ASSERT_TRUE(layout.ok()) << layout.status() << "\n" << spec.DebugString();
    Check(spec, *layout);
    if (HasFailure()) FAIL() << spec.DebugString();
    // A worker makes its layout of the daemon's spec: it must be the same.
    const absl::StatusOr<ModelLayout> again = ModelLayout::Create(layout->spec(), world);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->fingerprint(), layout->fingerprint());
    EXPECT_EQ(FirstDifference(again->spec(), layout->spec()), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, RandomLayoutTest, testing::Range(1, 9));

}  // namespace
}  // namespace holdfast
