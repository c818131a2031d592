// Changes any protobuf message at random.
#ifndef HOLDFAST_TESTS_FUZZ_MESSAGE_MUTATOR_H_
#define HOLDFAST_TESTS_FUZZ_MESSAGE_MUTATOR_H_

#include <google/protobuf/message.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/choices.h"

namespace holdfast {

// `words` are texts that mean something to the receiver (names of models and units); they are taken now and then.
class MessageMutator {
 public:
  // `choices` must outlive it.
  MessageMutator(Choices& choices, std::vector<std::string> words) : choices_(choices), words_(std::move(words)) {}

  // Changes one field, at any depth: sets, clears, adds, removes, doubles, swaps.
  void Mutate(google::protobuf::Message& message);
  // Fills it with anything that the message's type allows.
  void Fill(google::protobuf::Message& message, int depth = 0);

 private:
  void SetValue(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field, int depth);
  void MutateRepeated(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field);
  std::string Text(bool is_bytes);
  double Real();

  Choices& choices_;
  const std::vector<std::string> words_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_FUZZ_MESSAGE_MUTATOR_H_
