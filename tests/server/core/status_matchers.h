// Says what a Status is and should be.
#ifndef HOLDFAST_TESTS_SERVER_CORE_STATUS_MATCHERS_H_
#define HOLDFAST_TESTS_SERVER_CORE_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace holdfast {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << "which is " << StatusOf(arg);
  return StatusOf(arg).ok();
}

MATCHER_P2(FailsWith, code, text, "fails with the code and the text") {
  *result_listener << "which is " << StatusOf(arg);
  return StatusOf(arg).code() == code && std::string(StatusOf(arg).message()).find(text) != std::string::npos;
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_CORE_STATUS_MATCHERS_H_
