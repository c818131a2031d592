// What a call's header can have wrong: model, lease, epoch, step, sequence.
#include "absl/strings/str_cat.h"
#include "tests/integration/bad_input_world.h"

namespace holdfast {
namespace {

using Change = std::function<void(BadInputWorld&, v1::CallHeader&)>;

// A call that is right but for what `change` does to its header.
template <typename Request, typename Response>
std::function<grpc::Status(BadInputWorld&)> With(grpc::Status (ParameterStub::*method)(grpc::ClientContext*,
                                                                                       const Request&, Response*),
                                                 Request request, const Change& change) {
  return [method, request, change](BadInputWorld& world) {
    Request changed = request;
    *changed.mutable_call() = world.worker(0).Header();
    change(world, *changed.mutable_call());
    return CallOnce(world.stub(), method, changed);
  };
}

struct WorkerCall {
  std::string name;
  // Has an epoch, a step, a sequence number that is looked at.
  bool in_epoch = true;
  bool collective = true;
  std::function<std::function<grpc::Status(BadInputWorld&)>(const Change&)> with;
};

std::vector<WorkerCall> WorkerCalls() {
  v1::GatherRequest gather;
  gather.set_unit("a");
  v1::ReduceScatterRequest reduce;
  reduce.set_unit("a");
  return {
      {.name = "Gather", .with = [=](const Change& c) { return With(&ParameterStub::Gather, gather, c); }},
      {.name = "ReduceScatter",
       .with = [=](const Change& c) { return With(&ParameterStub::ReduceScatter, reduce, c); }},
      {.name = "BeginUpdate",
       .with = [](const Change& c) { return With(&ParameterStub::BeginUpdate, v1::BeginUpdateRequest(), c); }},
      {.name = "CommitUpdate",
       .with = [](const Change& c) { return With(&ParameterStub::CommitUpdate, v1::CommitUpdateRequest(), c); }},
      {.name = "Release",
       .collective = false,
       .with = [](const Change& c) { return With(&ParameterStub::Release, v1::ReleaseRequest(), c); }},
      {.name = "EmaStep",
       .in_epoch = false,
       .collective = false,
       .with = [](const Change& c) { return With(&ParameterStub::EmaStep, v1::EmaStepRequest(), c); }},
      {.name = "Rejoin",
       .in_epoch = false,
       .collective = false,
       .with = [](const Change& c) { return With(&ParameterStub::Rejoin, v1::RejoinRequest(), c); }},
  };
}

}  // namespace

std::vector<BadCall> BadHeaders() {
  std::vector<BadCall> table;
  for (const WorkerCall& call : WorkerCalls()) {
    const auto add = [&](const std::string& name, absl::StatusCode code, const std::string& text,
                         const Change& change) {
      table.push_back(
          {.name = absl::StrCat(call.name, "_", name), .call = call.with(change), .code = code, .text = text});
    };
    add("UnknownModel", absl::StatusCode::kNotFound, "no model 'nope' is registered; registered: 'blank', 'full'",
        [](BadInputWorld&, v1::CallHeader& header) { header.set_model("nope"); });
    add("NoModel", absl::StatusCode::kNotFound, "no model '' is registered",
        [](BadInputWorld&, v1::CallHeader& header) { header.clear_model(); });
    add("NoLease", absl::StatusCode::kAborted, "lease 0000000000000000 is not held",
        [](BadInputWorld&, v1::CallHeader& header) { header.clear_lease(); });
    add("OtherModelsLease", absl::StatusCode::kAborted, "is not held",
        [](BadInputWorld& world, v1::CallHeader& header) {
          header.set_lease(world.blank_worker().attached().lease());
        });
    if (!call.in_epoch) continue;
    add("EpochZero", absl::StatusCode::kInvalidArgument, "call.epoch: 0 was never an epoch",
        [](BadInputWorld&, v1::CallHeader& header) { header.set_epoch(0); });
    add("FutureEpoch", absl::StatusCode::kInvalidArgument, "was never an epoch of model 'full'; it is at",
        [](BadInputWorld&, v1::CallHeader& header) { header.set_epoch(header.epoch() + 1); });
    add("GreatestEpoch", absl::StatusCode::kInvalidArgument, "call.epoch: 18446744073709551615",
        [](BadInputWorld&, v1::CallHeader& header) { header.set_epoch(UINT64_MAX); });
    add("PastEpoch", absl::StatusCode::kAborted, "epoch 1",
        [](BadInputWorld&, v1::CallHeader& header) { header.set_epoch(1); });
    if (!call.collective) continue;
    add("FutureStep", absl::StatusCode::kFailedPrecondition, "call.step: 7, but model 'full' is at step 0",
        [](BadInputWorld&, v1::CallHeader& header) { header.set_step(7); });
    add("SequenceFarAhead", absl::StatusCode::kResourceExhausted, "call.sequence: 5000 is more than 4096 calls ahead",
        [](BadInputWorld&, v1::CallHeader& header) { header.set_sequence(5000); });
    add("GreatestSequence", absl::StatusCode::kResourceExhausted, "call.sequence: 18446744073709551615",
        [](BadInputWorld&, v1::CallHeader& header) { header.set_sequence(UINT64_MAX); });
    table.push_back({.name = absl::StrCat(call.name, "_SequenceUsed"),
                     .call = call.with([](BadInputWorld&, v1::CallHeader&) {}),
                     .code = absl::StatusCode::kFailedPrecondition,
                     .text = "call.sequence: 0 has been used by rank 0",
                     .prepare = [](BadInputWorld& world) {
                       v1::BeginUpdateRequest begin;
                       *begin.mutable_call() = world.worker(0).Header(0);
                       CallOnce(world.stub(), &ParameterStub::BeginUpdate, begin);
                       return std::vector<std::future<grpc::Status>>();
                     }});
  }
  return table;
}

}  // namespace holdfast
