// A rank's own part of the model, as tensors over the mapped memory.
#ifndef HOLDFAST_CLIENT_SHARDS_H_
#define HOLDFAST_CLIENT_SHARDS_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/layout.h"

namespace holdfast {

// One flat parameter's shard: 1-D tensors of layout->shard_elements each (0 elements are legal), padding included.
// Views of shared memory: nothing is copied, and each keeps its mapping alive.
struct FlatShard {
  // Where the parameters are in the unsharded flat parameter; owned by the worker's layout.
  const FlatParameter* layout = nullptr;
  // Master dtype. Written only between BeginUpdate and CommitUpdate.
  at::Tensor parameter;
  // Master dtype: the reduced mean gradient, once the futures of the unit's ReduceScatter are done. May be written
  // (scaled, clipped) until CommitUpdate. Undefined for a frozen flat parameter, as the next two are empty.
  at::Tensor gradient;
  // Optimizer state by name (OptimizerStateSpec::name), as the parameter written only in an update. Starts as zeros.
  std::map<std::string, at::Tensor> states;
  // EMA copies by name. Mapped for reading only: writing to one is a segmentation fault.
  std::map<std::string, at::Tensor> emas;
};

struct UnitShards {
  UnitIndex unit;
  // As UnitLayout::flat_parameters.
  std::vector<FlatShard> flat_parameters;
  // Whole tensors by name, with their shape, in the buffer dtype. Written only in an update, by every rank alike.
  std::map<std::string, at::Tensor> buffers;
};

class MappedMemory;

// One entry a unit, in the order of the layout.
std::vector<UnitShards> MakeShards(const std::shared_ptr<const MappedMemory>& memory);

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_SHARDS_H_
