#include "client/call_error.h"

#include "absl/strings/str_cat.h"

namespace holdfast {

absl::Status Annotate(const absl::Status& status, const std::string& caller) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(caller, ": ", status.message()));
}

absl::Status CallError(const grpc::Status& status, const std::string& caller) {
  if (status.ok()) return absl::OkStatus();
  // The numbers of the codes are the same by design.
  return Annotate(absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message()), caller);
}

}  // namespace holdfast
