#include "server/rpc/pull_reactor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/rpc/grpc_status.h"

namespace holdfast {

PullReactor* PullReactor::Refuse(const absl::Status& reason) {
  auto* stream = new PullReactor();
  stream->Finish(ToGrpc(reason));
  return stream;
}

PullReactor* PullReactor::Start(const std::shared_ptr<Model>& model, const v1::PullRequest& request) {
  const DType dtype = FromProto(request.dtype());
  if (request.dtype() != v1::DATA_TYPE_UNSPECIFIED && !IsArithmetic(dtype)) {
    return Refuse(absl::InvalidArgumentError(absl::StrFormat(
        "dtype: %d; tensors can be converted to float32, bfloat16, float16 and float64", request.dtype())));
  }
  const std::vector<std::string> asked(request.names().begin(), request.names().end());
  absl::StatusOr<std::vector<std::string>> names = model->SelectTensors(asked, request.ema());
  if (!names.ok()) return Refuse(names.status());
  auto* stream = new PullReactor();
  stream->model_ = model;
  stream->call_ = {.ema = request.ema(), .dtype = dtype};
  stream->names_ = *std::move(names);
  stream->StageNext();
  return stream;
}

void PullReactor::StageNext() {
  if (num_started_ == names_.size()) return Finish(grpc::Status::OK);
  if (cancelled_) return Finish(grpc::Status::CANCELLED);
  const std::shared_ptr<Model> model = model_.lock();
  if (model == nullptr) return Finish(ToGrpc(absl::AbortedError("the model was dropped")));
  call_.tensor = names_[num_started_++];
  model->Pull(call_, [this](absl::StatusOr<PulledTensor> tensor) { Staged(std::move(tensor)); });
}

void PullReactor::Staged(absl::StatusOr<PulledTensor> tensor) {
  if (!tensor.ok()) return Finish(ToGrpc(tensor.status()));
  tensor_ = *std::move(tensor);
  written_bytes_ = 0;
  v1::TensorStart& start = *message_.mutable_start();
  start.Clear();
  start.set_name(call_.tensor);
  start.set_dtype(ToProto(tensor_.dtype));
  for (const int64_t length : tensor_.shape) start.add_shape(length);
  start.set_step(tensor_.step.value());
  start.set_size_bytes(tensor_.bytes.size());
  StartWrite(&message_);
}

void PullReactor::WriteChunk() {
  const size_t count = std::min(kChunkBytes, tensor_.bytes.size() - written_bytes_);
  message_.mutable_chunk()->assign(reinterpret_cast<const char*>(tensor_.bytes.data()) + written_bytes_, count);
  written_bytes_ += count;
  StartWrite(&message_);
}

void PullReactor::OnWriteDone(bool ok) {
  if (!ok) return Finish(grpc::Status::CANCELLED);
  if (written_bytes_ < tensor_.bytes.size()) return WriteChunk();
  tensor_ = PulledTensor{};
  StageNext();
}

}  // namespace holdfast
