#include "client/attach_stream.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<AttachStream>> AttachStream::Open(Connection& connection,
                                                                 const v1::AttachRequest& request, AttachHooks hooks) {
  std::unique_ptr<AttachStream> stream(new AttachStream(std::move(hooks)));
  stream->reader_ = connection.stub().Attach(&stream->context_, request);
  stream->thread_ = std::thread([s = stream.get()] { s->Read(); });
  // The stream itself has no deadline: it lives as long as the lease.
  const absl::Duration timeout = connection.options().call_timeout;
  std::optional<absl::StatusOr<v1::Attached>> first = stream->first_.Await(absl::Now() + timeout);
  if (!first.has_value()) {
    return absl::DeadlineExceededError(
        absl::StrCat("Attach: the daemon did not answer within ", absl::FormatDuration(timeout)));
  }
  if (!first->ok()) return first->status();
  stream->attached_ = **std::move(first);
  return stream;
}

AttachStream::~AttachStream() {
  context_.TryCancel();
  thread_.join();
}

void AttachStream::Read() {
  v1::AttachResponse message;
  absl::Status fault;
  if (reader_->Read(&message)) {
    if (message.has_attached()) {
      first_.Set(message.attached());
    } else {
      // A lease of which nothing is known is of no use.
      fault = absl::InternalError("Attach: the daemon's first message has no lease in it");
      context_.TryCancel();
    }
  }
  while (reader_->Read(&message)) {
    if (message.has_event()) hooks_.on_event(message.event());
  }
  const grpc::Status finished = reader_->Finish();
  absl::Status status = absl::UnavailableError("Attach: the daemon ended the lease");
  if (!finished.ok()) status = CallError(finished, "Attach");
  if (!fault.ok()) status = fault;
  first_.Set(status);
  hooks_.on_end(status);
  ended_.Set(std::move(status));
}

}  // namespace holdfast
