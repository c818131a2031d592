#include "client/client.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"
#include "client/connection.h"
#include "client/pull_stream.h"
#include "client/session.h"
#include "client/tensor_view.h"

namespace holdfast {
namespace {

// Makes at::Tensors of what comes, and hands them on one by one.
class TensorSink final : public PullSink {
 public:
  explicit TensorSink(absl::FunctionRef<absl::Status(ModelTensor)> receive) : receive_(receive) {}

  absl::StatusOr<absl::Span<std::byte>> Begin(const v1::TensorStart& start) override {
    const DType dtype = FromProto(start.dtype());
    absl::StatusOr<at::Tensor> tensor = NewTensor(dtype, {start.shape().begin(), start.shape().end()});
    if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("Pull of '", start.name(), "'"));
    pulled_ = {.name = start.name(), .step = Step(start.step()), .dtype = dtype, .tensor = *std::move(tensor)};
    return absl::MakeSpan(static_cast<std::byte*>(pulled_.tensor.data_ptr()), static_cast<size_t>(start.size_bytes()));
  }

  absl::Status End() override { return receive_(std::move(pulled_)); }

 private:
  absl::FunctionRef<absl::Status(ModelTensor)> receive_;
  ModelTensor pulled_;
};

}  // namespace

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(ClientOptions options) {
  absl::StatusOr<std::shared_ptr<Connection>> connection = Connection::Open(std::move(options));
  if (!connection.ok()) return connection.status();
  return std::unique_ptr<Client>(new Client(*std::move(connection)));
}

absl::StatusOr<v1::RegisterModelResponse> Client::RegisterModel(const v1::ModelSpec& spec) {
  grpc::ClientContext context;
  connection_->SetDeadline(context);
  v1::RegisterModelRequest request;
  *request.mutable_spec() = spec;
  v1::RegisterModelResponse response;
  absl::Status status = CallError(connection_->stub().RegisterModel(&context, request, &response),
                                  absl::StrCat("RegisterModel of '", spec.name(), "'"));
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<std::unique_ptr<Worker>> Client::Attach(std::string_view model, Rank rank, WorkerOptions options) {
  absl::StatusOr<std::unique_ptr<Session>> session =
      Session::Attach(connection_, std::string(model), rank, std::move(options));
  if (!session.ok()) return session.status();
  return std::make_unique<Worker>(*std::move(session));
}

absl::StatusOr<std::vector<ModelTensor>> Client::Pull(std::string_view model, const PullOptions& options) {
  std::vector<ModelTensor> tensors;
  absl::Status status = Pull(model, options, [&tensors](ModelTensor tensor) {
    tensors.push_back(std::move(tensor));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return tensors;
}

absl::Status Client::Pull(std::string_view model, const PullOptions& options,
                          absl::FunctionRef<absl::Status(ModelTensor)> receive) {
  v1::PullRequest request;
  request.set_model(std::string(model));
  request.mutable_names()->Add(options.names.begin(), options.names.end());
  request.set_ema(options.ema);
  request.set_dtype(ToProto(options.dtype));
  TensorSink sink(receive);
  return ReadPull(*connection_, request, sink);
}

}  // namespace holdfast
