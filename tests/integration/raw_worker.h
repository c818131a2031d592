// A worker made of bare RPCs, which makes no check of its own.
#ifndef HOLDFAST_TESTS_INTEGRATION_RAW_WORKER_H_
#define HOLDFAST_TESTS_INTEGRATION_RAW_WORKER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "holdfast/v1/parameter_service.grpc.pb.h"

namespace holdfast {

using ParameterStub = v1::ParameterService::Stub;

// Makes one unary call and waits for the answer, at most a minute.
template <typename Request, typename Response>
grpc::Status CallOnce(ParameterStub& stub,
                      grpc::Status (ParameterStub::*method)(grpc::ClientContext*, const Request&, Response*),
                      const Request& request, Response* response = nullptr) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  Response ignored;
  return (stub.*method)(&context, request, response != nullptr ? response : &ignored);
}

// Holds a lease as long as it lives; maps no memory. Used by one thread.
class RawWorker {
 public:
  // `stub` must outlive it. Attaches; status() says whether that was granted.
  RawWorker(ParameterStub& stub, v1::AttachRequest request);
  // Ends the lease; the daemon learns of it a moment later.
  ~RawWorker();
  RawWorker(const RawWorker&) = delete;
  RawWorker& operator=(const RawWorker&) = delete;

  const std::string& model() const { return request_.model(); }
  uint32_t rank() const { return request_.rank(); }
  const grpc::Status& status() const { return status_; }
  const v1::Attached& attached() const { return attached_; }
  const v1::ModelState& state() const { return state_; }

  // The header that a call of this worker has to have.
  v1::CallHeader Header(uint64_t sequence = 0) const;
  grpc::Status Rejoin();
  // The call in a thread of its own.
  template <typename Request, typename Response>
  std::future<grpc::Status> Start(grpc::Status (ParameterStub::*method)(grpc::ClientContext*, const Request&,
                                                                        Response*),
                                  Request request) {
    return std::async(std::launch::async,
                      [this, method, request = std::move(request)] { return CallOnce(stub_, method, request); });
  }

 private:
  ParameterStub& stub_;
  const v1::AttachRequest request_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::AttachResponse>> reader_;
  grpc::Status status_;
  v1::Attached attached_;
  v1::ModelState state_;
};

v1::AttachRequest AttachRequestOf(const std::string& model, uint32_t rank);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_RAW_WORKER_H_
