// What a worker's calls can have wrong beside their headers.
#include "absl/strings/str_cat.h"
#include "tests/integration/bad_input_world.h"

namespace holdfast {
namespace {

using Futures = std::vector<std::future<grpc::Status>>;

// Rank 0 of "full" makes the call at this sequence number.
template <typename Request, typename Response>
std::function<grpc::Status(BadInputWorld&)> Call(grpc::Status (ParameterStub::*method)(grpc::ClientContext*,
                                                                                       const Request&, Response*),
                                                 uint64_t sequence, const std::function<void(Request&)>& fill) {
  return [=](BadInputWorld& world) {
    Request request;
    *request.mutable_call() = world.worker(0).Header(sequence);
    fill(request);
    return CallOnce(world.stub(), method, request);
  };
}

std::function<grpc::Status(BadInputWorld&)> Gather(const std::string& unit,
                                                   const std::vector<std::string>& prefetch = {},
                                                   const std::vector<std::string>& release = {},
                                                   uint64_t sequence = 0) {
  return Call<v1::GatherRequest>(&ParameterStub::Gather, sequence, [=](v1::GatherRequest& request) {
    request.set_unit(unit);
    request.mutable_prefetch()->Add(prefetch.begin(), prefetch.end());
    request.mutable_release()->Add(release.begin(), release.end());
  });
}

std::function<grpc::Status(BadInputWorld&)> Reduce(const std::string& unit, uint32_t slot, bool accumulate = false,
                                                   uint64_t sequence = 0) {
  return Call<v1::ReduceScatterRequest>(&ParameterStub::ReduceScatter, sequence,
                                        [=](v1::ReduceScatterRequest& request) {
                                          request.set_unit(unit);
                                          request.set_gradient_slot(slot);
                                          request.set_accumulate(accumulate);
                                        });
}

std::function<grpc::Status(BadInputWorld&)> Begin(int kind, uint64_t sequence = 0) {
  return Call<v1::BeginUpdateRequest>(&ParameterStub::BeginUpdate, sequence, [=](v1::BeginUpdateRequest& request) {
    request.set_kind(static_cast<v1::UpdateKind>(kind));
  });
}

std::function<grpc::Status(BadInputWorld&)> EmaStep(const std::string& name, uint64_t step) {
  return Call<v1::EmaStepRequest>(&ParameterStub::EmaStep, 0, [=](v1::EmaStepRequest& request) {
    request.mutable_call()->set_step(step);
    request.add_emas(name);
  });
}

// Rank 0 is between BeginUpdate and CommitUpdate.
Futures Updating(BadInputWorld& world) {
  Begin(v1::UPDATE_KIND_OPTIMIZER)(world);
  return {};
}

// Rank 0's gradient slot 1 waits to be reduced.
Futures Reducing(BadInputWorld& world) {
  v1::ReduceScatterRequest request;
  *request.mutable_call() = world.worker(0).Header(0);
  request.set_unit("a");
  request.set_gradient_slot(1);
  Futures waiting;
  waiting.push_back(world.worker(0).Start(&ParameterStub::ReduceScatter, request));
  world.cluster().AwaitModel("full", [](const v1::ModelStatus& model) { return model.ranks(0).sequence() == 1; });
  return waiting;
}

}  // namespace

std::vector<BadCall> BadWorkerCalls() {
  using enum absl::StatusCode;
  const std::string no_unit = "model 'full' has no unit 'nope'; its units are";
  return {
      {"Gather_UnknownUnit", Gather("nope"), kNotFound, no_unit},
      {"Gather_NoUnit", Gather(""), kNotFound, "has no unit ''"},
      {"Gather_UnknownPrefetch", Gather("a", {"nope"}), kNotFound, no_unit},
      {"Gather_UnknownRelease", Gather("a", {}, {"nope"}), kNotFound, no_unit},
      {"Gather_PrefetchesItself", Gather("a", {"a"}), kInvalidArgument, "unit 'a' is named twice"},
      {"Gather_PrefetchTwice", Gather("a", {"b", "b"}), kInvalidArgument, "unit 'b' is named twice"},
      {"Gather_MoreUnitsThanSlots", Gather("a", {"b", "c"}), kResourceExhausted,
       "3 gather slots are needed, 2 are free"},
      {"Gather_PrefetchBeyondWindow", Gather("a", std::vector<std::string>(5000, "b")), kResourceExhausted,
       "calls ahead of the slowest rank"},
      {"Gather_WhileUpdating", Gather("a", {}, {}, 1), kFailedPrecondition,
       "rank 0 is between BeginUpdate and CommitUpdate", Updating},
      {"Gather_OfBlankModel",
       [](BadInputWorld& world) {
         v1::GatherRequest request;
         *request.mutable_call() = world.blank_worker().Header();
         request.set_unit("a");
         return CallOnce(world.stub(), &ParameterStub::Gather, request);
       },
       kFailedPrecondition, "model 'blank' has no parameters yet: initialise it"},
      {"Release_UnknownUnit",
       Call<v1::ReleaseRequest>(&ParameterStub::Release, 0,
                                [](v1::ReleaseRequest& request) {
                                  request.add_units("a");
                                  request.add_units("nope");
                                }),
       kNotFound, no_unit},
      {"ReduceScatter_UnknownUnit", Reduce("nope", 0), kNotFound, no_unit},
      {"ReduceScatter_FrozenUnit", Reduce("c", 0), kInvalidArgument, "unit: 'c' has no trainable parameter"},
      {"ReduceScatter_SlotOutOfRange", Reduce("a", 2), kInvalidArgument, "gradient_slot: 2; slots are 0 to 1"},
      {"ReduceScatter_GreatestSlot", Reduce("a", UINT32_MAX), kInvalidArgument, "gradient_slot: 4294967295"},
      {"ReduceScatter_BusySlot", Reduce("b", 1, false, 1), kFailedPrecondition,
       "gradient_slot: 1 is still being reduced", Reducing},
      {"ReduceScatter_NothingToAddTo", Reduce("a", 0, true), kFailedPrecondition,
       "unit 'a' has no gradient of step 0 to add to"},
      {"ReduceScatter_WhileUpdating", Reduce("a", 0, false, 1), kFailedPrecondition,
       "rank 0 is between BeginUpdate and CommitUpdate", Updating},
      {"ReduceScatter_OfBlankModel",
       [](BadInputWorld& world) {
         v1::ReduceScatterRequest request;
         *request.mutable_call() = world.blank_worker().Header();
         request.set_unit("a");
         return CallOnce(world.stub(), &ParameterStub::ReduceScatter, request);
       },
       kFailedPrecondition, "model 'blank' has no parameters yet"},
      {"BeginUpdate_UnknownKind", Begin(99), kInvalidArgument, "kind: 99; valid are UPDATE_KIND_OPTIMIZER"},
      {"BeginUpdate_NegativeKind", Begin(-1), kInvalidArgument, "kind: -1"},
      {"BeginUpdate_InitializeAgain", Begin(v1::UPDATE_KIND_INITIALIZE), kFailedPrecondition,
       "model 'full' has parameters already, of step 0"},
      {"BeginUpdate_Twice", Begin(v1::UPDATE_KIND_OPTIMIZER, 1), kFailedPrecondition,
       "rank 0 is between BeginUpdate and CommitUpdate", Updating},
      {"BeginUpdate_OptimizerOnBlankModel",
       [](BadInputWorld& world) {
         v1::BeginUpdateRequest request;
         *request.mutable_call() = world.blank_worker().Header();
         return CallOnce(world.stub(), &ParameterStub::BeginUpdate, request);
       },
       kFailedPrecondition, "model 'blank' has no parameters yet"},
      {"CommitUpdate_WithoutBegin",
       Call<v1::CommitUpdateRequest>(&ParameterStub::CommitUpdate, 0, [](v1::CommitUpdateRequest&) {}),
       kFailedPrecondition, "rank 0 has no update to commit; call BeginUpdate first"},
      {"EmaStep_UnknownEma", EmaStep("nope", 0), kNotFound, "model 'full' has no EMA 'nope'; it has 'slow'"},
      {"EmaStep_FutureStep", EmaStep("slow", 1), kFailedPrecondition, "call.step: 1, but model 'full' is at step 0"},
      {"EmaStep_GreatestStep", EmaStep("slow", UINT64_MAX), kFailedPrecondition, "call.step: 18446744073709551615"},
      {"EmaStep_OfBlankModel",
       [](BadInputWorld& world) {
         v1::EmaStepRequest request;
         *request.mutable_call() = world.blank_worker().Header();
         return CallOnce(world.stub(), &ParameterStub::EmaStep, request);
       },
       kFailedPrecondition, "model 'blank' has no parameters yet"},
      {"ClipGradNorm", Call<v1::ClipGradNormRequest>(&ParameterStub::ClipGradNorm, 0, [](v1::ClipGradNormRequest&) {}),
       kUnimplemented, "ClipGradNorm is not in this version"},
      {"OptimizerStep",
       Call<v1::OptimizerStepRequest>(&ParameterStub::OptimizerStep, 0, [](v1::OptimizerStepRequest&) {}),
       kUnimplemented, "BeginUpdate and CommitUpdate"},
  };
}

}  // namespace holdfast
