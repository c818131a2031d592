// Whoever wants to know what the core does: metrics and logs.
#ifndef HOLDFAST_SERVER_CORE_OBSERVER_H_
#define HOLDFAST_SERVER_CORE_OBSERVER_H_

#include <cstdint>
#include <string_view>

#include "absl/time/time.h"
#include "common/ids.h"
#include "common/layout.h"
#include "server/core/calls.h"

namespace holdfast {

enum class CollectiveKind : uint8_t { kAllGather, kReduceScatter };
// Why an epoch ended; a closed set, as it labels a metric.
enum class AbortCause : uint8_t { kLeaseLost, kDesync, kRejoin, kDropped, kDeviceError };

// Thread-safe, quick, and must not call back: some calls are made with the model's lock held.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void ModelRegistered(const ModelLayout& layout, int32_t num_ranks) = 0;
  virtual void ModelDropped(std::string_view model) = 0;
  // Whenever one of them has changed.
  virtual void PositionChanged(std::string_view model, const ModelPosition& position) = 0;
  virtual void LeasesChanged(std::string_view model, int32_t free, int32_t held, int32_t mapped) = 0;
  virtual void LeaseTaken(std::string_view model, Rank rank, int32_t pid) = 0;
  virtual void LeaseEnded(std::string_view model, Rank rank, int32_t pid, std::string_view reason) = 0;
  virtual void EpochEnded(std::string_view model, Epoch ended, AbortCause cause, std::string_view reason) = 0;
  // One Gather call, or prefetch, of one rank.
  virtual void Gathered(bool hit) = 0;
  // `size_bytes` are those written to all ranks of this node.
  virtual void CollectiveDone(CollectiveKind kind, int64_t size_bytes, absl::Duration took) = 0;
  virtual void EmaDone(int64_t size_bytes, absl::Duration took) = 0;
  virtual void Pulled(int64_t size_bytes) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_OBSERVER_H_
