#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"

namespace holdfast {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public testing::Test {
 protected:
  std::string Text() const { return prometheus::TextSerializer().Serialize(metrics_.registry()->Collect()); }
  std::vector<std::string> Lines() const { return absl::StrSplit(Text(), '\n'); }

  Metrics metrics_;
};

TEST_F(MetricsTest, StartsWithWhatIsKnown) {
  metrics_.SetBuildInfo("0.1.0", "cpu");
  EXPECT_THAT(Lines(), Contains(R"(holdfast_build_info{backend="cpu",version="0.1.0"} 1)"));
  EXPECT_THAT(Lines(), Contains("holdfast_draining 0"));
  EXPECT_THAT(Lines(), Contains("holdfast_gather_hits_total 0"));
  EXPECT_THAT(Lines(), Contains("holdfast_gather_misses_total 0"));
  EXPECT_THAT(Lines(), Contains("holdfast_pulled_bytes_total 0"));
}

TEST_F(MetricsTest, RpcsByMethodAndCode) {
  const std::string gather = "holdfast.v1.ParameterService/Gather";
  metrics_.RpcDone(gather, absl::StatusCode::kOk, absl::Milliseconds(2));
  metrics_.RpcDone(gather, absl::StatusCode::kOk, absl::Milliseconds(2));
  metrics_.RpcDone(gather, absl::StatusCode::kAborted, absl::Seconds(90));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_rpcs_total{code="OK",method="holdfast.v1.ParameterService/Gather"} 2)"));
  EXPECT_THAT(Lines(),
              Contains(R"(holdfast_rpcs_total{code="ABORTED",method="holdfast.v1.ParameterService/Gather"} 1)"));
  const std::string bucket = R"(holdfast_rpc_duration_seconds_bucket{method="holdfast.v1.ParameterService/Gather",le=)";
  EXPECT_THAT(Lines(), Contains(bucket + "\"0.001\"} 0"));
  EXPECT_THAT(Lines(), Contains(bucket + "\"0.0025\"} 2"));
  EXPECT_THAT(Lines(), Contains(bucket + "\"60\"} 2"));
  EXPECT_THAT(Lines(), Contains(bucket + "\"+Inf\"} 3"));
}

TEST_F(MetricsTest, Collectives) {
  metrics_.CollectiveDone("all_gather", 4096, absl::Milliseconds(3));
  metrics_.CollectiveDone("all_gather", 1000, absl::Milliseconds(3));
  metrics_.EmaDone(77, absl::Milliseconds(1));
  metrics_.Gathered(true);
  metrics_.Gathered(false);
  metrics_.Gathered(false);
  metrics_.Pulled(12);
  metrics_.Aborted("lease_lost");
  EXPECT_THAT(Lines(), Contains(R"(holdfast_collective_bytes_total{kind="all_gather"} 5096)"));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_collective_duration_seconds_count{kind="all_gather"} 2)"));
  EXPECT_THAT(Lines(), Contains("holdfast_ema_bytes_total 77"));
  EXPECT_THAT(Lines(), Contains("holdfast_ema_duration_seconds_count 1"));
  EXPECT_THAT(Lines(), Contains("holdfast_gather_hits_total 1"));
  EXPECT_THAT(Lines(), Contains("holdfast_gather_misses_total 2"));
  EXPECT_THAT(Lines(), Contains("holdfast_pulled_bytes_total 12"));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_aborts_total{reason="lease_lost"} 1)"));
}

TEST_F(MetricsTest, DrainingComesAndGoes) {
  metrics_.SetDraining(true);
  EXPECT_THAT(Lines(), Contains("holdfast_draining 1"));
  metrics_.SetDraining(false);
  EXPECT_THAT(Lines(), Contains("holdfast_draining 0"));
}

TEST_F(MetricsTest, DroppedModelLeavesNoSeries) {
  for (const char* model : {"demo", "other"}) {
    metrics_.AddModel(model);
    metrics_.SetDeviceBytes(model, "parameters", 8192);
    metrics_.SetPosition(model, 7, 2, true);
    metrics_.SetPosition(model, 8, 3, false);
    metrics_.SetEmaLag(model, "default", 5);
    metrics_.SetLeases(model, "held", 4);
  }
  EXPECT_THAT(Lines(), Contains(R"(holdfast_device_bytes{model="demo",purpose="parameters"} 8192)"));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_step{model="demo"} 8)"));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_epoch{model="demo"} 3)"));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_torn{model="demo"} 0)"));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_ema_lag_steps{ema="default",model="demo"} 5)"));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_leases{model="demo",state="held"} 4)"));

  metrics_.DropModel("demo");
  EXPECT_THAT(Text(), Not(HasSubstr("demo")));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_leases{model="other",state="held"} 4)"));

  // What comes late does not bring them back; a new registration does.
  metrics_.SetPosition("demo", 9, 3, false);
  EXPECT_THAT(Text(), Not(HasSubstr("demo")));
  metrics_.AddModel("demo");
  metrics_.SetPosition("demo", 1, 1, false);
  EXPECT_THAT(Lines(), Contains(R"(holdfast_step{model="demo"} 1)"));
}

TEST_F(MetricsTest, NothingIsLostBetweenThreads) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 1000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      const std::string model = "model" + std::to_string(i);
      for (int call = 0; call < kCalls; ++call) {
        metrics_.RpcDone("service/Method", absl::StatusCode::kOk, absl::Milliseconds(1));
        metrics_.CollectiveDone("all_gather", 1, absl::Milliseconds(1));
        metrics_.AddModel(model);
        metrics_.SetPosition(model, static_cast<uint64_t>(call), 1, false);
        metrics_.DropModel(model);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Lines(), Contains(R"(holdfast_rpcs_total{code="OK",method="service/Method"} 4000)"));
  EXPECT_THAT(Lines(), Contains(R"(holdfast_collective_bytes_total{kind="all_gather"} 4000)"));
  EXPECT_THAT(Text(), Not(HasSubstr("model=")));
}

}  // namespace
}  // namespace holdfast
