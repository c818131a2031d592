#include "server/rpc/metrics_interceptor.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "holdfast/v1/admin_service.grpc.pb.h"
#include "holdfast/v1/checkpoint_service.grpc.pb.h"
#include "server/logging/logger.h"

namespace holdfast {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// One plain unary call that works, and one that fails.
class Admin final : public v1::AdminService::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*, v1::GetStatusResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status DropModel(grpc::ServerContext*, const v1::DropModelRequest* request, v1::DropModelResponse*) override {
    return {grpc::StatusCode::NOT_FOUND, request->model()};
  }
};

// A callback unary call, and a callback stream that goes on until it is cancelled.
class Checkpoint final : public v1::CheckpointService::WithCallbackMethod_SaveCheckpoint<
                             v1::CheckpointService::WithCallbackMethod_WatchOperation<v1::CheckpointService::Service>> {
 public:
  grpc::ServerUnaryReactor* SaveCheckpoint(grpc::CallbackServerContext* context, const v1::SaveCheckpointRequest*,
                                           v1::SaveCheckpointResponse*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish({grpc::StatusCode::ABORTED, "rank 3 died"});
    return reactor;
  }
  grpc::ServerWriteReactor<v1::WatchOperationResponse>* WatchOperation(grpc::CallbackServerContext*,
                                                                       const v1::WatchOperationRequest*) override {
    return new Stream(stream_ended_);
  }
  void WaitForEndOfStream() { stream_ended_.WaitForNotification(); }

 private:
  class Stream final : public grpc::ServerWriteReactor<v1::WatchOperationResponse> {
   public:
    explicit Stream(absl::Notification& ended) : ended_(ended) { StartWrite(&message_); }
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override {
      ended_.Notify();
      delete this;
    }

   private:
    absl::Notification& ended_;
    v1::WatchOperationResponse message_;
  };

  absl::Notification stream_ended_;
};

class MetricsInterceptorTest : public testing::Test {
 protected:
  MetricsInterceptorTest() {
    auto logger =
        CreateLogger(v1::LOG_FORMAT_TEXT, v1::LOG_LEVEL_DEBUG, std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
    interceptors.push_back(std::make_unique<MetricsInterceptorFactory>(metrics_, logger));
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&admin_);
    builder.RegisterService(&checkpoint_);
    builder.experimental().SetInterceptorCreators(std::move(interceptors));
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
  }

  std::vector<std::string> Lines() const {
    return absl::StrSplit(prometheus::TextSerializer().Serialize(metrics_.registry()->Collect()), '\n');
  }
  static std::string Count(const std::string& method, const std::string& code, int count) {
    return absl::StrCat("holdfast_rpcs_total{code=\"", code, "\",method=\"holdfast.v1.", method, "\"} ", count);
  }

  // The server last: it uses all others.
  std::ostringstream log_;
  Metrics metrics_;
  Admin admin_;
  Checkpoint checkpoint_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(MetricsInterceptorTest, PlainCallsAreCountedWhenTheAnswerIsThere) {
  const auto stub = v1::AdminService::NewStub(channel_);
  for (int i = 1; i <= 3; ++i) {
    grpc::ClientContext context;
    v1::GetStatusResponse response;
    ASSERT_TRUE(stub->GetStatus(&context, {}, &response).ok());
    EXPECT_THAT(Lines(), Contains(Count("AdminService/GetStatus", "OK", i)));
  }
  grpc::ClientContext context;
  v1::DropModelResponse response;
  EXPECT_EQ(stub->DropModel(&context, {}, &response).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Lines(), Contains(Count("AdminService/DropModel", "NOT_FOUND", 1)));
  EXPECT_THAT(Lines(),
              Contains(R"(holdfast_rpc_duration_seconds_count{method="holdfast.v1.AdminService/GetStatus"} 3)"));
}

TEST_F(MetricsInterceptorTest, UnimplementedCallsAreCounted) {
  grpc::ClientContext context;
  v1::DrainResponse response;
  EXPECT_EQ(v1::AdminService::NewStub(channel_)->Drain(&context, {}, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(Lines(), Contains(Count("AdminService/Drain", "UNIMPLEMENTED", 1)));
}

TEST_F(MetricsInterceptorTest, CallbackCallsAreCounted) {
  grpc::ClientContext context;
  v1::SaveCheckpointResponse response;
  EXPECT_EQ(v1::CheckpointService::NewStub(channel_)->SaveCheckpoint(&context, {}, &response).error_code(),
            grpc::StatusCode::ABORTED);
  EXPECT_THAT(Lines(), Contains(Count("CheckpointService/SaveCheckpoint", "ABORTED", 1)));
}

TEST_F(MetricsInterceptorTest, StreamIsCountedAtItsEnd) {
  grpc::ClientContext context;
  const auto stub = v1::CheckpointService::NewStub(channel_);
  auto reader = stub->WatchOperation(&context, {});
  v1::WatchOperationResponse message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_THAT(Lines(), testing::Not(Contains(Count("CheckpointService/WatchOperation", "CANCELLED", 1))));
  context.TryCancel();
  reader->Finish();
  checkpoint_.WaitForEndOfStream();
  EXPECT_THAT(Lines(), Contains(Count("CheckpointService/WatchOperation", "CANCELLED", 1)));
}

TEST_F(MetricsInterceptorTest, EveryCallIsLoggedAtDebug) {
  grpc::ClientContext context;
  v1::DropModelResponse response;
  v1::AdminService::NewStub(channel_)->DropModel(&context, {}, &response);
  server_->Shutdown();
  EXPECT_THAT(log_.str(), HasSubstr(" D rpc method=holdfast.v1.AdminService/DropModel code=NOT_FOUND microseconds="));
}

}  // namespace
}  // namespace holdfast
