#include "server/rpc/attach_reactor.h"

#include <utility>

#include "server/rpc/grpc_status.h"
#include "server/rpc/translate.h"

namespace holdfast {

class AttachReactor::Listener : public LeaseListener {
 public:
  explicit Listener(AttachReactor* stream) : stream_(stream) {}

  void OnEvent(const GroupEvent& event) override {
    v1::AttachResponse message;
    Fill(event, *message.mutable_event());
    absl::MutexLock lock(&mu_);
    if (stream_ != nullptr) stream_->Write(std::move(message));
  }
  void OnRevoked(const absl::Status& reason) override {
    absl::MutexLock lock(&mu_);
    if (stream_ != nullptr) stream_->End(reason);
  }
  // The stream is about to go.
  void Forget() {
    absl::MutexLock lock(&mu_);
    stream_ = nullptr;
  }

 private:
  absl::Mutex mu_;
  AttachReactor* stream_ ABSL_GUARDED_BY(mu_);
};

AttachReactor* AttachReactor::Start(const std::shared_ptr<Model>& model, const v1::AttachRequest& request,
                                    const std::string& memory_socket) {
  auto* stream = new AttachReactor();
  stream->model_ = model;
  stream->listener_ = std::make_shared<Listener>(stream);
  if (request.pid() <= 0) {
    stream->End(absl::InvalidArgumentError("pid: the id of the calling process is required, above 0"));
    return stream;
  }
  // A rank beyond int32 is no rank either, and must not wrap to one.
  const Rank rank(request.rank() > INT32_MAX ? INT32_MAX : static_cast<int32_t>(request.rank()));
  absl::StatusOr<Attachment> attachment = model->Attach(rank, request.pid(), stream->listener_);
  if (!attachment.ok()) {
    stream->End(attachment.status());
    return stream;
  }
  v1::AttachResponse message;
  Fill(*attachment, model->layout(), *message.mutable_attached());
  message.mutable_attached()->set_memory_socket(memory_socket);
  bool cancelled = false;
  {
    absl::MutexLock lock(&stream->mu_);
    stream->lease_ = attachment->lease;
    cancelled = stream->cancelled_;
    // Ahead of any event that has come meanwhile.
    stream->messages_.push_front(std::move(message));
    stream->Advance();
  }
  if (cancelled) model->EndLease(attachment->lease, "lost its connection");
  return stream;
}

AttachReactor* AttachReactor::Refuse(const absl::Status& reason) {
  auto* stream = new AttachReactor();
  stream->End(reason);
  return stream;
}

void AttachReactor::Write(v1::AttachResponse message) {
  absl::MutexLock lock(&mu_);
  messages_.push_back(std::move(message));
  Advance();
}

void AttachReactor::End(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (!end_.has_value()) end_ = status;
  Advance();
}

void AttachReactor::Advance() {
  if (writing_ || finished_) return;
  // Events wait for the first message, which tells of the lease.
  if (!messages_.empty() && (lease_.has_value() || end_.has_value())) {
    writing_ = true;
    StartWrite(&messages_.front());
  } else if (end_.has_value()) {
    finished_ = true;
    Finish(ToGrpc(*end_));
  }
}

void AttachReactor::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  messages_.pop_front();
  if (!ok) messages_.clear();
  Advance();
}

void AttachReactor::OnCancel() {
  std::optional<LeaseId> lease;
  {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    lease = lease_;
  }
  const std::shared_ptr<Model> model = model_.lock();
  if (model != nullptr && lease.has_value()) model->EndLease(*lease, "lost its connection");
  End(absl::CancelledError("the worker's connection has ended"));
}

void AttachReactor::OnDone() {
  if (listener_ != nullptr) listener_->Forget();
  delete this;
}

}  // namespace holdfast
