// What the daemon says about a model.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_DAEMON_ADMIN_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_DAEMON_ADMIN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "holdfast/v1/admin_service.grpc.pb.h"

namespace text {

// AdminService of one daemon. Thread-safe.
class DaemonAdmin {
 public:
  // `socket` is the daemon's worker socket. Calls wait a little for it to listen. UNAVAILABLE: it does not.
  explicit DaemonAdmin(const std::string& socket);

  absl::StatusOr<holdfast::v1::GetStatusResponse> GetStatus() const;
  // NOT_FOUND: the daemon does not have it.
  absl::StatusOr<holdfast::v1::ModelStatus> GetModel(const std::string& name) const;
  // Waits until no worker holds the rank, and none that did still has its memory mapped, at most `limit`; returns what
  // the model is like then. DEADLINE_EXCEEDED: the lease has not ended by then.
  absl::StatusOr<holdfast::v1::ModelStatus> AwaitFreeRank(const std::string& name, holdfast::Rank rank,
                                                          absl::Duration limit) const;

 private:
  const std::string socket_;
  std::unique_ptr<holdfast::v1::AdminService::Stub> stub_;
};

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_DAEMON_ADMIN_H_
