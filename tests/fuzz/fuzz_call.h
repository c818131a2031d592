// One unary call of a fuzzer, under way or answered.
#ifndef HOLDFAST_TESTS_FUZZ_FUZZ_CALL_H_
#define HOLDFAST_TESTS_FUZZ_FUZZ_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace holdfast {

// The methods that take one message and answer one, and what they take.
struct FuzzMethod {
  // "/holdfast.v1.ParameterService/Gather".
  std::string path;
  const google::protobuf::Message* request;
};

// Bytes to a method. Must not be destroyed before it has been answered.
class FuzzCall {
 public:
  // No deadline for 0.
  FuzzCall(const std::shared_ptr<grpc::Channel>& channel, std::string path, const std::string& bytes,
           absl::Duration deadline);
  FuzzCall(const FuzzCall&) = delete;
  FuzzCall& operator=(const FuzzCall&) = delete;

  const std::string& path() const { return path_; }
  void Cancel() { context_.TryCancel(); }
  // False if it is not answered within `limit`.
  bool Await(absl::Duration limit) { return answered_.WaitForNotificationWithTimeout(limit); }
  // Once it is answered.
  const grpc::Status& status() const { return status_; }
  // False if the answer is no such message.
  bool ReadAnswer(google::protobuf::Message& message) const;

 private:
  const std::string path_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  absl::Notification answered_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_FUZZ_FUZZ_CALL_H_
