// One HTTP request to a server on this machine.
#ifndef HOLDFAST_TESTS_INTEGRATION_HTTP_GET_H_
#define HOLDFAST_TESTS_INTEGRATION_HTTP_GET_H_

#include <string>

#include "absl/status/statusor.h"

namespace holdfast {

// The body of GET `target` from `address` ("127.0.0.1:9464"). Not OK unless the answer is 200.
absl::StatusOr<std::string> HttpGet(const std::string& address, const std::string& target);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_HTTP_GET_H_
