// The EMA copies of a model: where they stand, and the work that moves them.
#ifndef HOLDFAST_SERVER_CORE_EMA_COPIES_H_
#define HOLDFAST_SERVER_CORE_EMA_COPIES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ids.h"
#include "common/layout.h"
#include "server/core/calls.h"
#include "server/core/rank_memory.h"
#include "server/device/device.h"

namespace holdfast {

// Where the committed shard of a rank is (the live one, or its undo copy).
using ShardSource = std::function<const std::byte*(const RankMemory&, const FlatParameter&)>;
// The work on one rank that moves copy `ema` to `step`; empty at a step that update_every skips.
std::vector<EmaTask> EmaMoveTasks(const ModelLayout& layout, const RankMemory& memory, size_t ema, Step step,
                                  const ShardSource& shard);
// The work on one rank that makes every copy equal to the parameters.
std::vector<CopyTask> EmaCopyInTasks(const ModelLayout& layout, const RankMemory& memory);

// Not thread-safe. A copy moves from step to step, for all ranks of this node at once.
class EmaCopies {
 public:
  // `layout` must outlive it.
  explicit EmaCopies(const ModelLayout& layout);

  const std::vector<EmaPosition>& positions() const { return positions_; }
  // Indices of the named copies, each once, in the order of the spec; all for none. NOT_FOUND names those that there
  // are.
  absl::StatusOr<std::vector<size_t>> Select(absl::Span<const std::string> names) const;

  // Records that copy `ema` is at `step`. If it was before, nothing changes and `applied` is false.
  EmaResult MovedTo(size_t ema, Step step);
  // Records that every copy equals the parameters of `step`.
  void CopiedIn(Step step);

 private:
  const ModelLayout& layout_;
  // In the order of the spec.
  std::vector<EmaPosition> positions_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_EMA_COPIES_H_
