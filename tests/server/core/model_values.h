// What a model holds at one step, unsharded, and what must be found of it in shards, slots and pulled tensors.
#ifndef HOLDFAST_TESTS_SERVER_CORE_MODEL_VALUES_H_
#define HOLDFAST_TESTS_SERVER_CORE_MODEL_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/layout.h"
#include "tests/server/core/test_worker.h"

namespace holdfast {

// Random contents of every parameter, optimizer state and buffer. The layout must outlive it. Conversions are those of
// tests/common/element/element_reference.h, in double.
class ModelValues {
 public:
  ModelValues(const ModelLayout& layout, uint64_t seed);

  // Writes the rank's part to its shards, states and buffers.
  void WriteTo(const TestWorker& worker) const;
  // Fails the test where the rank's shards, states or buffers hold anything else.
  void ExpectOn(const TestWorker& worker) const;

  // What Gather delivers of a flat parameter: padded, in the param dtype.
  std::vector<std::byte> Gathered(size_t unit, size_t flat) const;
  // Fails the test where a gather slot of the worker holds anything else of the unit.
  void ExpectGathered(const TestWorker& worker, UnitIndex unit, int32_t slot) const;
  // A whole tensor as it is kept, or converted if it is floating-point.
  std::vector<std::byte> Tensor(const std::string& name, DType dtype = DType::kUnspecified) const;

  // An arithmetic flat parameter, padded; what a rank's shard is of it.
  std::vector<double> Flat(size_t unit, size_t flat) const;
  std::vector<double> Shard(size_t unit, size_t flat, Rank rank) const;

 private:
  struct FlatValues {
    // Padded, in the master dtype.
    std::vector<std::byte> parameter;
    // By state, padded.
    std::vector<std::vector<std::byte>> states;
  };
  struct UnitValues {
    std::vector<FlatValues> flats;
    std::vector<std::vector<std::byte>> buffers;
  };
  // Calls visit(what, live, expected) for each part of the rank.
  template <typename Visit>
  void ForEachPart(const TestWorker& worker, Visit visit) const;

  const ModelLayout& layout_;
  std::vector<UnitValues> units_;
};

// The bytes of `span`, for comparison.
std::vector<std::byte> BytesOf(absl::Span<const std::byte> span);
// Its elements.
std::vector<double> ValuesOf(absl::Span<const std::byte> span, DType dtype);
// The elements of `values` as `dtype` holds them.
std::vector<std::byte> RoundedBytes(const std::vector<double>& values, DType dtype);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_CORE_MODEL_VALUES_H_
