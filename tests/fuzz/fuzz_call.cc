#include "tests/fuzz/fuzz_call.h"

#include <vector>

#include "absl/time/clock.h"

namespace holdfast {

FuzzCall::FuzzCall(const std::shared_ptr<grpc::Channel>& channel, std::string path, const std::string& bytes,
                   absl::Duration deadline)
    : path_(std::move(path)), stub_(channel) {
  const grpc::Slice slice(bytes);
  request_ = grpc::ByteBuffer(&slice, 1);
  if (deadline > absl::ZeroDuration()) context_.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  stub_.UnaryCall(&context_, path_, grpc::StubOptions(), &request_, &response_, [this](grpc::Status status) {
    status_ = std::move(status);
    answered_.Notify();
  });
}

bool FuzzCall::ReadAnswer(google::protobuf::Message& message) const {
  std::vector<grpc::Slice> slices;
  if (!response_.Valid() || !response_.Dump(&slices).ok()) return false;
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return message.ParseFromString(bytes);
}

}  // namespace holdfast
