// The stream that holds a lease.
#ifndef HOLDFAST_CLIENT_ATTACH_STREAM_H_
#define HOLDFAST_CLIENT_ATTACH_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/future.h"
#include "holdfast/v1/parameter_service.grpc.pb.h"

namespace holdfast {

// Called from the stream's own thread, one at a time; must not destroy the stream.
struct AttachHooks {
  std::function<void(const v1::GroupEvent&)> on_event;
  // The lease has ended; nothing follows. Not OK.
  std::function<void(const absl::Status&)> on_end;
};

// Reads one Attach stream in a thread of its own, until it ends or this object does: then the lease ends, too.
class AttachStream {
 public:
  // Waits for the first message, at most call_timeout. Errors are the daemon's own.
  static absl::StatusOr<std::unique_ptr<AttachStream>> Open(Connection& connection, const v1::AttachRequest& request,
                                                            AttachHooks hooks);
  ~AttachStream();
  AttachStream(const AttachStream&) = delete;
  AttachStream& operator=(const AttachStream&) = delete;

  const v1::Attached& attached() const { return attached_; }
  // Waits until the lease has ended; false if it is held still at `deadline`.
  bool AwaitEnd(absl::Time deadline) { return ended_.Await(deadline).has_value(); }

 private:
  explicit AttachStream(AttachHooks hooks) : hooks_(std::move(hooks)) {}

  void Read();

  const AttachHooks hooks_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::AttachResponse>> reader_;
  v1::Attached attached_;
  Promise<v1::Attached> first_;
  Promise<void> ended_;
  // Last, as it uses all of the above.
  std::thread thread_;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_ATTACH_STREAM_H_
