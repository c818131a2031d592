#include "client/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"

namespace holdfast {
namespace {

// How long a broken connection may take to show on the Attach stream after a call has failed on it.
constexpr absl::Duration kEndTimeout = absl::Seconds(1);

absl::StatusOr<std::shared_ptr<const ModelLayout>> LayoutOf(const v1::Attached& attached) {
  const v1::Mesh& mesh = attached.spec().mesh();
  const uint64_t world = uint64_t{mesh.num_replicate()} * mesh.num_shard();
  if (world == 0 || world > INT32_MAX) {
    return absl::InternalError(absl::StrCat("the daemon sent a spec whose mesh is ", mesh.num_replicate(), "×",
                                            mesh.num_shard(), "; a registered model's mesh has both numbers"));
  }
  absl::StatusOr<ModelLayout> layout = ModelLayout::Create(attached.spec(), static_cast<int32_t>(world));
  if (!layout.ok()) return Annotate(layout.status(), "the daemon's spec");
  return std::make_shared<const ModelLayout>(*std::move(layout));
}

absl::Status CheckFingerprint(const v1::Attached& attached, const ModelLayout& layout, const std::string& way_out) {
  const std::string mine = FingerprintText(layout.fingerprint());
  if (attached.fingerprint() == mine) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the daemon's layout of the model has the fingerprint ",
                                                    attached.fingerprint(), ", this worker's ", mine, ": ", way_out));
}

}  // namespace

Session::Session(std::shared_ptr<Connection> connection, std::string model, Rank rank, WorkerOptions options)
    : connection_(std::move(connection)), model_(std::move(model)), rank_(rank), options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Session>> Session::Attach(std::shared_ptr<Connection> connection, std::string model,
                                                         Rank rank, WorkerOptions options) {
  if (rank.value() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank.value(), " of '", model, "': a rank is 0 or more"));
  }
  std::unique_ptr<Session> session(new Session(std::move(connection), std::move(model), rank, std::move(options)));
  const std::string caller = session->Caller("Attach");
  absl::StatusOr<HeldLease> lease =
      TakeLease(*session->connection_, session->model_, rank, session->Hooks(), LeasePatience::kPredecessor,
                absl::Now() + session->options_.lease_timeout);
  if (!lease.ok()) return Annotate(lease.status(), caller);
  if (absl::Status status = session->AdoptLease(*std::move(lease)); !status.ok()) return Annotate(status, caller);
  return session;
}

Session::~Session() {
  calls_->CancelAll();
  calls_->AwaitNone();
  // Before the rest, as its thread reports to what the session owns.
  stream_.reset();
}

AttachHooks Session::Hooks() const {
  return {.on_event =
              [standing = standing_, on_event = options_.on_event](const v1::GroupEvent& event) {
                standing->OnEvent(event);
                if (on_event) on_event(event);
              },
          .on_end =
              [standing = standing_](const absl::Status& status) {
                standing->Fail(absl::Status(status.code(), absl::StrCat("the lease is lost: ", status.message(),
                                                                        "; call Rejoin to attach again")));
              }};
}

std::string Session::Caller(const std::string& call) const {
  return absl::StrCat("rank ", rank_.value(), " of '", model_, "': ", call);
}

std::string Session::UnitCall(const std::string& call, UnitIndex unit) const {
  return Caller(absl::StrCat(call, "('", layout_->unit(unit).name, "')"));
}

v1::CallHeader Session::Header(uint64_t sequence) const {
  v1::CallHeader header;
  header.set_model(model_);
  header.set_lease(stream_ == nullptr ? 0 : stream_->attached().lease());
  header.set_epoch(state_.epoch());
  header.set_step(state_.step());
  header.set_sequence(sequence);
  return header;
}

absl::Status Session::CheckUnit(UnitIndex unit) const {
  const size_t num_units = layout_->units().size();
  if (unit.value() >= 0 && static_cast<size_t>(unit.value()) < num_units) return absl::OkStatus();
  return absl::NotFoundError(Caller(absl::StrCat("there is no unit ", unit.value(), "; the model has units 0 to ",
                                                 static_cast<int64_t>(num_units) - 1)));
}

absl::StatusOr<v1::ModelState> Session::Rejoin() {
  calls_->CancelAll();
  calls_->AwaitNone();
  tickets_->Clear();
  gradients_->Restart();
  updating_ = v1::UPDATE_KIND_UNSPECIFIED;
  standing_->Fail(absl::AbortedError("the last Rejoin did not succeed: call it again"));
  if (stream_ != nullptr && !stream_->AwaitEnd(absl::InfinitePast())) {
    absl::StatusOr<v1::ModelState> state = RejoinHeldLease();
    // A call can fail because the connection, and with it the lease, has just been lost.
    if (state.ok() || !stream_->AwaitEnd(absl::Now() + kEndTimeout)) return state;
  }
  if (absl::Status status = Reattach(); !status.ok()) return Annotate(status, Caller("Rejoin"));
  return state_;
}

absl::StatusOr<v1::ModelState> Session::RejoinHeldLease() {
  grpc::ClientContext context;
  connection_->SetDeadline(context);
  v1::RejoinRequest request;
  *request.mutable_call() = Header(0);
  v1::RejoinResponse response;
  absl::Status status = CallError(connection_->stub().Rejoin(&context, request, &response), Caller("Rejoin"));
  if (!status.ok()) return status;
  EnterEpoch(response.state());
  return state_;
}

absl::Status Session::Reattach() {
  stream_.reset();
  standing_->Forget(
      absl::UnavailableError("the lease is lost, and the last Rejoin did not get it back: call it again"));
  // The daemon gives the rank away, also to this process, only when nobody maps its memory.
  if (absl::Status status = memory_->Retire(); !status.ok()) return status;
  const absl::Duration timeout = connection_->options().reattach_timeout;
  connection_->Progress(
      Caller(absl::StrCat("the lease is lost; attaching again, for up to ", absl::FormatDuration(timeout))));
  absl::StatusOr<HeldLease> lease =
      TakeLease(*connection_, model_, rank_, Hooks(), LeasePatience::kDaemon, absl::Now() + timeout);
  if (!lease.ok()) return lease.status();
  if (absl::Status status = AdoptLease(*std::move(lease)); !status.ok()) return status;
  connection_->Progress(Caller(absl::StrCat("attached again, at step ", state_.step())));
  return absl::OkStatus();
}

absl::Status Session::AdoptLease(HeldLease lease) {
  const v1::Attached& attached = lease.stream->attached();
  const std::vector<v1::ArenaDescription> arenas(attached.arenas().begin(), attached.arenas().end());
  if (layout_ == nullptr) {
    absl::StatusOr<std::shared_ptr<const ModelLayout>> layout = LayoutOf(attached);
    if (!layout.ok()) return layout.status();
    absl::Status status = CheckFingerprint(attached, **layout, "the two are of different versions; update the older");
    if (!status.ok()) return status;
    absl::StatusOr<std::shared_ptr<MappedMemory>> memory =
        MappedMemory::Map(*layout, rank_, std::move(lease.memory), arenas);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    layout_ = *std::move(layout);
    gradients_ = std::make_shared<GradientRing>(layout_->gradient_slots());
    tickets_ = std::make_unique<GatherTickets>(layout_->gather_slots());
  } else {
    absl::Status status = CheckFingerprint(attached, *layout_, "another model has its name now; attach a new worker");
    if (status.ok()) status = memory_->Remap(std::move(lease.memory), arenas);
    if (!status.ok()) return status;
  }
  const v1::ModelState state = attached.state();
  stream_ = std::move(lease.stream);
  EnterEpoch(state);
  return absl::OkStatus();
}

void Session::EnterEpoch(const v1::ModelState& state) {
  state_ = state;
  sequence_ = 0;
  standing_->Enter(Epoch(state_.epoch()));
}

}  // namespace holdfast
