// One registered model: its memory, its step, and the calls of its workers.
#ifndef HOLDFAST_SERVER_CORE_MODEL_H_
#define HOLDFAST_SERVER_CORE_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/ids.h"
#include "common/layout.h"
#include "server/collectives/collectives.h"
#include "server/core/callbacks.h"
#include "server/core/calls.h"
#include "server/core/collective_gate.h"
#include "server/core/ema_copies.h"
#include "server/core/gather_ring.h"
#include "server/core/launch_queue.h"
#include "server/core/lease_table.h"
#include "server/core/observer.h"
#include "server/core/operation_table.h"
#include "server/core/rank_memory.h"
#include "server/core/staging_budget.h"

namespace holdfast {

struct ModelOptions {
  // How long a collective call waits for its peers.
  absl::Duration collective_timeout = absl::Seconds(60);
  // For the tensors that Pull stages; must outlive the model and what was pulled.
  StagingBudget* staging = nullptr;
};

// What Attach brings.
struct Attachment {
  LeaseId lease;
  std::string memory_token;
  ModelPosition position;
  std::vector<ExportedArena> arenas;
};

// A rank as operators see it.
struct RankReport {
  Rank rank;
  LeaseState lease = LeaseState::kFree;
  int32_t pid = 0;
  Sequence sequence;
  bool updating = false;
};

struct GatherCall {
  CallContext context;
  std::string unit;
  std::vector<std::string> prefetch;
  std::vector<std::string> release;
};

struct ReduceScatterCall {
  CallContext context;
  std::string unit;
  uint32_t gradient_slot = 0;
  bool accumulate = false;
};

struct PullCall {
  std::string tensor;
  // Empty for the model itself.
  std::string ema;
  // kUnspecified: as it is kept.
  DType dtype = DType::kUnspecified;
};

struct PulledTensor {
  DType dtype = DType::kUnspecified;
  std::vector<int64_t> shape;
  Step step;
  std::vector<std::byte> bytes;
  StagingBudget::Reservation staged;
};

// Semantics and errors of the calls: proto/holdfast/v1/parameter_service.proto.
//
// Two kinds of thread meet here. Callers (any thread) decide under the lock: who may do what, which ranks have
// arrived, which slot is taken. The launch queue's one thread then moves the data with no lock held, in the order of
// the decisions, and takes the lock again to say what is done. A step, once all ranks have arrived at its commit, is
// decided and will be launched, whatever happens to the callers.
//
//   idle ──BeginUpdate──▶ updating (a rank) ──CommitUpdate of all ranks──▶ idle at step + 1
//     ▲                       │ the epoch ends first
//     └── undo copy restored ─┴─ (without one) ──▶ torn ──an INITIALIZE update──▶ idle
//
// Thread-safe.
class Model {
 public:
  // Takes all memory of the ranks of this node: devices[r] is rank r's. RESOURCE_EXHAUSTED if it cannot be had. Devices
  // and observer must outlive the model.
  static absl::StatusOr<std::unique_ptr<Model>> Create(ModelLayout layout, absl::Span<Device* const> devices,
                                                       std::unique_ptr<Collectives> collectives, Observer& observer,
                                                       const ModelOptions& options);
  // Ends every lease and waiting call with ABORTED.
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelLayout& layout() const { return layout_; }
  int64_t total_bytes() const { return layout_.BytesPerRank() * num_ranks(); }

  // Leases. The listener hears of what happens until the lease ends.
  absl::StatusOr<Attachment> Attach(Rank rank, int32_t pid, std::shared_ptr<LeaseListener> listener);
  // The holder's connection has ended; nothing if the lease is not held. `reason` completes "rank 1 (process 7) …".
  void EndLease(LeaseId lease, std::string_view reason);
  // Waits for what is queued, a rollback among it. Not to be called from a Done.
  absl::StatusOr<std::vector<UniqueFd>> ClaimMemory(std::string_view token, int32_t pid);
  // Nobody maps the memory by that token any more; its lease, if held, ends for `reason`.
  void MemoryReturned(std::string_view token, std::string_view reason);
  bool HasToken(std::string_view token) const;
  void Announce(const GroupEvent& event);
  // Returns when no lease is held, or at `deadline`; true if none is.
  bool AwaitNoLeases(absl::Time deadline) const;
  int32_t NumLeases() const;
  void Rejoin(const CallContext& context, Done<ModelPosition> done);

  // Collective calls.
  void Gather(GatherCall call, Done<GatherResult> done);
  absl::Status Release(const CallContext& context, absl::Span<const std::string> units);
  void ReduceScatter(ReduceScatterCall call, Done<Nothing> done);
  void BeginUpdate(const CallContext& context, UpdateKind kind, Done<Nothing> done);
  void CommitUpdate(const CallContext& context, bool ema_step, Done<Step> done);
  void EmaStep(const CallContext& context, absl::Span<const std::string> emas, Done<std::vector<EmaResult>> done);
  // The waiting call is answered with `reason` at once; nothing if it does not wait (any more).
  void CancelCall(CallId call, const absl::Status& reason);

  // The tensors that names or globs stand for, in registration order; all for none. NOT_FOUND for one that matches
  // nothing, or, of an EMA, nothing trainable.
  absl::StatusOr<std::vector<std::string>> SelectTensors(absl::Span<const std::string> names,
                                                         std::string_view ema) const;
  void Pull(const PullCall& call, Done<PulledTensor> done);

  ModelPosition position() const;
  std::optional<absl::Time> last_commit() const;
  std::vector<RankReport> ranks() const;

 private:
  // A BeginUpdate that waits for earlier operations.
  struct WaitingBegin {
    Rank rank;
    CallId call;
    Sequence sequence;
    UpdateKind kind;
    absl::Time deadline;
    Done<Nothing> done;
  };
  // A collective call whose number is not the rank's next one: RPCs of one worker can overtake one another.
  using Turn = absl::AnyInvocable<void(const absl::StatusOr<Rank>&, Callbacks&)>;
  struct EarlyCall {
    CallId call;
    uint64_t num_calls = 1;
    absl::Time deadline;
    Turn turn;
  };
  // What is known of one rank.
  struct RankState {
    explicit RankState(int32_t gather_slots) : ring(gather_slots) {}

    // The epoch that the worker takes part in.
    Epoch joined;
    // It may be writing to its shards.
    std::optional<UpdateKind> updating;
    GatherRing ring;
    // Gradient slots that a reduction reads.
    std::set<uint32_t> busy_gradient_slots;
    // Units whose gradient shard has been written in this step.
    std::set<UnitIndex> reduced_units;
    // Calls that wait for their turn.
    std::map<Sequence, EarlyCall> early_calls;
  };
  // A unit that a Gather names, and where it will be.
  struct PlannedGather {
    UnitIndex unit;
    std::optional<int32_t> resident_slot;
  };

  Model(std::unique_ptr<const ModelLayout> layout, std::vector<std::unique_ptr<RankMemory>> memory,
        std::vector<std::unique_ptr<Stream>> streams, std::unique_ptr<Collectives> collectives, Observer& observer,
        const ModelOptions& options);

  int32_t num_ranks() const { return static_cast<int32_t>(memory_.size()); }
  RankState& state(Rank rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ranks_[static_cast<size_t>(rank.value())]; }
  const RankMemory& memory(Rank rank) const { return *memory_[static_cast<size_t>(rank.value())]; }
  Stream& stream(Rank rank) { return *streams_[static_cast<size_t>(rank.value())]; }

  // Checks of a call's header; each names what is wrong and the way out.
  absl::StatusOr<Rank> CheckLease(const CallContext& context) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Rank> CheckInEpoch(const CallContext& context) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  absl::Status CheckStep(Step step) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Runs `turn`, with the lock held, when the call's number is the rank's next one (now, or once the calls before it
  // have come), or with the reason why it never will be. `num_calls`: how many numbers the call takes.
  void TakeTurn(const CallContext& context, uint64_t num_calls, Turn turn, Callbacks& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckRoom(Rank rank, Sequence sequence, uint64_t num_calls) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  absl::Status CheckReadable() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  absl::Status CheckNotUpdating(Rank rank) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  // The rank arrives at its next sequence number. The operation, or the reason why the epoch has ended (a desync).
  // `complete` is set if all ranks have arrived.
  absl::StatusOr<Operation*> Arrive(Rank rank, Sequence sequence, const OperationKey& key, Callbacks& after,
                                    bool& complete) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string Describe(const OperationKey& key) const;

  // Gather and ReduceScatter; see model_collectives.cc.
  // The units that the call names, in order; on an error nothing has changed.
  absl::StatusOr<std::vector<PlannedGather>> PlanGather(const GatherCall& call, const RankState& rank) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  absl::StatusOr<GatherTicket> StartGather(Rank rank, Sequence sequence, const PlannedGather& planned, Callbacks& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StartGathers(const GatherCall& call, Rank rank, Done<GatherResult>& done, Callbacks& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StartReduceScatter(const ReduceScatterCall& call, Rank rank, Done<Nothing>& done, Callbacks& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<UnitIndex> CheckReduceScatter(const ReduceScatterCall& call, const RankState& rank) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void Launch(Operation& operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // On the launch thread.
  absl::Status RunGather(const OperationKey& key, const std::vector<int32_t>& slots);
  absl::Status RunReduceScatter(const OperationKey& key, const std::vector<int32_t>& slots);
  absl::Status SignalSlots(OperationKind kind, const std::vector<int32_t>& slots, uint64_t value);
  absl::Status SynchronizeAll();
  void Finish(Completion completion, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  void Settle(Operation& operation, const absl::Status& status, Callbacks& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Updates; see model_update.cc.
  absl::Status StartBegin(const CallContext& context, Rank rank, UpdateKind kind, Done<Nothing>& done, Callbacks& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StartCommit(const CallContext& context, Rank rank, bool ema_step, Done<Step>& done, Callbacks& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckBegin(Rank rank, UpdateKind kind) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void GrantBegins() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Grant(WaitingBegin begin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Commit(Operation& operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status RunCommit(const OperationKey& key, Step step);
  // What the rank wrote since BeginUpdate is undone, behind what is queued.
  void RollBack(Rank rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // On the launch thread: these copies move to `step` on all ranks.
  absl::Status RunEma(absl::Span<const size_t> emas, Step step);
  std::byte* CommittedShard(const RankMemory& memory, const FlatParameter& flat) const;

  // On the launch thread; see model_pull.cc.
  absl::StatusOr<PulledTensor> RunPull(const PullCall& call);

  // The epoch ends for `reason`: everything not launched is answered with it, every rank must rejoin.
  void EndEpoch(AbortCause cause, const absl::Status& reason, Callbacks& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoseLease(Rank rank, std::string_view reason, Callbacks& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  ModelPosition Position() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // With the units that are resident on `rank`.
  ModelPosition PositionOn(Rank rank) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void PublishPosition() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PublishLeases() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Answers calls whose peers are late, until the model ends.
  void WatchDeadlines();
  void ExpireCalls(absl::Time now, Callbacks& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Time NextDeadline() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<const ModelLayout> layout_owner_;
  const ModelLayout& layout_;
  // By rank, both.
  const std::vector<std::unique_ptr<RankMemory>> memory_;
  const std::vector<std::unique_ptr<Stream>> streams_;
  const std::unique_ptr<Collectives> collectives_;
  Observer& observer_;
  const ModelOptions options_;

  mutable absl::Mutex mu_;
  // By rank.
  std::vector<RankState> ranks_ ABSL_GUARDED_BY(mu_);
  LeaseTable leases_ ABSL_GUARDED_BY(mu_);
  CollectiveGate gate_ ABSL_GUARDED_BY(mu_);
  OperationTable operations_ ABSL_GUARDED_BY(mu_);
  std::vector<WaitingBegin> waiting_begins_ ABSL_GUARDED_BY(mu_);
  EmaCopies emas_ ABSL_GUARDED_BY(mu_);
  Epoch epoch_ ABSL_GUARDED_BY(mu_) = Epoch(1);
  // Why epoch_ − 1 ended.
  absl::Status last_end_ ABSL_GUARDED_BY(mu_);
  Step step_ ABSL_GUARDED_BY(mu_);
  bool initialized_ ABSL_GUARDED_BY(mu_) = false;
  bool torn_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Time> last_commit_ ABSL_GUARDED_BY(mu_);

  // The launch thread's own: the steps of the data as launched so far, and the ranks whose committed state is in the
  // undo copy.
  Step launched_step_;
  // By EMA.
  std::vector<Step> launched_ema_steps_;
  std::vector<bool> undo_valid_;
  // Ranks that are written in place, with no undo copy.
  std::vector<bool> exposed_;

  // Last, as they use all of the above; the queue ends first, and what it runs may push to it until then.
  std::thread deadline_watch_;
  LaunchQueue queue_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_MODEL_H_
