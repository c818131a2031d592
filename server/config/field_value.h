// The fields of DaemonConfig by name, through protobuf's reflection: a new field needs nothing here.
#ifndef HOLDFAST_SERVER_CONFIG_FIELD_VALUE_H_
#define HOLDFAST_SERVER_CONFIG_FIELD_VALUE_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "holdfast/v1/config.pb.h"

namespace holdfast {

// In the order of the message.
std::vector<std::string> ConfigFieldNames();

// Sets one field from the text of a flag: enums by their short name ("cpu") or the whole one, durations as "1m30s".
// INVALID_ARGUMENT names the flag, the value and what is valid.
absl::Status SetConfigField(std::string_view name, const std::string& value, v1::DaemonConfig& config);

// BACKEND_CPU → cpu.
std::string ShortEnumName(const google::protobuf::EnumValueDescriptor& value);

// "auto, cpu, cuda"; the first one, UNSPECIFIED, is said by leaving the field out. Whole: "BACKEND_AUTO, ...".
enum class EnumNames { kShort, kWhole };
std::vector<std::string> EnumValueNames(const google::protobuf::EnumDescriptor& type, EnumNames names);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_FIELD_VALUE_H_
