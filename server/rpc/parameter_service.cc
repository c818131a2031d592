#include "server/rpc/parameter_service.h"

#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/rpc/attach_reactor.h"
#include "server/rpc/pull_reactor.h"
#include "server/rpc/translate.h"
#include "server/rpc/unary_call.h"

namespace holdfast {
namespace {

std::vector<std::string> ToVector(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return {names.begin(), names.end()};
}

// Finds the model of a call and runs `work(model, context, call)`, which is to answer the call. A caller that goes away
// takes the call out of what it waits for.
template <typename Work>
grpc::ServerUnaryReactor* Serve(const Registry& registry, grpc::CallbackServerContext* server_context,
                                const v1::CallHeader& header, Work work) {
  const absl::StatusOr<std::shared_ptr<Model>> model = registry.Find(header.model());
  if (!model.ok()) {
    auto* call = new UnaryCall();
    call->Answer(model.status());
    return call;
  }
  const CallContext context = ToContext(header);
  auto* call = new UnaryCall([weak = std::weak_ptr<Model>(*model), id = context.id] {
    if (const std::shared_ptr<Model> waiting_in = weak.lock()) {
      waiting_in->CancelCall(id, absl::CancelledError("the caller has gone, or its deadline has passed"));
    }
  });
  if (server_context->IsCancelled()) {
    call->Answer(absl::CancelledError("the caller has gone before the call began"));
    return call;
  }
  work(**model, context, call);
  return call;
}

}  // namespace

grpc::Status ParameterService::RegisterModel(grpc::ServerContext* context, const v1::RegisterModelRequest* request,
                                             v1::RegisterModelResponse* response) {
  if (context->IsCancelled()) return grpc::Status::CANCELLED;
  const absl::StatusOr<Registry::Registered> registered = registry_.Register(request->spec());
  if (!registered.ok()) return ToGrpc(registered.status());
  const ModelLayout& layout = registered->model->layout();
  response->set_fingerprint(FingerprintText(layout.fingerprint()));
  for (const v1::MemoryUse& use : layout.Memory()) *response->add_memory() = use;
  response->set_total_bytes(static_cast<uint64_t>(registered->model->total_bytes()));
  response->set_created(registered->created);
  return grpc::Status::OK;
}

grpc::ServerWriteReactor<v1::AttachResponse>* ParameterService::Attach(grpc::CallbackServerContext*,
                                                                       const v1::AttachRequest* request) {
  if (absl::Status status = registry_.CheckNotDraining(); !status.ok()) return AttachReactor::Refuse(status);
  const absl::StatusOr<std::shared_ptr<Model>> model = registry_.Find(request->model());
  if (!model.ok()) return AttachReactor::Refuse(model.status());
  return AttachReactor::Start(*model, *request, memory_socket_);
}

grpc::ServerUnaryReactor* ParameterService::Rejoin(grpc::CallbackServerContext* context,
                                                   const v1::RejoinRequest* request, v1::RejoinResponse* response) {
  return Serve(registry_, context, request->call(),
               [&](Model& model, const CallContext& call_context, UnaryCall* call) {
                 model.Rejoin(call_context, [call, response](absl::StatusOr<ModelPosition> position) {
                   if (position.ok()) Fill(*position, *response->mutable_state());
                   call->Answer(position.status());
                 });
               });
}

grpc::ServerUnaryReactor* ParameterService::Gather(grpc::CallbackServerContext* context,
                                                   const v1::GatherRequest* request, v1::GatherResponse* response) {
  return Serve(registry_, context, request->call(),
               [&](Model& model, const CallContext& call_context, UnaryCall* call) {
                 const GatherCall gather = {.context = call_context,
                                            .unit = request->unit(),
                                            .prefetch = ToVector(request->prefetch()),
                                            .release = ToVector(request->release())};
                 // The request lives until the call has been answered.
                 model.Gather(gather, [call, request, response](absl::StatusOr<GatherResult> result) {
                   if (result.ok()) {
                     Fill(result->unit, request->unit(), *response->mutable_unit());
                     for (size_t i = 0; i < result->prefetch.size(); ++i) {
                       Fill(result->prefetch[i], request->prefetch(static_cast<int>(i)), *response->add_prefetch());
                     }
                   }
                   call->Answer(result.status());
                 });
               });
}

grpc::ServerUnaryReactor* ParameterService::Release(grpc::CallbackServerContext* context,
                                                    const v1::ReleaseRequest* request, v1::ReleaseResponse*) {
  return Serve(registry_, context, request->call(),
               [&](Model& model, const CallContext& call_context, UnaryCall* call) {
                 call->Answer(model.Release(call_context, ToVector(request->units())));
               });
}

grpc::ServerUnaryReactor* ParameterService::ReduceScatter(grpc::CallbackServerContext* context,
                                                          const v1::ReduceScatterRequest* request,
                                                          v1::ReduceScatterResponse*) {
  return Serve(
      registry_, context, request->call(), [&](Model& model, const CallContext& call_context, UnaryCall* call) {
        const ReduceScatterCall reduce = {.context = call_context,
                                          .unit = request->unit(),
                                          .gradient_slot = request->gradient_slot(),
                                          .accumulate = request->accumulate()};
        model.ReduceScatter(reduce, [call](const absl::StatusOr<Nothing>& result) { call->Answer(result.status()); });
      });
}

grpc::Status ParameterService::ClipGradNorm(grpc::ServerContext*, const v1::ClipGradNormRequest*,
                                            v1::ClipGradNormResponse*) {
  return ToGrpc(absl::UnimplementedError(
      "ClipGradNorm is not in this version; take the norm over the mapped gradient shards and reduce it yourself"));
}

grpc::Status ParameterService::OptimizerStep(grpc::ServerContext*, const v1::OptimizerStepRequest*,
                                             v1::OptimizerStepResponse*) {
  return ToGrpc(
      absl::UnimplementedError("OptimizerStep is not in this version; run an optimizer on the mapped shards between "
                               "BeginUpdate and CommitUpdate"));
}

grpc::ServerUnaryReactor* ParameterService::BeginUpdate(grpc::CallbackServerContext* context,
                                                        const v1::BeginUpdateRequest* request,
                                                        v1::BeginUpdateResponse*) {
  return Serve(
      registry_, context, request->call(), [&](Model& model, const CallContext& call_context, UnaryCall* call) {
        if (!v1::UpdateKind_IsValid(request->kind())) {
          call->Answer(absl::InvalidArgumentError(absl::StrFormat(
              "kind: %d; valid are UPDATE_KIND_OPTIMIZER (1) and UPDATE_KIND_INITIALIZE (2)", request->kind())));
          return;
        }
        const UpdateKind kind =
            request->kind() == v1::UPDATE_KIND_INITIALIZE ? UpdateKind::kInitialize : UpdateKind::kOptimizer;
        model.BeginUpdate(call_context, kind,
                          [call](const absl::StatusOr<Nothing>& result) { call->Answer(result.status()); });
      });
}

grpc::ServerUnaryReactor* ParameterService::CommitUpdate(grpc::CallbackServerContext* context,
                                                         const v1::CommitUpdateRequest* request,
                                                         v1::CommitUpdateResponse* response) {
  return Serve(
      registry_, context, request->call(), [&](Model& model, const CallContext& call_context, UnaryCall* call) {
        model.CommitUpdate(call_context, request->ema_step(), [call, response](const absl::StatusOr<Step>& step) {
          if (step.ok()) response->set_step(step->value());
          call->Answer(step.status());
        });
      });
}

grpc::ServerUnaryReactor* ParameterService::EmaStep(grpc::CallbackServerContext* context,
                                                    const v1::EmaStepRequest* request, v1::EmaStepResponse* response) {
  return Serve(registry_, context, request->call(),
               [&](Model& model, const CallContext& call_context, UnaryCall* call) {
                 model.EmaStep(call_context, ToVector(request->emas()),
                               [call, response](const absl::StatusOr<std::vector<EmaResult>>& results) {
                                 for (size_t i = 0; results.ok() && i < results->size(); ++i) {
                                   v1::EmaStepResult& message = *response->add_emas();
                                   message.set_name((*results)[i].name);
                                   message.set_applied((*results)[i].applied);
                                   message.set_decay((*results)[i].decay);
                                   message.set_num_updates((*results)[i].num_updates);
                                 }
                                 call->Answer(results.status());
                               });
               });
}

grpc::ServerWriteReactor<v1::PullResponse>* ParameterService::Pull(grpc::CallbackServerContext*,
                                                                   const v1::PullRequest* request) {
  const absl::StatusOr<std::shared_ptr<Model>> model = registry_.Find(request->model());
  if (!model.ok()) return PullReactor::Refuse(model.status());
  return PullReactor::Start(*model, *request);
}

}  // namespace holdfast
