// A small model that has one of everything.
#ifndef HOLDFAST_TESTS_COMMON_SAMPLE_SPEC_H_
#define HOLDFAST_TESTS_COMMON_SAMPLE_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/v1/model.pb.h"

namespace holdfast {

// For 2 ranks, FULL_SHARD: several dtypes, frozen, tied, 0-dim and fp8 parameters, buffers, two EMAs, two states.
// layout_test.cc has its places, worked out by hand.
v1::ModelSpec SampleSpec();

// Adds a parameter, float32 and trainable, to the unit.
v1::ParameterSpec& AddParameter(v1::UnitSpec& unit, const std::string& name, const std::vector<int64_t>& shape,
                                v1::DataType dtype = v1::DATA_TYPE_FLOAT32);

void SetShape(v1::ParameterSpec& parameter, const std::vector<int64_t>& shape);

void SetMesh(v1::ModelSpec& spec, v1::ShardingStrategy strategy, uint32_t num_replicate, uint32_t num_shard);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_COMMON_SAMPLE_SPEC_H_
