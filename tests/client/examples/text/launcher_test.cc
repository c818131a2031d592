#include "client/examples/text/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "client/examples/text/model_spec.h"
#include "tests/client/examples/text/small_training.h"
#include "tests/integration/test_cluster.h"

namespace text {
namespace {

using testing::HasSubstr;

class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    auto cluster = holdfast::TestCluster::Start({.num_ranks = kNumRanks});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  absl::Status Run(const LaunchOptions& options) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), &std::fclose);
    ProgressLine progress(out.get(), kNumSteps);
    return Launch(options, progress).status();
  }

  LaunchOptions Options() const { return SmallLaunch(cluster_->worker_socket()); }

  std::unique_ptr<holdfast::TestCluster> cluster_;
};

TEST_F(LauncherTest, Launch_DaemonHasOtherRanks_SaysHowMany) {
  LaunchOptions options = Options();
  options.num_ranks = 3;
  const absl::Status status = Run(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "the daemon has 4 ranks; start 4 workers (--ranks=4)");
}

TEST_F(LauncherTest, Launch_ModelIsThereAlready_IsLeftAlone) {
  const auto data = TextData::Load(kGpl);
  ASSERT_TRUE(data.ok());
  ASSERT_TRUE(cluster_->RegisterModel(MakeModelSpec(SmallTraining(*data), {})).ok());
  const absl::Status status = Run(Options());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("already has a model 'text', at step 0"));
}

TEST_F(LauncherTest, Launch_WorkerFails_IsNamedWithItsRank) {
  LaunchOptions options = Options();
  options.executable = "/bin/false";
  const absl::Status status = Run(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), testing::ContainsRegex("rank [0-3]: worker process .* exited with 1"));
}

TEST_F(LauncherTest, Launch_SuccessorFindsAnotherStep_KillWasNotSurvived) {
  LaunchOptions options = Options();
  options.kill_at_step = 5;
  // The workers are real, but the second one of rank 3 says that it has to begin from nothing.
  const std::string script = R"(
      for last; do :; done
      if [ "$last" = --rank=3 ]; then
        if [ -e "$MARK" ]; then echo "attached 3 0 2"; exit 0; fi
        : >"$MARK"
      fi
      exec "$PROGRAM" "$@")";
  options.executable = "/bin/sh";
  options.worker_arguments.insert(
      options.worker_arguments.begin(),
      {"-c", "MARK=" + cluster_->directory().File("mark") + "; PROGRAM=" + HOLDFAST_TEXT + ";" + script, "worker"});
  const absl::Status status = Run(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(
      std::string(status.message()),
      testing::ContainsRegex("the kill was not survived: rank 3 was at step [0-9]+, epoch 1, and its new worker "
                             "found step 0, epoch 2"));
}

}  // namespace
}  // namespace text
