#include "client/shards.h"

#include <utility>

#include "client/mapped_memory.h"
#include "client/tensor_view.h"

namespace holdfast {
namespace {

FlatShard MakeFlatShard(const std::shared_ptr<const MappedMemory>& memory, const FlatParameter& flat) {
  const ModelLayout& layout = memory->layout();
  const auto view = [&memory, &flat](const std::byte* data, DType dtype) {
    return ViewOf(memory, data, dtype, {flat.shard_elements});
  };
  FlatShard shard;
  shard.layout = &flat;
  shard.parameter = view(memory->Shard(flat), flat.master_dtype);
  if (!flat.trainable) return shard;
  shard.gradient = view(memory->Gradient(flat), flat.master_dtype);
  for (size_t i = 0; i < layout.states().size(); ++i) {
    shard.states.emplace(layout.states()[i].name, view(memory->State(flat, i), layout.StateDType(flat, i)));
  }
  for (size_t i = 0; i < layout.emas().size(); ++i) {
    shard.emas.emplace(layout.emas()[i].name, view(memory->Ema(flat, i), layout.emas()[i].dtype));
  }
  return shard;
}

}  // namespace

std::vector<UnitShards> MakeShards(const std::shared_ptr<const MappedMemory>& memory) {
  const ModelLayout& layout = memory->layout();
  std::vector<UnitShards> units;
  units.reserve(layout.units().size());
  for (const UnitLayout& unit : layout.units()) {
    UnitShards shards;
    shards.unit = UnitIndex(static_cast<int32_t>(units.size()));
    for (const FlatParameter& flat : unit.flat_parameters) {
      shards.flat_parameters.push_back(MakeFlatShard(memory, flat));
    }
    for (const BufferLayout& buffer : unit.buffers) {
      shards.buffers.emplace(buffer.name, ViewOf(memory, memory->Buffer(buffer), buffer.dtype, buffer.shape));
    }
    units.push_back(std::move(shards));
  }
  return units;
}

}  // namespace holdfast
