#include "server/config/command_line.h"

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace holdfast {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

std::string FieldNames() {
  std::vector<std::string> names;
  const Descriptor* descriptor = v1::DaemonConfig::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) names.push_back(descriptor->field(i)->name());
  return absl::StrJoin(names, ", ");
}

// BACKEND_CPU of Backend → cpu: what all values of an enum begin with is its first value's name less UNSPECIFIED.
std::string ShortName(const EnumDescriptor& type, const std::string& name) {
  const std::string& first = type.value(0)->name();
  const std::string prefix(absl::StripSuffix(first, "UNSPECIFIED"));
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

std::string EnumNames(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) names.push_back(ShortName(type, type.value(i)->name()));
  return absl::StrJoin(names, ", ");
}

// What may stand for a field.
std::string ValidValues(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat(EnumNames(*field.enum_type()), " are valid");
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "a duration is valid, as 500ms, 20s or 1m30s";
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a number of 0 or more is valid";
    default:
      return "a text is valid";
  }
}

// Keeps the first error, with its line.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The field that the message of a text-format error is about, if it can be told.
const FieldDescriptor* MentionedField(const std::string& message) {
  const Descriptor* descriptor = v1::DaemonConfig::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (message.find(absl::StrCat("\"", descriptor->field(i)->name(), "\"")) != std::string::npos) {
      return descriptor->field(i);
    }
  }
  return nullptr;
}

absl::Status ReadConfigFile(const std::string& path, v1::DaemonConfig& config) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat("config: the file '", path, "' can't be read"));
  return ParseConfigText(path, text.str(), config);
}

}  // namespace

absl::Status ParseConfigText(const std::string& file, const std::string& text, v1::DaemonConfig& config) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, &config)) return absl::OkStatus();
  const FieldDescriptor* field = MentionedField(error.text());
  return absl::InvalidArgumentError(
      absl::StrCat(file, ":", error.text(), "; ",
                   field == nullptr ? absl::StrCat("the fields are ", FieldNames()) : ValidValues(*field)));
}

absl::Status SetConfigField(std::string_view name, const std::string& value, v1::DaemonConfig& config) {
  const FieldDescriptor* field = v1::DaemonConfig::descriptor()->FindFieldByName(std::string(name));
  if (field == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("--", std::string(name),
                                                   ": no such flag; the flags are config, help, "
                                                   "version, check_config, ",
                                                   FieldNames()));
  }
  const google::protobuf::Reflection& reflection = *config.GetReflection();
  bool valid = true;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.SetString(&config, field, value);
      break;
    case FieldDescriptor::CPPTYPE_UINT32: {
      uint32_t number = 0;
      valid = absl::SimpleAtoi(value, &number);
      reflection.SetUInt32(&config, field, number);
      break;
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t number = 0;
      valid = absl::SimpleAtoi(value, &number);
      reflection.SetUInt64(&config, field, number);
      break;
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumDescriptor& type = *field->enum_type();
      valid = false;
      // The first one is UNSPECIFIED, which is said by leaving the field out.
      for (int i = 1; i < type.value_count(); ++i) {
        const std::string& whole = type.value(i)->name();
        if (value != whole && value != ShortName(type, whole)) continue;
        reflection.SetEnum(&config, field, type.value(i));
        valid = true;
      }
      break;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      absl::Duration duration;
      valid = absl::ParseDuration(value, &duration) && duration != absl::InfiniteDuration() &&
              duration != -absl::InfiniteDuration();
      google::protobuf::Duration message;
      message.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
      message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
      reflection.MutableMessage(&config, field)->CopyFrom(message);
      break;
    }
    default:
      valid = false;
  }
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", field->name(), ": '", value, "'; ", ValidValues(*field)));
}

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string config_file;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view argument = arguments[i];
    if (!argument.starts_with("--")) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", arguments[i], "': holdfastd takes flags only, as --num_ranks=4; see --help"));
    }
    argument.remove_prefix(2);
    const size_t equals = argument.find('=');
    const std::string name(argument.substr(0, equals));
    if (equals == std::string_view::npos && (name == "help" || name == "version" || name == "check_config")) {
      (name == "help" ? line.help : name == "version" ? line.version : line.check_config) = true;
      continue;
    }
    std::string value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (++i < arguments.size()) {
      value = arguments[i];
    } else {
      return absl::InvalidArgumentError(absl::StrCat("--", name, ": a value is required, as --", name, "=VALUE"));
    }
    if (name == "config") {
      config_file = value;
    } else {
      fields.emplace_back(name, value);
    }
  }
  if (line.help || line.version) return line;
  if (!config_file.empty()) {
    if (absl::Status status = ReadConfigFile(config_file, line.config); !status.ok()) return status;
  }
  for (const auto& [name, value] : fields) {
    if (absl::Status status = SetConfigField(name, value, line.config); !status.ok()) return status;
  }
  return line;
}

}  // namespace holdfast
