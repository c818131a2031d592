// Says what a Status is and should be.
#ifndef HOLDFAST_TESTS_INTEGRATION_STATUS_MATCHERS_H_
#define HOLDFAST_TESTS_INTEGRATION_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <grpcpp/support/status.h>

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grpc {

inline void PrintTo(const Status& status, std::ostream* out) {
  *out << status.error_code() << ": " << status.error_message();
}

}  // namespace grpc

namespace holdfast {

inline absl::Status ToStatus(const absl::Status& status) { return status; }
template <typename T>
absl::Status ToStatus(const absl::StatusOr<T>& result) {
  return result.status();
}
// The codes are the same numbers.
inline absl::Status ToStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

MATCHER(IsOk, "is OK") {
  const absl::Status status = ToStatus(arg);
  *result_listener << "which is " << status;
  return status.ok();
}

MATCHER_P2(FailsWith, code, text, "fails with the code and the text") {
  const absl::Status status = ToStatus(arg);
  *result_listener << "which is " << status;
  return status.code() == code && std::string(status.message()).find(text) != std::string::npos;
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_STATUS_MATCHERS_H_
