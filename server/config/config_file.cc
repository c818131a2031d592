#include "server/config/config_file.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <cerrno>
#include <compare>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/config/closest_name.h"
#include "server/config/field_value.h"

namespace holdfast {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;
using google::protobuf::io::Tokenizer;

// Counted from 0, as protobuf does.
struct Position {
  int line = 0;
  int column = 0;

  friend auto operator<=>(const Position&, const Position&) = default;
};

// Keeps the first error: what follows is often its consequence.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!message_.empty()) return;
    position_ = {line, column};
    message_ = message;
  }
  const Position& position() const { return position_; }
  const std::string& message() const { return message_; }

 private:
  Position position_;
  std::string message_;
};

struct Word {
  Position position;
  std::string text;
};

// What the words before an error tell of it.
struct Surroundings {
  // The field of DaemonConfig that was read last.
  Word field;
  Word last;
  // The parser was between two fields.
  bool between_fields = true;
};

Surroundings LookBefore(const std::string& text, const Position& error) {
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  // The parser has reported it.
  FirstError ignored;
  Tokenizer tokens(&input, &ignored);
  tokens.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  Surroundings found;
  int depth = 0;
  while (tokens.Next() && Position{tokens.current().line, tokens.current().column} < error) {
    const Tokenizer::Token& token = tokens.current();
    if (token.text == "{" || token.text == "<") ++depth;
    if (token.text == "}" || token.text == ">") --depth;
    const bool is_value = found.last.text == ":";
    found.last = {.position = {token.line, token.column}, .text = token.text};
    found.between_fields = depth == 0 && (is_value || token.type != Tokenizer::TYPE_IDENTIFIER) && token.text != ":";
    if (depth == 0 && token.type == Tokenizer::TYPE_IDENTIFIER && !is_value) found.field = found.last;
  }
  return found;
}

std::string ValidValues(const FieldDescriptor& field, const std::string& value) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM: {
      const std::vector<std::string> whole = EnumValueNames(*field.enum_type(), EnumNames::kWhole);
      const std::vector<std::string> brief = EnumValueNames(*field.enum_type(), EnumNames::kShort);
      // A flag's name in the file is a likely slip.
      std::string meant = DidYouMean(value, whole);
      for (size_t i = 0; i < brief.size(); ++i) {
        if (value == brief[i]) meant = absl::StrCat("; did you mean ", whole[i], "?");
      }
      return absl::StrCat("valid are ", absl::StrJoin(whole, ", "), meant);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "a duration is valid, as { seconds: 30 } or { nanos: 500000000 }";
    case FieldDescriptor::CPPTYPE_UINT32:
      return "a whole number from 0 to 4294967295 is valid";
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number from 0 to 18446744073709551615 is valid";
    default:
      return "a text in quotes is valid";
  }
}

absl::Status Explain(const std::string& file, const std::string& text, const FirstError& error) {
  const Surroundings around = LookBefore(text, error.position());
  const std::string message(absl::StripSuffix(error.message(), "."));
  // The parser stands at what it did not expect, and behind what it did not know.
  const bool unexpected = absl::StartsWith(message, "Expected") || absl::StartsWith(message, "Unexpected") ||
                          absl::StartsWith(message, "Integer");
  const Position& position = unexpected ? error.position() : around.last.position;
  const std::string place = absl::StrCat(file, ":", position.line + 1, ":", position.column + 1, ": ");
  const FieldDescriptor* field = v1::DaemonConfig::descriptor()->FindFieldByName(around.field.text);
  const bool field_is_over = around.between_fields && absl::StartsWith(message, "Expected identifier");
  if (field != nullptr && !field_is_over) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, field->name(), ": ", message, "; ", ValidValues(*field, around.last.text)));
  }
  const std::vector<std::string> names = ConfigFieldNames();
  const std::string all = absl::StrCat(" (the fields are ", absl::StrJoin(names, ", "), ")");
  if (!absl::StrContains(message, "has no field named")) return absl::InvalidArgumentError(place + message + all);
  return absl::InvalidArgumentError(
      absl::StrCat(place, around.field.text, ": no such field", DidYouMean(around.field.text, names), all));
}

}  // namespace

absl::Status ParseConfigText(const std::string& file, const std::string& text, v1::DaemonConfig& config,
                             FieldOrigins& origins) {
  FirstError error;
  TextFormat::ParseInfoTree places;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&places);
  if (!parser.ParseFromString(text, &config)) return Explain(file, text, error);
  const google::protobuf::Descriptor* descriptor = v1::DaemonConfig::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const TextFormat::ParseLocation place = places.GetLocation(descriptor->field(i), -1);
    if (place.line < 0) continue;
    origins.Set(descriptor->field(i)->name(), absl::StrCat(file, ":", place.line + 1, ":", place.column + 1, ": "));
  }
  return absl::OkStatus();
}

absl::Status ReadConfigFile(const std::string& path, v1::DaemonConfig& config, FieldOrigins& origins) {
  const auto unreadable = [&](const char* reason) {
    return absl::NotFoundError(absl::StrCat("the configuration file '", path, "' can't be read: ", reason));
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return unreadable("it is a directory");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // An empty file sets failbit on `text`, and is a configuration like any other.
  text << file.rdbuf();
  if (!file.is_open() || file.bad()) return unreadable(std::strerror(errno));
  return ParseConfigText(path, text.str(), config, origins);
}

}  // namespace holdfast
