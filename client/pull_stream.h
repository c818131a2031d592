// Reads a Pull, checked, without LibTorch.
#ifndef HOLDFAST_CLIENT_PULL_STREAM_H_
#define HOLDFAST_CLIENT_PULL_STREAM_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/connection.h"
#include "holdfast/v1/parameter_service.pb.h"

namespace holdfast {

// Where pulled tensors go. An error ends the Pull.
class PullSink {
 public:
  virtual ~PullSink() = default;
  // A tensor begins; its size fits its shape and dtype. Returns memory of size_bytes, to stay until End.
  virtual absl::StatusOr<absl::Span<std::byte>> Begin(const v1::TensorStart& start) = 0;
  // All its bytes are there.
  virtual absl::Status End() = 0;
};

// Pulls, until the stream ends or stands still for call_timeout (DEADLINE_EXCEEDED). DATA_LOSS: the daemon sent other
// bytes than it announced. Errors of the sink are returned as they are.
absl::Status ReadPull(Connection& connection, const v1::PullRequest& request, PullSink& sink);

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_PULL_STREAM_H_
