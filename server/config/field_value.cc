#include "server/config/field_value.h"

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "server/config/closest_name.h"

namespace holdfast {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

bool SetNumber(const FieldDescriptor& field, const std::string& value, v1::DaemonConfig& config) {
  const Reflection& reflection = *config.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    uint32_t number = 0;
    const bool valid = absl::SimpleAtoi(value, &number);
    if (valid) reflection.SetUInt32(&config, &field, number);
    return valid;
  }
  uint64_t number = 0;
  const bool valid = absl::SimpleAtoi(value, &number);
  if (valid) reflection.SetUInt64(&config, &field, number);
  return valid;
}

bool SetEnum(const FieldDescriptor& field, const std::string& value, v1::DaemonConfig& config) {
  const EnumDescriptor& type = *field.enum_type();
  for (int i = 1; i < type.value_count(); ++i) {
    if (value != type.value(i)->name() && value != ShortEnumName(*type.value(i))) continue;
    config.GetReflection()->SetEnum(&config, &field, type.value(i));
    return true;
  }
  return false;
}

bool SetDuration(const FieldDescriptor& field, const std::string& value, v1::DaemonConfig& config) {
  absl::Duration duration;
  if (!absl::ParseDuration(value, &duration)) return false;
  if (duration == absl::InfiniteDuration() || duration == -absl::InfiniteDuration()) return false;
  google::protobuf::Duration message;
  message.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  config.GetReflection()->MutableMessage(&config, &field)->CopyFrom(message);
  return true;
}

std::string ValidFlagValues(const FieldDescriptor& field, const std::string& value) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM: {
      const std::vector<std::string> names = EnumValueNames(*field.enum_type(), EnumNames::kShort);
      return absl::StrCat("valid are ", absl::StrJoin(names, ", "), DidYouMean(value, names));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "a duration is valid, as 500ms, 20s or 1m30s";
    case FieldDescriptor::CPPTYPE_UINT32:
      return "a whole number from 0 to 4294967295 is valid";
    default:
      return "a whole number from 0 to 18446744073709551615 is valid";
  }
}

}  // namespace

std::vector<std::string> ConfigFieldNames() {
  std::vector<std::string> names;
  const google::protobuf::Descriptor* descriptor = v1::DaemonConfig::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) names.push_back(descriptor->field(i)->name());
  return names;
}

std::string ShortEnumName(const google::protobuf::EnumValueDescriptor& value) {
  // What all values of an enum begin with is its first one's name less UNSPECIFIED.
  const absl::string_view prefix = absl::StripSuffix(value.type()->value(0)->name(), "UNSPECIFIED");
  return absl::AsciiStrToLower(absl::StripPrefix(value.name(), prefix));
}

std::vector<std::string> EnumValueNames(const EnumDescriptor& type, EnumNames names) {
  std::vector<std::string> values;
  for (int i = 1; i < type.value_count(); ++i) {
    values.push_back(names == EnumNames::kShort ? ShortEnumName(*type.value(i)) : type.value(i)->name());
  }
  return values;
}

absl::Status SetConfigField(std::string_view name, const std::string& value, v1::DaemonConfig& config) {
  const FieldDescriptor* field = v1::DaemonConfig::descriptor()->FindFieldByName(std::string(name));
  if (field == nullptr) {
    std::vector<std::string> names = ConfigFieldNames();
    names.insert(names.end(), {"config", "check_config", "help", "version"});
    return absl::InvalidArgumentError(absl::StrCat("--", std::string(name), ": no such flag", DidYouMean(name, names),
                                                   " (the flags are ", absl::StrJoin(names, ", "), ")"));
  }
  bool valid = true;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      config.GetReflection()->SetString(&config, field, value);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      valid = SetEnum(*field, value, config);
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      valid = SetDuration(*field, value, config);
      break;
    default:
      valid = SetNumber(*field, value, config);
  }
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", field->name(), ": '", value, "'; ", ValidFlagValues(*field, value)));
}

}  // namespace holdfast
