// A message as JSON.
#ifndef HOLDFAST_CLIENT_HOLDFASTCTL_PRINT_JSON_H_
#define HOLDFAST_CLIENT_HOLDFASTCTL_PRINT_JSON_H_

#include <google/protobuf/message.h>

#include <ostream>

#include "absl/status/status.h"

namespace holdfast::ctl {

// With the field names of the .proto, and with fields that have their default.
absl::Status PrintJson(const google::protobuf::Message& message, std::ostream& out);

}  // namespace holdfast::ctl

#endif  // HOLDFAST_CLIENT_HOLDFASTCTL_PRINT_JSON_H_
