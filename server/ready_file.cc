#include "server/ready_file.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace holdfast {

absl::Status WriteReadyFile(const std::string& path, const ReadyAddresses& addresses) {
  google::protobuf::Struct object;
  auto& fields = *object.mutable_fields();
  fields["pid"].set_number_value(::getpid());
  fields["worker_socket"].set_string_value(addresses.worker_socket);
  fields["memory_socket"].set_string_value(addresses.memory_socket);
  fields["operator_address"].set_string_value(addresses.operator_address);
  fields["metrics_address"].set_string_value(addresses.metrics_address);
  std::string json;
  // A struct of strings and numbers can always be written.
  static_cast<void>(google::protobuf::util::MessageToJsonString(object, &json));

  const std::string temporary = absl::StrCat(path, ".new");
  std::ofstream file(temporary, std::ios::trunc);
  file << json << "\n";
  file.close();
  if (!file || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("ready_file: can't write '", path, "': ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace holdfast
