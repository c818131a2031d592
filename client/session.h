// One rank's lease and the calls of its training steps, without LibTorch.
#ifndef HOLDFAST_CLIENT_SESSION_H_
#define HOLDFAST_CLIENT_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/attach_stream.h"
#include "client/connection.h"
#include "client/future.h"
#include "client/gather_source.h"
#include "client/gather_tickets.h"
#include "client/gradient_claim.h"
#include "client/gradient_ring.h"
#include "client/held_lease.h"
#include "client/mapped_memory.h"
#include "client/outstanding_calls.h"
#include "client/standing.h"
#include "client/worker_options.h"
#include "common/ids.h"
#include "common/layout.h"
#include "holdfast/v1/parameter_service.pb.h"

namespace holdfast {

// What Worker (client/worker.h) does, over raw memory: the contracts of the calls are stated there. Bindings of other
// languages build on this. To be used by one thread at a time; futures and the memory may be used anywhere.
class Session {
 public:
  // See Client::Attach.
  static absl::StatusOr<std::unique_ptr<Session>> Attach(std::shared_ptr<Connection> connection, std::string model,
                                                         Rank rank, WorkerOptions options);
  // Cancels what is under way, and ends the lease.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& model() const { return model_; }
  Rank rank() const { return rank_; }
  const ModelLayout& layout() const { return *layout_; }
  // Unmapped when the session and all who share it are gone.
  const std::shared_ptr<MappedMemory>& memory() const { return memory_; }
  const v1::ModelState& state() const { return state_; }
  Step step() const { return Step(state_.step()); }
  absl::Status status() const { return standing_->status(); }
  bool draining() const { return standing_->draining(); }

  Future<GatheredSlot> Gather(UnitIndex unit, absl::Span<const UnitIndex> prefetch);
  absl::Status Release(UnitIndex unit);
  absl::Status FlushReleases();
  absl::StatusOr<GradientClaim> ClaimGradient(UnitIndex unit);
  Future<void> ReduceScatter(GradientClaim claim, bool accumulate);
  absl::Status BeginUpdate(v1::UpdateKind kind);
  absl::StatusOr<Step> CommitUpdate(bool ema_step);
  absl::StatusOr<std::vector<v1::EmaStepResult>> EmaStep(absl::Span<const std::string> names);
  absl::StatusOr<v1::ModelState> Rejoin();
  // Puts the rank out of step, for a caller that cannot go on in the middle of an update. `reason` is not OK.
  void Fail(const absl::Status& reason) { standing_->Fail(reason); }

 private:
  Session(std::shared_ptr<Connection> connection, std::string model, Rank rank, WorkerOptions options);

  // What the Attach stream reports to.
  AttachHooks Hooks() const;
  // "rank 2 of 'demo': <call>".
  std::string Caller(const std::string& call) const;
  v1::CallHeader Header(uint64_t sequence) const;
  absl::Status CheckUnit(UnitIndex unit) const;
  std::string UnitCall(const std::string& call, UnitIndex unit) const;

  // Sends the Gather of a plan; its callback fulfils the plan's tickets.
  absl::Status SendGather(const GatherTickets::Plan& plan, const std::string& caller);
  // A unit may be given back only when its slot is known.
  absl::Status AwaitTickets(absl::Span<const GatherTickets::Entry> released) const;
  // Makes a blocking call, of the stub's method, with a deadline; a failure puts the rank out of step.
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::ParameterService::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response, const std::string& caller);

  // Everything of a new lease but its memory; INTERNAL or FAILED_PRECONDITION if it does not fit.
  absl::Status AdoptLease(HeldLease lease);
  absl::Status Reattach();
  absl::StatusOr<v1::ModelState> RejoinHeldLease();
  void EnterEpoch(const v1::ModelState& state);

  const std::shared_ptr<Connection> connection_;
  const std::string model_;
  const Rank rank_;
  const WorkerOptions options_;
  // Shared with futures and callbacks, which outlive the session.
  const std::shared_ptr<Standing> standing_ = std::make_shared<Standing>();
  const std::shared_ptr<OutstandingCalls> calls_ = std::make_shared<OutstandingCalls>();
  // From the first lease on; the same ever after.
  std::shared_ptr<const ModelLayout> layout_;
  std::shared_ptr<MappedMemory> memory_;
  std::shared_ptr<GradientRing> gradients_;
  std::unique_ptr<GatherTickets> tickets_;
  // Of the present lease; null after a loss.
  std::unique_ptr<AttachStream> stream_;

  v1::ModelState state_;
  // Of the next collective call.
  uint64_t sequence_ = 0;
  v1::UpdateKind updating_ = v1::UPDATE_KIND_UNSPECIFIED;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_SESSION_H_
