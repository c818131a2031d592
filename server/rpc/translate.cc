#include "server/rpc/translate.h"

#include <atomic>

namespace holdfast {
namespace {

v1::LeaseState ToProto(LeaseState state) {
  switch (state) {
    case LeaseState::kFree:
      return v1::LEASE_STATE_FREE;
    case LeaseState::kHeld:
      return v1::LEASE_STATE_HELD;
    case LeaseState::kMapped:
      return v1::LEASE_STATE_MAPPED;
  }
  return v1::LEASE_STATE_UNSPECIFIED;
}

}  // namespace

CallContext ToContext(const v1::CallHeader& call) {
  // Only tells the calls of this process apart.
  static std::atomic<uint64_t> last_id = 0;
  return {.id = CallId(last_id.fetch_add(1) + 1),
          .lease = LeaseId(call.lease()),
          .epoch = Epoch(call.epoch()),
          .step = Step(call.step()),
          .sequence = Sequence(call.sequence())};
}

void Fill(const ModelPosition& position, v1::ModelState& state) {
  state.set_epoch(position.epoch.value());
  state.set_step(position.step.value());
  state.set_initialized(position.initialized);
  state.set_torn(position.torn);
  for (const EmaPosition& ema : position.emas) {
    v1::EmaState& message = *state.add_emas();
    message.set_name(ema.name);
    message.set_step(ema.step.value());
    message.set_num_updates(ema.num_updates);
  }
  for (const std::string& unit : position.resident_units) state.add_resident_units(unit);
}

void Fill(const GroupEvent& event, v1::GroupEvent& message) {
  message.set_epoch(event.epoch.value());
  message.set_reason(event.reason);
  message.set_draining(event.draining);
}

void Fill(const Attachment& attachment, const ModelLayout& layout, v1::Attached& attached) {
  attached.set_lease(attachment.lease.value());
  attached.set_memory_token(attachment.memory_token);
  *attached.mutable_spec() = layout.spec();
  // The worker knows the world from it.
  attached.mutable_spec()->mutable_mesh()->set_num_replicate(static_cast<uint32_t>(layout.mesh().num_replicate));
  attached.mutable_spec()->mutable_mesh()->set_num_shard(static_cast<uint32_t>(layout.mesh().num_shard));
  attached.set_fingerprint(FingerprintText(layout.fingerprint()));
  for (const ExportedArena& arena : attachment.arenas) {
    v1::ArenaDescription& message = *attached.add_arenas();
    message.set_purpose(arena.purpose);
    message.set_size_bytes(static_cast<uint64_t>(arena.size_bytes));
    message.set_writable(arena.writable);
  }
  Fill(attachment.position, *attached.mutable_state());
}

void Fill(const GatherTicket& ticket, const std::string& unit, v1::GatherTicket& message) {
  message.set_unit(unit);
  message.set_slot(static_cast<uint32_t>(ticket.slot));
  message.set_completion(ticket.completion.value());
  message.set_hit(ticket.hit);
}

void Fill(const RankReport& report, v1::RankStatus& status) {
  status.set_rank(static_cast<uint32_t>(report.rank.value()));
  status.set_lease(ToProto(report.lease));
  status.set_pid(report.pid);
  status.set_sequence(report.sequence.value());
  status.set_updating(report.updating);
}

void Fill(const Model& model, v1::ModelStatus& status) {
  const ModelLayout& layout = model.layout();
  status.set_name(layout.name());
  Fill(model.position(), *status.mutable_state());
  status.mutable_mesh()->set_strategy(layout.strategy());
  status.mutable_mesh()->set_num_replicate(static_cast<uint32_t>(layout.mesh().num_replicate));
  status.mutable_mesh()->set_num_shard(static_cast<uint32_t>(layout.mesh().num_shard));
  status.set_num_elements(static_cast<uint64_t>(layout.num_elements()));
  for (const RankReport& report : model.ranks()) Fill(report, *status.add_ranks());
  for (const v1::MemoryUse& use : layout.Memory()) *status.add_memory() = use;
  if (const std::optional<absl::Time> last = model.last_commit()) {
    const int64_t nanoseconds = absl::ToUnixNanos(*last);
    status.mutable_last_commit()->set_seconds(nanoseconds / 1'000'000'000);
    status.mutable_last_commit()->set_nanos(static_cast<int32_t>(nanoseconds % 1'000'000'000));
  }
}

}  // namespace holdfast
