// The calls of a training step.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"
#include "client/session.h"

namespace holdfast {
namespace {

// A unary call under way; OutstandingCalls owns it.
template <typename Request, typename Response>
struct UnaryCall {
  grpc::ClientContext context;
  Request request;
  Response response;
};

using GatherUnaryCall = UnaryCall<v1::GatherRequest, v1::GatherResponse>;
using ReduceScatterUnaryCall = UnaryCall<v1::ReduceScatterRequest, v1::ReduceScatterResponse>;

// The daemon's ticket for `unit`, checked.
absl::StatusOr<GatherPlace> PlaceOf(const v1::GatherTicket& ticket, const ModelLayout& layout, UnitIndex unit) {
  const std::string& name = layout.unit(unit).name;
  if (ticket.unit() != name) {
    return absl::InternalError(
        absl::StrCat("the daemon answered with unit '", ticket.unit(), "', expected '", name, "'"));
  }
  if (ticket.slot() >= static_cast<uint32_t>(layout.gather_slots())) {
    return absl::InternalError(absl::StrCat("the daemon put unit '", name, "' in gather slot ", ticket.slot(),
                                            "; there are ", layout.gather_slots()));
  }
  return GatherPlace{
      .slot = static_cast<int32_t>(ticket.slot()), .completion = Completion(ticket.completion()), .hit = ticket.hit()};
}

absl::Status Fulfil(const v1::GatherResponse& response, const ModelLayout& layout, const GatherTickets::Plan& plan) {
  if (static_cast<size_t>(response.prefetch_size()) != plan.prefetch.size()) {
    return absl::InternalError(absl::StrCat("the daemon answered for ", response.prefetch_size(),
                                            " prefetched units, expected ", plan.prefetch.size()));
  }
  absl::StatusOr<GatherPlace> place = PlaceOf(response.unit(), layout, plan.unit.unit);
  if (!place.ok()) return place.status();
  plan.unit.ticket->Set(*place);
  for (size_t i = 0; i < plan.prefetch.size(); ++i) {
    place = PlaceOf(response.prefetch(static_cast<int>(i)), layout, plan.prefetch[i].unit);
    if (!place.ok()) return place.status();
    plan.prefetch[i].ticket->Set(*place);
  }
  return absl::OkStatus();
}

// Those that have a ticket already keep it.
void FailTickets(const GatherTickets::Plan& plan, const absl::Status& status) {
  plan.unit.ticket->Set(status);
  for (const GatherTickets::Entry& entry : plan.prefetch) entry.ticket->Set(status);
}

}  // namespace

template <typename Request, typename Response>
absl::Status Session::Call(grpc::Status (v1::ParameterService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                              Response*),
                           const Request& request, Response* response, const std::string& caller) {
  grpc::ClientContext context;
  connection_->SetDeadline(context);
  return CallError((connection_->stub().*method)(&context, request, response), caller);
}

Future<GatheredSlot> Session::Gather(UnitIndex unit, absl::Span<const UnitIndex> prefetch) {
  absl::Status status = CheckUnit(unit);
  for (const UnitIndex other : prefetch) status.Update(CheckUnit(other));
  if (!status.ok()) return ReadyFuture<GatheredSlot>(status);
  const std::string caller = UnitCall("Gather", unit);
  status = standing_->status();
  if (!status.ok()) return ReadyFuture<GatheredSlot>(Annotate(status, caller));
  absl::StatusOr<GatherTickets::Plan> plan = tickets_->Begin(unit, prefetch);
  if (!plan.ok()) return ReadyFuture<GatheredSlot>(Annotate(plan.status(), caller));
  if (plan->needs_call) {
    if (status = SendGather(*plan, caller); !status.ok()) return ReadyFuture<GatheredSlot>(status);
  }
  return Future<GatheredSlot>(std::make_shared<GatherSource>(
      GatherSource::Wait{.memory = memory_,
                         .standing = standing_,
                         .generation = standing_->generation(),
                         .entry = plan->unit,
                         .caller = caller,
                         .deadline = absl::Now() + connection_->options().call_timeout}));
}

absl::Status Session::SendGather(const GatherTickets::Plan& plan, const std::string& caller) {
  if (absl::Status status = AwaitTickets(plan.released); !status.ok()) {
    FailTickets(plan, status);
    return status;
  }
  auto call = std::make_shared<GatherUnaryCall>();
  connection_->SetDeadline(call->context);
  *call->request.mutable_call() = Header(sequence_);
  sequence_ += 1 + plan.prefetch.size();
  call->request.set_unit(layout_->unit(plan.unit.unit).name);
  for (const auto& entry : plan.prefetch) call->request.add_prefetch(layout_->unit(entry.unit).name);
  for (const auto& entry : plan.released) call->request.add_release(layout_->unit(entry.unit).name);
  calls_->Add(call, &call->context);
  connection_->stub().async()->Gather(
      &call->context, &call->request, &call->response,
      [call = call.get(), plan, caller, layout = layout_, standing = standing_, generation = standing_->generation(),
       calls = calls_](const grpc::Status& answer) {
        absl::Status status = CallError(answer, caller);
        if (status.ok()) status = Annotate(Fulfil(call->response, *layout, plan), caller);
        if (!status.ok()) {
          standing->Fail(generation, status);
          FailTickets(plan, status);
        }
        calls->Finish(&call->context);
      });
  return absl::OkStatus();
}

absl::Status Session::AwaitTickets(absl::Span<const GatherTickets::Entry> released) const {
  for (const GatherTickets::Entry& entry : released) {
    // Ends by itself: the call that asked for the unit has a deadline.
    if (auto place = *entry.ticket->Await(absl::InfiniteFuture()); !place.ok()) return place.status();
  }
  return absl::OkStatus();
}

absl::Status Session::Release(UnitIndex unit) {
  if (absl::Status status = CheckUnit(unit); !status.ok()) return status;
  tickets_->Release(unit);
  return absl::OkStatus();
}

absl::Status Session::FlushReleases() {
  const std::string caller = Caller("Release");
  if (absl::Status status = standing_->status(); !status.ok()) return Annotate(status, caller);
  const std::vector<GatherTickets::Entry> released = tickets_->TakeReleased();
  if (released.empty()) return absl::OkStatus();
  if (absl::Status status = AwaitTickets(released); !status.ok()) return status;
  v1::ReleaseRequest request;
  *request.mutable_call() = Header(sequence_);
  for (const auto& entry : released) request.add_units(layout_->unit(entry.unit).name);
  v1::ReleaseResponse response;
  absl::Status status = Call(&v1::ParameterService::Stub::Release, request, &response, caller);
  // The slots count as free here: if the daemon does not know it, the two are no longer of one mind.
  if (!status.ok()) standing_->Fail(status);
  return status;
}

absl::StatusOr<GradientClaim> Session::ClaimGradient(UnitIndex unit) {
  if (absl::Status status = CheckUnit(unit); !status.ok()) return status;
  const std::string caller = UnitCall("AcquireGradient", unit);
  const UnitLayout& layout = layout_->unit(unit);
  if (layout.gradient_bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(caller, ": the unit has nothing to train"));
  }
  if (absl::Status status = standing_->status(); !status.ok()) return Annotate(status, caller);
  absl::StatusOr<GradientClaim> claim = gradients_->Claim(unit);
  if (!claim.ok()) return Annotate(claim.status(), caller);
  std::byte* slot = memory_->GradientSlot(claim->slot());
  for (const FlatParameter& flat : layout.flat_parameters) {
    if (!flat.trainable) continue;
    const int64_t element_bytes = SizeOf(flat.reduce_dtype);
    const int64_t padding = flat.padded_elements(layout_->mesh().num_shard) - flat.num_elements;
    std::memset(slot + flat.gradient_slot_offset + flat.num_elements * element_bytes, 0,
                static_cast<size_t>(padding * element_bytes));
  }
  return claim;
}

Future<void> Session::ReduceScatter(GradientClaim claim, bool accumulate) {
  absl::Status status = CheckUnit(claim.unit());
  if (!status.ok()) return ReadyFuture<void>(status);
  const std::string caller = UnitCall("ReduceScatter", claim.unit());
  status = standing_->status();
  if (status.ok()) status = gradients_->StartReducing(claim);
  if (!status.ok()) return ReadyFuture<void>(Annotate(status, caller));
  auto call = std::make_shared<ReduceScatterUnaryCall>();
  connection_->SetDeadline(call->context);
  *call->request.mutable_call() = Header(sequence_++);
  call->request.set_unit(layout_->unit(claim.unit()).name);
  call->request.set_gradient_slot(static_cast<uint32_t>(claim.slot()));
  call->request.set_accumulate(accumulate);
  auto reduced = std::make_shared<Promise<void>>();
  calls_->Add(call, &call->context);
  connection_->stub().async()->ReduceScatter(
      &call->context, &call->request, &call->response,
      [call = call.get(), reduced, caller, slot = claim.slot(), ring = gradients_, ring_generation = claim.generation(),
       standing = standing_, generation = standing_->generation(), calls = calls_](const grpc::Status& answer) {
        const absl::Status status = CallError(answer, caller);
        if (!status.ok()) standing->Fail(generation, status);
        ring->FinishReducing(slot, ring_generation);
        reduced->Set(status);
        calls->Finish(&call->context);
      });
  return Future<void>(std::move(reduced));
}

absl::Status Session::BeginUpdate(v1::UpdateKind kind) {
  const std::string caller = Caller("BeginUpdate");
  // A reduction that fails here puts the rank out of step, and is told below.
  gradients_->AwaitReduced();
  if (absl::Status status = standing_->status(); !status.ok()) return Annotate(status, caller);
  v1::BeginUpdateRequest request;
  *request.mutable_call() = Header(sequence_++);
  request.set_kind(kind);
  v1::BeginUpdateResponse response;
  absl::Status status = Call(&v1::ParameterService::Stub::BeginUpdate, request, &response, caller);
  if (!status.ok()) {
    standing_->Fail(status);
    return status;
  }
  updating_ = kind;
  return absl::OkStatus();
}

absl::StatusOr<Step> Session::CommitUpdate(bool ema_step) {
  const std::string caller = Caller("CommitUpdate");
  if (absl::Status status = standing_->status(); !status.ok()) return Annotate(status, caller);
  v1::CommitUpdateRequest request;
  *request.mutable_call() = Header(sequence_++);
  request.set_ema_step(ema_step);
  v1::CommitUpdateResponse response;
  absl::Status status = Call(&v1::ParameterService::Stub::CommitUpdate, request, &response, caller);
  if (!status.ok()) {
    standing_->Fail(status);
    return status;
  }
  tickets_->Clear();
  state_.set_step(response.step());
  state_.clear_resident_units();
  if (updating_ == v1::UPDATE_KIND_INITIALIZE) {
    state_.set_initialized(true);
    state_.set_torn(false);
  }
  updating_ = v1::UPDATE_KIND_UNSPECIFIED;
  return step();
}

absl::StatusOr<std::vector<v1::EmaStepResult>> Session::EmaStep(absl::Span<const std::string> names) {
  const std::string caller = Caller("EmaStep");
  if (absl::Status status = standing_->status(); !status.ok()) return Annotate(status, caller);
  v1::EmaStepRequest request;
  *request.mutable_call() = Header(sequence_);
  request.mutable_emas()->Add(names.begin(), names.end());
  v1::EmaStepResponse response;
  // No sequence number is taken: a refusal leaves the rank in step.
  absl::Status status = Call(&v1::ParameterService::Stub::EmaStep, request, &response, caller);
  if (!status.ok()) return status;
  for (const v1::EmaStepResult& result : response.emas()) {
    for (v1::EmaState& ema : *state_.mutable_emas()) {
      if (ema.name() != result.name()) continue;
      ema.set_step(state_.step());
      ema.set_num_updates(result.num_updates());
    }
  }
  return std::vector<v1::EmaStepResult>(response.emas().begin(), response.emas().end());
}

}  // namespace holdfast
