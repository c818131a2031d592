#include "tests/integration/raw_worker.h"

#include <unistd.h>

namespace holdfast {

v1::AttachRequest AttachRequestOf(const std::string& model, uint32_t rank) {
  v1::AttachRequest request;
  request.set_model(model);
  request.set_rank(rank);
  request.set_pid(::getpid());
  return request;
}

RawWorker::RawWorker(ParameterStub& stub, v1::AttachRequest request) : stub_(stub), request_(std::move(request)) {
  reader_ = stub_.Attach(&context_, request_);
  v1::AttachResponse first;
  if (reader_->Read(&first) && first.has_attached()) {
    attached_ = first.attached();
    state_ = attached_.state();
  } else {
    status_ = reader_->Finish();
    reader_.reset();
  }
}

RawWorker::~RawWorker() {
  if (reader_ == nullptr) return;
  context_.TryCancel();
  v1::AttachResponse rest;
  while (reader_->Read(&rest)) {
  }
  reader_->Finish();
}

v1::CallHeader RawWorker::Header(uint64_t sequence) const {
  v1::CallHeader call;
  call.set_model(request_.model());
  call.set_lease(attached_.lease());
  call.set_epoch(state_.epoch());
  call.set_step(state_.step());
  call.set_sequence(sequence);
  return call;
}

grpc::Status RawWorker::Rejoin() {
  v1::RejoinRequest request;
  *request.mutable_call() = Header();
  v1::RejoinResponse response;
  grpc::Status status = CallOnce(stub_, &ParameterStub::Rejoin, request, &response);
  if (status.ok()) state_ = response.state();
  return status;
}

}  // namespace holdfast
