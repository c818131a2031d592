// A daemon that says what a test tells it to: for what the real one never does.
#ifndef HOLDFAST_TESTS_CLIENT_SCRIPTED_DAEMON_H_
#define HOLDFAST_TESTS_CLIENT_SCRIPTED_DAEMON_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/options.h"
#include "common/layout.h"
#include "common/unique_fd.h"
#include "holdfast/v1/parameter_service.grpc.pb.h"
#include "tests/client/test_rank_memory.h"

namespace holdfast {

// Serves rank 0 of the small model. Unless a script says otherwise it attaches correctly, puts unit i in gather slot i
// with completion i + 1, whose words the test sets, and answers everything else with OK.
class ScriptedDaemon final : public v1::ParameterService::Service {
 public:
  ScriptedDaemon();
  ~ScriptedDaemon() override;

  ClientOptions client_options() const;
  const ModelLayout& layout() const { return *layout_; }
  TestRankMemory& memory() { return memory_; }
  // Sent on the Attach stream of the held lease.
  void SendEvent(const v1::GroupEvent& event) ABSL_LOCKS_EXCLUDED(mu_);
  // Every connection breaks, as with a daemon that was killed.
  void Die();
  // What it was asked.
  std::vector<v1::GatherRequest> gathers() const ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<v1::ReleaseRequest> releases() const ABSL_LOCKS_EXCLUDED(mu_);
  v1::BeginUpdateRequest last_begin() const ABSL_LOCKS_EXCLUDED(mu_);

  // Scripts; to be set before the client connects.
  std::function<void(v1::AttachResponse&)> change_attached;
  std::function<grpc::Status(const v1::GatherRequest&, v1::GatherResponse&)> change_gather;
  std::vector<v1::PullResponse> pull_pieces;

  grpc::Status Attach(grpc::ServerContext* context, const v1::AttachRequest* request,
                      grpc::ServerWriter<v1::AttachResponse>* writer) override;
  grpc::Status Gather(grpc::ServerContext* context, const v1::GatherRequest* request,
                      v1::GatherResponse* response) override;
  grpc::Status Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                       v1::ReleaseResponse* response) override;
  grpc::Status BeginUpdate(grpc::ServerContext* context, const v1::BeginUpdateRequest* request,
                           v1::BeginUpdateResponse* response) override;
  grpc::Status ReduceScatter(grpc::ServerContext* context, const v1::ReduceScatterRequest* request,
                             v1::ReduceScatterResponse* response) override;
  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullResponse>* writer) override;

 private:
  // Hands the memory to whoever connects, until the listening socket is shut down.
  void ServeMemory();
  void FillTicket(const std::string& unit, v1::GatherTicket& ticket) const;

  const std::shared_ptr<const ModelLayout> layout_;
  TestRankMemory memory_;
  std::string directory_;
  UniqueFd listener_;
  std::unique_ptr<grpc::Server> server_;

  mutable absl::Mutex mu_;
  std::vector<v1::GroupEvent> events_ ABSL_GUARDED_BY(mu_);
  bool dying_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<v1::GatherRequest> gathers_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::ReleaseRequest> releases_ ABSL_GUARDED_BY(mu_);
  v1::BeginUpdateRequest last_begin_ ABSL_GUARDED_BY(mu_);
  std::thread memory_thread_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_CLIENT_SCRIPTED_DAEMON_H_
