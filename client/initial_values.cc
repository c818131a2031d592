#include "client/initial_values.h"

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/tensor_view.h"

namespace holdfast {
namespace {

// So many names are enough in a message.
constexpr size_t kNamesShown = 5;

// A name under which something is stored, and what.
struct StoredTensor {
  const std::string& name;
  const std::vector<int64_t>& shape;
  DType dtype;
};

absl::Status CheckTensor(const StoredTensor& stored, const at::Tensor& value) {
  if (!value.defined()) return absl::InvalidArgumentError(absl::StrCat("'", stored.name, "' is an undefined tensor"));
  if (value.sizes() != c10::IntArrayRef(stored.shape)) {
    return absl::InvalidArgumentError(absl::StrCat("'", stored.name, "' has the shape [",
                                                   absl::StrJoin(value.sizes(), ", "), "], registered is [",
                                                   absl::StrJoin(stored.shape, ", "), "]"));
  }
  // What is carried as bytes is never converted.
  const bool fits = IsArithmetic(stored.dtype) ? at::isFloatingType(value.scalar_type())
                                               : value.scalar_type() == ScalarTypeOf(stored.dtype);
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("'", stored.name, "' is of dtype ",
                                                   c10::toString(value.scalar_type()), ", which cannot be taken for ",
                                                   std::string(Name(stored.dtype))));
  }
  return absl::OkStatus();
}

// Calls `visit` for everything stored, in the order of the layout, until an error.
template <typename Visit>
absl::Status ForEachStored(const ModelLayout& layout, Visit visit) {
  for (const UnitLayout& unit : layout.units()) {
    for (const FlatParameter& flat : unit.flat_parameters) {
      for (const ParameterLayout& parameter : flat.parameters) {
        absl::Status status = visit(StoredTensor{parameter.name, parameter.shape, flat.master_dtype});
        if (!status.ok()) return status;
      }
    }
    for (const BufferLayout& buffer : unit.buffers) {
      absl::Status status = visit(StoredTensor{buffer.name, buffer.shape, buffer.dtype});
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

bool IsIgnored(const ModelLayout& layout, const std::string& name) {
  const auto& globs = layout.spec().ignored_parameters();
  return std::any_of(globs.begin(), globs.end(), [name](const std::string& glob) { return MatchesGlob(name, glob); });
}

std::string Some(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const size_t num_names = names.size();
  names.resize(std::min(num_names, kNamesShown));
  return absl::StrCat(absl::StrJoin(names, ", "),
                      num_names > kNamesShown ? absl::StrCat(" and ", num_names - kNamesShown, " more") : "");
}

// The part of `value`, a whole tensor, that is in shard `shard_index` goes to `shard`.
absl::Status CopySlice(const FlatParameter& flat, const ParameterLayout& parameter, int64_t shard_index,
                       const at::Tensor& value, const at::Tensor& shard) {
  const int64_t shard_begin = shard_index * flat.shard_elements;
  const int64_t begin = std::max(parameter.offset, shard_begin);
  const int64_t end = std::min(parameter.offset + parameter.num_elements, shard_begin + flat.shard_elements);
  if (begin >= end) return absl::OkStatus();
  absl::StatusOr<at::Tensor> whole = FlattenTensor(value);
  if (!whole.ok()) return whole.status();
  return CopyTensor(shard.narrow(0, begin - shard_begin, end - begin),
                    whole->narrow(0, begin - parameter.offset, end - begin));
}

void ZeroPadding(const FlatParameter& flat, int64_t shard_index, const at::Tensor& shard) {
  const int64_t used =
      std::clamp<int64_t>(flat.num_elements - shard_index * flat.shard_elements, 0, flat.shard_elements);
  shard.narrow(0, used, flat.shard_elements - used).zero_();
}

// The value for `stored`, fetched and checked.
absl::StatusOr<at::Tensor> Fetch(const StoredTensor& stored, TensorSource value) {
  absl::StatusOr<at::Tensor> tensor = value(stored.name);
  if (!tensor.ok()) return tensor;
  if (absl::Status status = CheckTensor(stored, *tensor); !status.ok()) return status;
  return tensor;
}

}  // namespace

absl::Status CheckInitialValues(const ModelLayout& layout, const TensorsByName& values) {
  std::vector<std::string> missing;
  absl::Status status = ForEachStored(layout, [&](const StoredTensor& stored) {
    const auto it = values.find(stored.name);
    if (it != values.end()) return CheckTensor(stored, it->second);
    missing.emplace_back(stored.name);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (!missing.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no value is given for ", Some(missing), "; every parameter and buffer needs one"));
  }
  const absl::flat_hash_set<std::string> known(layout.tensor_names().begin(), layout.tensor_names().end());
  std::vector<std::string> unknown;
  for (const auto& [name, tensor] : values) {
    if (!known.contains(name) && !IsIgnored(layout, name)) unknown.push_back(name);
  }
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("values are given for ", Some(unknown), ", which the model '", layout.name(), "' does not have"));
}

absl::Status CopyInitialValues(const ModelLayout& layout, Rank rank, const std::vector<UnitShards>& shards,
                               TensorSource value) {
  const int64_t shard_index = layout.mesh().ShardOf(rank);
  for (const UnitShards& unit : shards) {
    for (const FlatShard& shard : unit.flat_parameters) {
      const FlatParameter& flat = *shard.layout;
      ZeroPadding(flat, shard_index, shard.parameter);
      for (const ParameterLayout& parameter : flat.parameters) {
        auto tensor = Fetch({parameter.name, parameter.shape, flat.master_dtype}, value);
        if (!tensor.ok()) return tensor.status();
        absl::Status status = CopySlice(flat, parameter, shard_index, *tensor, shard.parameter);
        if (!status.ok()) return status;
      }
    }
    for (const BufferLayout& buffer : layout.unit(unit.unit).buffers) {
      auto tensor = Fetch({buffer.name, buffer.shape, buffer.dtype}, value);
      if (!tensor.ok()) return tensor.status();
      absl::Status status = CopyTensor(unit.buffers.at(buffer.name), *tensor);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace holdfast
