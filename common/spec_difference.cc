#include "common/spec_difference.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/quoted.h"

namespace holdfast {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;
using Path = std::vector<MessageDifferencer::SpecificField>;

constexpr char kNone[] = "none";
// Of a field that this build does not know: a later client's.
constexpr char kUnknown[] = "some value";

// The oneof of the field that `path` ends in; null if it is in none.
const OneofDescriptor* OneofOf(const Path& path) {
  const FieldDescriptor* field = path.back().field;
  return field == nullptr ? nullptr : field->real_containing_oneof();
}

// Which field of the oneof is set.
std::string CaseOf(const Message& parent, const OneofDescriptor& oneof) {
  const FieldDescriptor* set = parent.GetReflection()->GetOneofFieldDescriptor(parent, &oneof);
  return set == nullptr ? kNone : set->name();
}

// The name that a unit, a parameter or a copy has; "one" for a message that has none.
std::string NameOf(const Message& message) {
  const FieldDescriptor* name = message.GetDescriptor()->FindFieldByName("name");
  if (name == nullptr || name->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return "one";
  return absl::StrCat("\"", Shortened(message.GetReflection()->GetString(message, name)), "\"");
}

// The value of `field` in the message that holds it; `index` counts in a list.
std::string ValueOf(const Message& parent, const FieldDescriptor* field, int index) {
  if (field == nullptr) return kUnknown;
  const Reflection& reflection = *parent.GetReflection();
  const bool is_list = field->is_repeated();
  if (is_list && index >= reflection.FieldSize(parent, field)) return kNone;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (is_list) return NameOf(reflection.GetRepeatedMessage(parent, field, index));
    return reflection.HasField(parent, field) ? NameOf(reflection.GetMessage(parent, field)) : kNone;
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const std::string text =
        is_list ? reflection.GetRepeatedString(parent, field, index) : reflection.GetString(parent, field);
    return absl::StrCat("\"", Shortened(text), "\"");
  }
  std::string value;
  TextFormat::PrintFieldValueToString(parent, field, is_list ? index : -1, &value);
  return value;
}

int IndexOf(const MessageDifferencer::SpecificField& part) { return part.index >= 0 ? part.index : part.new_index; }

std::string NameOf(const Path& path) {
  std::string name;
  for (const MessageDifferencer::SpecificField& part : path) {
    const bool is_last = &part == &path.back();
    absl::StrAppend(&name, name.empty() ? "" : ".");
    if (part.field == nullptr) {
      absl::StrAppend(&name, "(field ", part.unknown_field_number, ", which this version does not know)");
      continue;
    }
    const OneofDescriptor* oneof = is_last ? OneofOf(path) : nullptr;
    absl::StrAppend(&name, oneof == nullptr ? part.field->name() : oneof->name());
    if (part.field->is_repeated()) absl::StrAppend(&name, "[", IndexOf(part), "]");
  }
  return name;
}

std::string FirstDifferenceOf(const Message& registered, const Message& asked);

// Keeps the first difference that it is told of. Each report comes with the two messages that hold the field.
class FirstReporter : public MessageDifferencer::Reporter {
 public:
  const std::string& text() const { return text_; }

  void ReportAdded(const Message& registered, const Message& asked, const Path& path) override {
    if (path.back().field == nullptr) return Report(path, kNone, kUnknown);
    ReportPresence(registered, asked, path);
  }
  void ReportDeleted(const Message& registered, const Message& asked, const Path& path) override {
    if (path.back().field == nullptr) return Report(path, kUnknown, kNone);
    ReportPresence(registered, asked, path);
  }
  void ReportModified(const Message& registered, const Message& asked, const Path& path) override {
    Report(path, ValueOf(registered, path.back().field, IndexOf(path.back())),
           ValueOf(asked, path.back().field, IndexOf(path.back())));
  }

 private:
  // Only one of the two has the field, and this build knows it.
  void ReportPresence(const Message& registered, const Message& asked, const Path& path) {
    const FieldDescriptor* field = path.back().field;
    const OneofDescriptor* oneof = OneofOf(path);
    if (oneof != nullptr) return Report(path, CaseOf(registered, *oneof), CaseOf(asked, *oneof));
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      const std::string inside = FirstDifferenceOf(registered.GetReflection()->GetMessage(registered, field),
                                                   asked.GetReflection()->GetMessage(asked, field));
      if (!inside.empty() && text_.empty()) text_ = absl::StrCat(NameOf(path), ".", inside);
    }
    Report(path, ValueOf(registered, field, IndexOf(path.back())), ValueOf(asked, field, IndexOf(path.back())));
  }
  void Report(const Path& path, const std::string& registered, const std::string& asked) {
    if (text_.empty()) text_ = absl::StrCat(NameOf(path), ": registered ", registered, ", asked ", asked);
  }

  std::string text_;
};

std::string FirstDifferenceOf(const Message& registered, const Message& asked) {
  FirstReporter reporter;
  MessageDifferencer differencer;
  differencer.ReportDifferencesTo(&reporter);
  return differencer.Compare(registered, asked) ? "" : reporter.text();
}

}  // namespace

std::string FirstDifference(const v1::ModelSpec& registered, const v1::ModelSpec& asked) {
  return FirstDifferenceOf(registered, asked);
}

}  // namespace holdfast
