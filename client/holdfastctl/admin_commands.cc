// drop and drain.
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/holdfastctl/command.h"
#include "client/holdfastctl/daemon_channel.h"
#include "client/holdfastctl/table.h"
#include "holdfast/v1/admin_service.grpc.pb.h"

namespace holdfast::ctl {

absl::Status RunDrop(const Arguments& arguments, std::ostream& out) {
  const absl::StatusOr<DaemonChannel> daemon = DaemonChannel::Open(arguments);
  if (!daemon.ok()) return daemon.status();
  const std::unique_ptr<v1::AdminService::Stub> admin = v1::AdminService::NewStub(daemon->channel());
  v1::DropModelRequest request;
  request.set_model(arguments.words().front());
  request.set_force(arguments.Has("force"));
  v1::DropModelResponse response;
  const absl::Status status = daemon->Call(*admin, &v1::AdminService::Stub::DropModel, request, response);
  if (!status.ok()) return status;
  out << "dropped " << request.model() << ", " << BytesText(response.freed_bytes()) << " freed\n";
  return absl::OkStatus();
}

absl::Status RunDrain(const Arguments& arguments, std::ostream& out) {
  const absl::StatusOr<absl::Duration> grace = arguments.GetDuration("grace_period", absl::ZeroDuration());
  if (!grace.ok()) return grace.status();
  const absl::StatusOr<DaemonChannel> daemon = DaemonChannel::Open(arguments);
  if (!daemon.ok()) return daemon.status();
  const std::unique_ptr<v1::AdminService::Stub> admin = v1::AdminService::NewStub(daemon->channel());
  v1::DrainRequest request;
  if (arguments.Has("grace_period")) {
    absl::Duration rest = *grace;
    request.mutable_grace_period()->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
    request.mutable_grace_period()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  }
  v1::DrainResponse response;
  const absl::Status status = daemon->Call(*admin, &v1::AdminService::Stub::Drain, request, response);
  if (!status.ok()) return status;
  out << "the daemon drains; it ends when the last lease has ended or the grace period is over\n";
  return absl::OkStatus();
}

}  // namespace holdfast::ctl
