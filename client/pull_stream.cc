#include "client/pull_stream.h"

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"
#include "client/stall_watch.h"
#include "common/dtype.h"

namespace holdfast {
namespace {

// Bytes that shape and dtype ask for; nothing if there is no such number.
std::optional<uint64_t> ExpectedBytes(const v1::TensorStart& start) {
  const int64_t element_bytes = SizeOf(FromProto(start.dtype()));
  if (element_bytes == 0) return std::nullopt;
  uint64_t size_bytes = static_cast<uint64_t>(element_bytes);
  for (const int64_t length : start.shape()) {
    if (length < 0 || __builtin_mul_overflow(size_bytes, static_cast<uint64_t>(length), &size_bytes)) {
      return std::nullopt;
    }
  }
  if (size_bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return size_bytes;
}

// Puts the pieces of the stream together.
class TensorAssembly {
 public:
  explicit TensorAssembly(PullSink& sink) : sink_(sink) {}

  absl::Status Add(const v1::PullResponse& piece) {
    switch (piece.message_case()) {
      case v1::PullResponse::kStart:
        return Start(piece.start());
      case v1::PullResponse::kChunk:
        return Append(piece.chunk());
      case v1::PullResponse::MESSAGE_NOT_SET:
        break;
    }
    return absl::DataLossError("the daemon sent a piece that is neither a start nor a chunk");
  }

  absl::Status CheckComplete() const {
    if (remaining_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("'", name_, "' ended ", remaining_.size(), " bytes short"));
  }

 private:
  absl::Status Start(const v1::TensorStart& start) {
    if (absl::Status status = CheckComplete(); !status.ok()) return status;
    name_ = start.name();
    if (ExpectedBytes(start) != start.size_bytes()) {
      return absl::DataLossError(absl::StrCat("'", name_, "' was announced with ", start.size_bytes(),
                                              " bytes, which its shape and dtype do not have"));
    }
    absl::StatusOr<absl::Span<std::byte>> memory = sink_.Begin(start);
    if (!memory.ok()) return memory.status();
    remaining_ = *memory;
    return remaining_.empty() ? sink_.End() : absl::OkStatus();
  }

  absl::Status Append(const std::string& chunk) {
    if (chunk.size() > remaining_.size()) {
      return absl::DataLossError(absl::StrCat("a chunk of ", chunk.size(), " bytes came for '", name_, "', which has ",
                                              remaining_.size(), " left"));
    }
    if (chunk.empty()) return absl::OkStatus();
    std::memcpy(remaining_.data(), chunk.data(), chunk.size());
    remaining_.remove_prefix(chunk.size());
    return remaining_.empty() ? sink_.End() : absl::OkStatus();
  }

  PullSink& sink_;
  std::string name_;
  absl::Span<std::byte> remaining_;
};

}  // namespace

absl::Status ReadPull(Connection& connection, const v1::PullRequest& request, PullSink& sink) {
  const std::string caller = absl::StrCat("Pull of '", request.model(), "'");
  const absl::Duration timeout = connection.options().call_timeout;
  grpc::ClientContext context;
  const std::unique_ptr<grpc::ClientReader<v1::PullResponse>> reader = connection.stub().Pull(&context, request);
  StallWatch watch(context, timeout);
  TensorAssembly assembly(sink);
  v1::PullResponse piece;
  absl::Status status;
  while (status.ok() && reader->Read(&piece)) {
    watch.Pause();
    status = assembly.Add(piece);
    watch.Advance();
  }
  if (!status.ok()) {
    context.TryCancel();
    reader->Finish();
    return status;
  }
  const grpc::Status finished = reader->Finish();
  if (watch.stalled()) {
    return absl::DeadlineExceededError(
        absl::StrCat(caller, ": nothing came for ", absl::FormatDuration(timeout), "; the daemon stands still"));
  }
  if (!finished.ok()) return CallError(finished, caller);
  return Annotate(assembly.CheckComplete(), caller);
}

}  // namespace holdfast
