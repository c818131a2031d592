#include "client/examples/text/daemon_admin.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace text {
namespace {

namespace v1 = holdfast::v1;

constexpr absl::Duration kCallTimeout = absl::Seconds(10);
constexpr absl::Duration kPause = absl::Milliseconds(5);

}  // namespace

DaemonAdmin::DaemonAdmin(const std::string& socket)
    : socket_(socket),
      stub_(v1::AdminService::NewStub(
          grpc::CreateChannel(absl::StrCat("unix:", socket), grpc::InsecureChannelCredentials()))) {}

absl::StatusOr<v1::GetStatusResponse> DaemonAdmin::GetStatus() const {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
  context.set_wait_for_ready(true);
  v1::GetStatusResponse response;
  const grpc::Status status = stub_->GetStatus(&context, {}, &response);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::UnavailableError(absl::StrCat("no daemon answers at '", socket_, "' within ",
                                               absl::FormatDuration(kCallTimeout),
                                               "; start holdfastd, or give its "
                                               "worker socket with --daemon"));
  }
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        absl::StrCat("GetStatus: ", status.error_message()));
  }
  return response;
}

absl::StatusOr<v1::ModelStatus> DaemonAdmin::GetModel(const std::string& name) const {
  const absl::StatusOr<v1::GetStatusResponse> daemon = GetStatus();
  if (!daemon.ok()) return daemon.status();
  for (const v1::ModelStatus& model : daemon->models()) {
    if (model.name() == name) return model;
  }
  return absl::NotFoundError(absl::StrCat("the daemon has no model '", name, "'"));
}

absl::StatusOr<v1::ModelStatus> DaemonAdmin::AwaitFreeRank(const std::string& name, holdfast::Rank rank,
                                                           absl::Duration limit) const {
  const absl::Time deadline = absl::Now() + limit;
  while (true) {
    absl::StatusOr<v1::ModelStatus> model = GetModel(name);
    if (!model.ok()) return model;
    const v1::LeaseState lease = model->ranks(rank.value()).lease();
    if (lease == v1::LEASE_STATE_FREE) return model;
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", rank.value(), " of model '", name, "' is still ",
                                                      v1::LeaseState_Name(lease), " after ",
                                                      absl::FormatDuration(limit)));
    }
    absl::SleepFor(kPause);
  }
}

}  // namespace text
