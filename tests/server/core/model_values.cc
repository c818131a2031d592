#include "tests/server/core/model_values.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/element/element_reference.h"

namespace holdfast {
namespace {

std::vector<std::byte> RandomElements(DType dtype, int64_t count, uint64_t seed) {
  if (IsArithmetic(dtype)) return testing::EncodeAll(dtype, testing::RandomValues(dtype, count, seed));
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(static_cast<size_t>(count * SizeOf(dtype)));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

absl::Span<const std::byte> Part(const std::vector<std::byte>& whole, int64_t first, int64_t count, DType dtype) {
  const int64_t size = SizeOf(dtype);
  return absl::MakeConstSpan(whole).subspan(static_cast<size_t>(first * size), static_cast<size_t>(count * size));
}

}  // namespace

std::vector<std::byte> BytesOf(absl::Span<const std::byte> span) { return {span.begin(), span.end()}; }

std::vector<double> ValuesOf(absl::Span<const std::byte> span, DType dtype) {
  return testing::DecodeAll(dtype, BytesOf(span));
}

std::vector<std::byte> RoundedBytes(const std::vector<double>& values, DType dtype) {
  std::vector<double> rounded = values;
  for (double& value : rounded) value = testing::RoundedTo(dtype, value);
  return testing::EncodeAll(dtype, rounded);
}

ModelValues::ModelValues(const ModelLayout& layout, uint64_t seed) : layout_(layout) {
  uint64_t next = seed * 1000;
  for (const UnitLayout& unit : layout.units()) {
    UnitValues& values = units_.emplace_back();
    for (const FlatParameter& flat : unit.flat_parameters) {
      FlatValues& of_flat = values.flats.emplace_back();
      const int64_t padded = flat.padded_elements(layout.mesh().num_shard);
      of_flat.parameter = RandomElements(flat.master_dtype, flat.num_elements, ++next);
      of_flat.parameter.resize(static_cast<size_t>(padded * SizeOf(flat.master_dtype)));
      for (size_t state = 0; flat.trainable && state < layout.states().size(); ++state) {
        of_flat.states.push_back(RandomElements(layout.StateDType(flat, state), padded, ++next));
      }
    }
    for (const BufferLayout& buffer : unit.buffers) {
      values.buffers.push_back(RandomElements(buffer.dtype, buffer.num_elements, ++next));
    }
  }
}

template <typename Visit>
void ModelValues::ForEachPart(const TestWorker& worker, Visit visit) const {
  const int64_t shard = layout_.mesh().ShardOf(worker.rank());
  for (size_t u = 0; u < units_.size(); ++u) {
    const UnitLayout& unit = layout_.units()[u];
    for (size_t f = 0; f < unit.flat_parameters.size(); ++f) {
      const FlatParameter& flat = unit.flat_parameters[f];
      const FlatValues& values = units_[u].flats[f];
      const auto of_shard = [&](const std::vector<std::byte>& whole, DType dtype) {
        return Part(whole, shard * flat.shard_elements, flat.shard_elements, dtype);
      };
      const std::string name = absl::StrCat("flat parameter ", f, " of unit '", unit.name, "'");
      visit(name, worker.Shard(flat), of_shard(values.parameter, flat.master_dtype));
      for (size_t s = 0; s < values.states.size(); ++s) {
        visit(absl::StrCat("state ", s, " of ", name), worker.State(flat, s),
              of_shard(values.states[s], layout_.StateDType(flat, s)));
      }
    }
    for (size_t b = 0; b < unit.buffers.size(); ++b) {
      visit("buffer " + unit.buffers[b].name, worker.Buffer(unit.buffers[b]),
            absl::MakeConstSpan(units_[u].buffers[b]));
    }
  }
}

void ModelValues::WriteTo(const TestWorker& worker) const {
  ForEachPart(worker, [](const std::string&, absl::Span<std::byte> live, absl::Span<const std::byte> expected) {
    std::copy(expected.begin(), expected.end(), live.begin());
  });
}

void ModelValues::ExpectOn(const TestWorker& worker) const {
  ForEachPart(worker, [&](const std::string& what, absl::Span<std::byte> live, absl::Span<const std::byte> expected) {
    EXPECT_TRUE(live == expected) << what << " of rank " << worker.rank();
  });
}

std::vector<double> ModelValues::Flat(size_t unit, size_t flat) const {
  return testing::DecodeAll(layout_.units()[unit].flat_parameters[flat].master_dtype,
                            units_[unit].flats[flat].parameter);
}

std::vector<double> ModelValues::Shard(size_t unit, size_t flat, Rank rank) const {
  const FlatParameter& of = layout_.units()[unit].flat_parameters[flat];
  return ValuesOf(Part(units_[unit].flats[flat].parameter, layout_.mesh().ShardOf(rank) * of.shard_elements,
                       of.shard_elements, of.master_dtype),
                  of.master_dtype);
}

std::vector<std::byte> ModelValues::Gathered(size_t unit, size_t flat) const {
  const FlatParameter& of = layout_.units()[unit].flat_parameters[flat];
  const std::vector<std::byte>& whole = units_[unit].flats[flat].parameter;
  if (of.param_dtype == of.master_dtype) return whole;
  return RoundedBytes(testing::DecodeAll(of.master_dtype, whole), of.param_dtype);
}

void ModelValues::ExpectGathered(const TestWorker& worker, UnitIndex unit, int32_t slot) const {
  const UnitLayout& of = layout_.unit(unit);
  for (size_t f = 0; f < of.flat_parameters.size(); ++f) {
    const absl::Span<const std::byte> gathered = worker.GatherSlot(slot, of.flat_parameters[f]);
    EXPECT_TRUE(gathered == absl::MakeConstSpan(Gathered(static_cast<size_t>(unit.value()), f)))
        << "flat parameter " << f << " of unit '" << of.name << "' in slot " << slot << " of rank " << worker.rank();
  }
}

std::vector<std::byte> ModelValues::Tensor(const std::string& name, DType dtype) const {
  const TensorLocation location = *layout_.FindTensor(name);
  const auto u = static_cast<size_t>(location.unit.value());
  const auto index = static_cast<size_t>(location.index);
  const UnitLayout& unit = layout_.unit(location.unit);
  std::vector<std::byte> kept;
  DType kept_dtype = DType::kUnspecified;
  if (location.flat_parameter < 0) {
    kept = units_[u].buffers[index];
    kept_dtype = unit.buffers[index].dtype;
  } else {
    const auto f = static_cast<size_t>(location.flat_parameter);
    const ParameterLayout& parameter = unit.flat_parameters[f].parameters[index];
    kept_dtype = unit.flat_parameters[f].master_dtype;
    kept = BytesOf(Part(units_[u].flats[f].parameter, parameter.offset, parameter.num_elements, kept_dtype));
  }
  if (dtype == DType::kUnspecified || dtype == kept_dtype || !IsArithmetic(kept_dtype)) return kept;
  return RoundedBytes(testing::DecodeAll(kept_dtype, kept), dtype);
}

}  // namespace holdfast
