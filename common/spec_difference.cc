#include "common/spec_difference.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

// Keeps the first difference that it is told of.
class FirstReporter : public MessageDifferencer::Reporter {
 public:
  const std::string& text() const { return text_; }

  void ReportAdded(const Message&, const Message& asked,
                   const std::vector<MessageDifferencer::SpecificField>& path) override {
    Report(path, "none", Value(asked, path.back(), path.back().new_index));
  }
  void ReportDeleted(const Message& registered, const Message&,
                     const std::vector<MessageDifferencer::SpecificField>& path) override {
    Report(path, Value(registered, path.back(), path.back().index), "none");
  }
  void ReportModified(const Message& registered, const Message& asked,
                      const std::vector<MessageDifferencer::SpecificField>& path) override {
    Report(path, Value(registered, path.back(), path.back().index), Value(asked, path.back(), path.back().new_index));
  }

 private:
  // `parent` holds the field itself.
  static std::string Value(const Message& parent, const MessageDifferencer::SpecificField& field, int index) {
    if (field.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return "one";
    std::string value;
    TextFormat::PrintFieldValueToString(parent, field.field, field.field->is_repeated() ? index : -1, &value);
    return value;
  }
  void Report(const std::vector<MessageDifferencer::SpecificField>& path, const std::string& registered,
              const std::string& asked) {
    if (!text_.empty()) return;
    std::string name;
    for (const MessageDifferencer::SpecificField& field : path) {
      absl::StrAppend(&name, name.empty() ? "" : ".", field.field->name());
      if (field.field->is_repeated())
        absl::StrAppend(&name, "[", field.index >= 0 ? field.index : field.new_index, "]");
    }
    text_ = absl::StrCat(name, ": registered ", registered, ", asked ", asked);
  }

  std::string text_;
};

}  // namespace

std::string FirstDifference(const v1::ModelSpec& registered, const v1::ModelSpec& asked) {
  FirstReporter reporter;
  MessageDifferencer differencer;
  differencer.ReportDifferencesTo(&reporter);
  return differencer.Compare(registered, asked) ? "" : reporter.text();
}

}  // namespace holdfast
