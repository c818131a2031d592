#include "common/layout_fingerprint.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace holdfast {
namespace {

// Every number is eight bytes, little-endian; every text and list begins with its length: no two layouts have one
// encoding.
class Fnv1a {
 public:
  uint64_t value() const { return value_; }

  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void Add(T number) {
    const auto bits = static_cast<uint64_t>(number);
    for (int shift = 0; shift < 64; shift += 8) AddByte(static_cast<uint8_t>(bits >> shift));
  }
  void Add(std::string_view text) {
    Add(text.size());
    for (const char c : text) AddByte(static_cast<uint8_t>(c));
  }
  void Add(const std::vector<int64_t>& numbers) {
    Add(numbers.size());
    for (const int64_t number : numbers) Add(number);
  }

 private:
  void AddByte(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }

  uint64_t value_ = 0xcbf29ce484222325;
};

void AddFlatParameter(const FlatParameter& flat, Fnv1a& hash) {
  hash.Add(flat.trainable);
  for (const DType dtype : {flat.dtype, flat.param_dtype, flat.reduce_dtype, flat.master_dtype}) hash.Add(dtype);
  hash.Add(flat.parameters.size());
  for (const ParameterLayout& parameter : flat.parameters) {
    hash.Add(parameter.name);
    hash.Add(parameter.shape);
    hash.Add(parameter.offset);
  }
  for (const int64_t number : {flat.num_elements, flat.shard_elements, flat.shard_offset, flat.gradient_offset,
                               flat.gather_offset, flat.gradient_slot_offset}) {
    hash.Add(number);
  }
  hash.Add(flat.state_offsets);
  hash.Add(flat.ema_offsets);
}

void AddUnit(const UnitLayout& unit, Fnv1a& hash) {
  hash.Add(unit.name);
  hash.Add(unit.flat_parameters.size());
  for (const FlatParameter& flat : unit.flat_parameters) AddFlatParameter(flat, hash);
  hash.Add(unit.buffers.size());
  for (const BufferLayout& buffer : unit.buffers) {
    hash.Add(buffer.name);
    hash.Add(buffer.shape);
    hash.Add(buffer.dtype);
    hash.Add(buffer.offset);
  }
}

}  // namespace

uint64_t FingerprintOf(const ModelLayout& layout) {
  Fnv1a hash;
  hash.Add(layout.strategy());
  hash.Add(layout.mesh().num_replicate);
  hash.Add(layout.mesh().num_shard);
  hash.Add(layout.units().size());
  for (const UnitLayout& unit : layout.units()) AddUnit(unit, hash);
  // This is where the aliases are.
  hash.Add(layout.tensor_names().size());
  for (const std::string& name : layout.tensor_names()) {
    hash.Add(name);
    const TensorLocation location = layout.FindTensor(name).value();
    hash.Add(location.unit.value());
    hash.Add(location.flat_parameter);
    hash.Add(location.index);
  }
  for (const std::vector<NamedCopy>* copies : {&layout.emas(), &layout.states()}) {
    hash.Add(copies->size());
    for (const NamedCopy& copy : *copies) {
      hash.Add(copy.name);
      hash.Add(copy.dtype);
    }
  }
  hash.Add(layout.gather_slots());
  hash.Add(layout.gradient_slots());
  hash.Add(layout.gather_slot_bytes());
  hash.Add(layout.gradient_slot_bytes());
  const std::vector<v1::MemoryUse> memory = layout.Memory();
  hash.Add(memory.size());
  for (const v1::MemoryUse& use : memory) {
    hash.Add(use.purpose());
    hash.Add(use.size_bytes());
  }
  return hash.value();
}

}  // namespace holdfast
