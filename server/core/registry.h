// The models of this node.
#ifndef HOLDFAST_SERVER_CORE_REGISTRY_H_
#define HOLDFAST_SERVER_CORE_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/collectives/collectives.h"
#include "server/core/memory_claims.h"
#include "server/core/model.h"
#include "server/core/observer.h"
#include "server/device/device.h"

namespace holdfast {

using CollectivesFactory = std::function<absl::StatusOr<std::unique_ptr<Collectives>>(const MeshShape&)>;

struct RegistryOptions {
  // Limit on the bytes of all models together; 0: 90 % of what each device has free.
  int64_t memory_limit_bytes = 0;
  // How long a collective call waits for its peers.
  absl::Duration collective_timeout = absl::Seconds(60);
  // What all Pull streams together may stage, bytes.
  int64_t pull_staging_bytes = int64_t{4} << 30;
};

// Thread-safe.
class Registry : public MemoryClaims {
 public:
  struct Registered {
    std::shared_ptr<Model> model;
    // False if the same spec was there before.
    bool created = false;
  };

  // devices[r] is rank r's; one device may serve several ranks. Devices and observer must outlive the registry.
  Registry(std::vector<Device*> devices, CollectivesFactory collectives, Observer& observer,
           const RegistryOptions& options);
  ~Registry() override;

  // Whoever gets a model keeps it for one call, no longer: Drop waits for them.
  absl::StatusOr<Registered> Register(const v1::ModelSpec& spec);
  absl::StatusOr<std::shared_ptr<Model>> Find(std::string_view name) const;
  // In the order of their names.
  std::vector<std::shared_ptr<Model>> models() const;
  // The bytes given back. FAILED_PRECONDITION if a lease is held and `force` is not set.
  absl::StatusOr<int64_t> Drop(std::string_view name, bool force);

  // From now on nothing is registered and nobody attaches; lease holders are told.
  void StartDrain();
  bool draining() const;
  // UNAVAILABLE while draining.
  absl::Status CheckNotDraining() const;
  // Returns when no lease is held, or at `deadline`; true if none is.
  bool AwaitNoLeases(absl::Time deadline) const;

  int32_t num_ranks() const { return static_cast<int32_t>(devices_.size()); }
  int64_t memory_limit_bytes() const { return options_.memory_limit_bytes; }
  int64_t memory_used_bytes() const;

  absl::StatusOr<std::vector<UniqueFd>> ClaimMemory(std::string_view token, pid_t pid) override;
  void ConnectionClosed(std::string_view token) override;
  void ProcessDied(std::string_view token, pid_t pid) override;

 private:
  absl::Status CheckFits(const ModelLayout& layout) const;
  std::shared_ptr<Model> FindByToken(std::string_view token) const;

  const std::vector<Device*> devices_;
  const CollectivesFactory collectives_;
  Observer& observer_;
  const RegistryOptions options_;
  StagingBudget staging_;

  // Held while memory is taken or given back, so that two registrations don't count on the same bytes.
  absl::Mutex register_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  mutable absl::Mutex mu_;
  std::map<std::string, std::shared_ptr<Model>, std::less<>> models_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_REGISTRY_H_
