#include "tests/fuzz/message_mutator.h"

#include <limits>

namespace holdfast {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 4;

}  // namespace

void MessageMutator::Mutate(Message& message) {
  const Descriptor& type = *message.GetDescriptor();
  if (type.field_count() == 0) return;
  const FieldDescriptor& field = *type.field(static_cast<int>(choices_.Below(type.field_count())));
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) {
    MutateRepeated(message, field);
  } else if (choices_.OneIn(6)) {
    reflection.ClearField(&message, &field);
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && reflection.HasField(message, &field)) {
    Mutate(*reflection.MutableMessage(&message, &field));
  } else {
    SetValue(message, field, 0);
  }
}

void MessageMutator::MutateRepeated(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  if (size == 0 || choices_.OneIn(4)) return SetValue(message, field, 0);
  const int index = static_cast<int>(choices_.Below(size));
  switch (choices_.Below(6)) {
    case 0:
      return reflection.RemoveLast(&message, &field);
    case 1:
      return reflection.SwapElements(&message, &field, 0, index);
    case 2:
      return reflection.ClearField(&message, &field);
    default:
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Message& element = *reflection.MutableRepeatedMessage(&message, &field, index);
        if (!choices_.OneIn(3)) return Mutate(element);
        reflection.AddMessage(&message, &field)->CopyFrom(reflection.GetRepeatedMessage(message, &field, index));
      } else {
        // A new last one takes the place of another.
        SetValue(message, field, 0);
        reflection.SwapElements(&message, &field, index, size);
        if (choices_.OneIn(2)) reflection.RemoveLast(&message, &field);
      }
  }
}

void MessageMutator::Fill(Message& message, int depth) {
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    for (uint64_t count = choices_.Below(field.is_repeated() ? 4 : 2); count > 0; --count) {
      SetValue(message, field, depth);
    }
  }
}

void MessageMutator::SetValue(Message& message, const FieldDescriptor& field, int depth) {
  const Reflection& reflection = *message.GetReflection();
  const bool add = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = static_cast<int32_t>(choices_.AnyNumber());
      return add ? reflection.AddInt32(&message, &field, value) : reflection.SetInt32(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      const auto value = static_cast<int64_t>(choices_.AnyNumber());
      return add ? reflection.AddInt64(&message, &field, value) : reflection.SetInt64(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      const auto value = static_cast<uint32_t>(choices_.AnyNumber());
      return add ? reflection.AddUInt32(&message, &field, value) : reflection.SetUInt32(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const uint64_t value = choices_.AnyNumber();
      return add ? reflection.AddUInt64(&message, &field, value) : reflection.SetUInt64(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return add ? reflection.AddDouble(&message, &field, Real()) : reflection.SetDouble(&message, &field, Real());
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const auto value = static_cast<float>(choices_.Below(1000));
      return add ? reflection.AddFloat(&message, &field, value) : reflection.SetFloat(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      const bool value = choices_.OneIn(2);
      return add ? reflection.AddBool(&message, &field, value) : reflection.SetBool(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto known = static_cast<uint64_t>(field.enum_type()->value_count());
      const auto value = static_cast<int>(choices_.OneIn(4) ? choices_.AnyNumber() : choices_.Below(known + 1));
      return add ? reflection.AddEnumValue(&message, &field, value) : reflection.SetEnumValue(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string value = Text(field.type() == FieldDescriptor::TYPE_BYTES);
      return add ? reflection.AddString(&message, &field, std::move(value))
                 : reflection.SetString(&message, &field, std::move(value));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      if (depth >= kMaxDepth) return;
      Message& value = add ? *reflection.AddMessage(&message, &field) : *reflection.MutableMessage(&message, &field);
      return Fill(value, depth + 1);
    }
  }
}

std::string MessageMutator::Text(bool is_bytes) {
  if (is_bytes) return choices_.Bytes(64);
  switch (choices_.Below(8)) {
    case 0:
      return "";
    case 1:
      return std::string(choices_.Below(3000), 'x');
    case 2:
      // Globs that could be slow to match.
      return std::string(choices_.Below(40), '*') + "a*a*a*b";
    case 3: {
      // ASCII of every kind: what is no UTF-8 does not get past protobuf.
      std::string text = choices_.Bytes(40);
      for (char& c : text) c = static_cast<char>(c & 0x7f);
      return text;
    }
    default:
      return words_.empty() ? "" : words_[choices_.Below(words_.size())];
  }
}

double MessageMutator::Real() {
  constexpr double kReals[] = {0,
                               -0.0,
                               0.5,
                               0.9999,
                               1,
                               -1,
                               1e-300,
                               1e300,
                               5e-324,
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
  return kReals[choices_.Below(std::size(kReals))];
}

}  // namespace holdfast
