// Attach, Pull, the operators' calls, and what is no call at all.
#include <grpcpp/generic/generic_stub.h>

#include "tests/integration/bad_input_world.h"

namespace holdfast {
namespace {

std::function<grpc::Status(BadInputWorld&)> Attach(const std::string& model, uint32_t rank, int32_t pid) {
  return [=](BadInputWorld& world) {
    v1::AttachRequest request = AttachRequestOf(model, rank);
    request.set_pid(pid);
    return RawWorker(world.stub(), request).status();
  };
}

std::function<grpc::Status(BadInputWorld&)> Pull(const std::string& model, const std::string& name,
                                                 const std::string& ema = "", int dtype = 0) {
  return [=](BadInputWorld& world) {
    v1::PullRequest request;
    request.set_model(model);
    request.add_names(name);
    request.set_ema(ema);
    request.set_dtype(static_cast<v1::DataType>(dtype));
    grpc::ClientContext context;
    const auto reader = world.stub().Pull(&context, request);
    v1::PullResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  };
}

template <typename Stub, typename Request, typename Response>
std::function<grpc::Status(BadInputWorld&)> Operator(
    Stub& (BadInputWorld::*stub)(), grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const std::function<void(Request&)>& fill = [](Request&) {}) {
  return [=](BadInputWorld& world) {
    Request request;
    fill(request);
    grpc::ClientContext context;
    Response response;
    return ((world.*stub)().*method)(&context, request, &response);
  };
}

std::function<grpc::Status(BadInputWorld&)> Drain(int64_t seconds, int32_t nanos) {
  return Operator<v1::AdminService::Stub, v1::DrainRequest>(&BadInputWorld::admin, &v1::AdminService::Stub::Drain,
                                                            [=](v1::DrainRequest& request) {
                                                              request.mutable_grace_period()->set_seconds(seconds);
                                                              request.mutable_grace_period()->set_nanos(nanos);
                                                            });
}

std::function<grpc::Status(BadInputWorld&)> Drop(const std::string& model) {
  return Operator<v1::AdminService::Stub, v1::DropModelRequest>(
      &BadInputWorld::admin, &v1::AdminService::Stub::DropModel,
      [=](v1::DropModelRequest& request) { request.set_model(model); });
}

// Bytes to a method, whatever they mean.
std::function<grpc::Status(BadInputWorld&)> Bytes(const std::string& method, const std::string& bytes) {
  return [=](BadInputWorld& world) {
    grpc::GenericStub stub(world.cluster().NewChannel());
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  };
}

grpc::Status WatchOperation(BadInputWorld& world) {
  grpc::ClientContext context;
  v1::WatchOperationResponse response;
  const auto reader = world.checkpoints().WatchOperation(&context, {});
  while (reader->Read(&response)) {
  }
  return reader->Finish();
}

}  // namespace

std::vector<BadCall> BadOtherCalls() {
  using enum absl::StatusCode;
  using Admin = v1::AdminService::Stub;
  using Checkpoints = v1::CheckpointService::Stub;
  const std::string not_yet = "checkpoints are not in this version";
  return {
      {"Attach_UnknownModel", Attach("nope", 0, 1), kNotFound, "no model 'nope' is registered"},
      {"Attach_RankHeld", Attach("full", 1, 1), kAlreadyExists, "rank 1 is held by process"},
      {"Attach_RankOutOfRange", Attach("full", 2, 1), kInvalidArgument,
       "rank: 2 is not a rank of this node; they are 0 to 1"},
      {"Attach_GreatestRank", Attach("full", UINT32_MAX, 1), kInvalidArgument, "is not a rank of this node"},
      {"Attach_NoPid", Attach("blank", 1, 0), kInvalidArgument, "pid: the id of the calling process is required"},
      {"Attach_NegativePid", Attach("blank", 1, -7), kInvalidArgument,
       "pid: the id of the calling process is required"},
      {"Pull_UnknownModel", Pull("nope", "*"), kNotFound, "no model 'nope' is registered"},
      {"Pull_UnknownName", Pull("full", "nope"), kNotFound, "names: 'nope' matches no parameter or buffer"},
      {"Pull_GlobOfNothing", Pull("full", "z*"), kNotFound, "names: 'z*' matches no parameter or buffer"},
      {"Pull_UnknownEma", Pull("full", "*", "nope"), kNotFound, "model 'full' has no EMA 'nope'"},
      {"Pull_EmaOfFrozen", Pull("full", "c.weight", "slow"), kNotFound, "matches no trainable parameter"},
      {"Pull_AsIntegers", Pull("full", "*", "", v1::DATA_TYPE_INT32), kInvalidArgument, "dtype: 8"},
      {"Pull_UnknownDType", Pull("full", "*", "", 77), kInvalidArgument, "dtype: 77"},
      {"Pull_BlankModel", Pull("blank", "*"), kFailedPrecondition, "model 'blank' has no parameters yet"},
      {"DropModel_Unknown", Drop("nope"), kNotFound, "no model 'nope' is registered"},
      {"DropModel_Held", Drop("full"), kFailedPrecondition, "2 workers hold leases on model 'full'"},
      {"Drain_NegativeGrace", Drain(-1, 0), kInvalidArgument, "grace_period: -1s"},
      {"Drain_GraceTooLong", Drain(86400, 1), kInvalidArgument, "it must be from 0 to 24 hours"},
      {"Drain_GreatestGrace", Drain(INT64_MAX, 999999999), kInvalidArgument, "it must be from 0 to 24 hours"},
      {"ListCheckpoints", Operator(&BadInputWorld::admin, &Admin::ListCheckpoints), kUnimplemented, not_yet},
      {"VerifyCheckpoint", Operator(&BadInputWorld::admin, &Admin::VerifyCheckpoint), kUnimplemented, not_yet},
      {"DeleteCheckpoint", Operator(&BadInputWorld::admin, &Admin::DeleteCheckpoint), kUnimplemented, not_yet},
      {"SaveCheckpoint", Operator(&BadInputWorld::checkpoints, &Checkpoints::SaveCheckpoint), kUnimplemented, not_yet},
      {"LoadCheckpoint", Operator(&BadInputWorld::checkpoints, &Checkpoints::LoadCheckpoint), kUnimplemented, not_yet},
      {"GetOperation", Operator(&BadInputWorld::checkpoints, &Checkpoints::GetOperation), kUnimplemented, not_yet},
      {"WatchOperation", WatchOperation, kUnimplemented, not_yet},
      {"UnknownMethod", Bytes("/holdfast.v1.ParameterService/Nope", ""), kUnimplemented, ""},
      {"UnknownService", Bytes("/holdfast.v2.ParameterService/Gather", ""), kUnimplemented, ""},
      // gRPC's own answers to bytes that are no message: one for its callback handlers, one for the others.
      {"NoMessage", Bytes("/holdfast.v1.ParameterService/Gather", "\xff\xff\xff"), kUnimplemented, ""},
      {"MessageCutShort", Bytes("/holdfast.v1.ParameterService/RegisterModel", "\x0a\x7f"), kInternal, ""},
  };
}

}  // namespace holdfast
