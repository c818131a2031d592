// holdfast_text as a whole, as the quickstart runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/client/examples/text/small_training.h"
#include "tests/integration/child_process.h"
#include "tests/integration/test_cluster.h"

namespace text {
namespace {

using testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    auto cluster = holdfast::TestCluster::Start({.num_ranks = kNumRanks});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  std::string File(const std::string& name) const { return cluster_->directory().File(name); }

  Outcome Run(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = SmallTrainingFlags(cluster_->worker_socket());
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    auto program = holdfast::ChildProcess::Start(
        {.executable = HOLDFAST_TEXT, .arguments = arguments, .error_file = File("errors")});
    if (!program.ok()) return {.exit_code = -1, .output = "", .errors = std::string(program.status().message())};
    const absl::Time deadline = absl::Now() + absl::Minutes(4);
    Outcome outcome;
    while (std::optional<std::string> line = (*program)->ReadLine(deadline)) outcome.output += *line + "\n";
    if (const auto end = (*program)->Wait(deadline)) outcome.exit_code = end->exit_code;
    outcome.errors = holdfast::ReadFile(File("errors"));
    return outcome;
  }

  std::unique_ptr<holdfast::TestCluster> cluster_;
};

TEST_F(ProgramTest, Default_SurvivesAKill_WritesTextAndCurve) {
  const Outcome outcome = Run({"--svg=" + File("loss.svg")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.errors, "");
  EXPECT_THAT(outcome.output, testing::ContainsRegex("step +40 of 40 +loss [0-9.]+ +[0-9]+ tokens/s +[0-9]+ % of the "
                                                     "time in holdfast"));
  EXPECT_THAT(outcome.output, testing::ContainsRegex("rank 3 was killed with SIGKILL \\(process [0-9]+\\); the model "
                                                     "stands at step [0-9]+"));
  EXPECT_THAT(outcome.output, testing::ContainsRegex("rank 3 has a new worker, which goes on from step [0-9]+"));
  EXPECT_THAT(outcome.output, HasSubstr("written by the raw weights ---\nThe "));
  EXPECT_THAT(outcome.output, HasSubstr("written by the EMA weights ---\nThe "));
  EXPECT_THAT(holdfast::ReadFile(File("loss.svg")), HasSubstr("rank 3 killed with SIGKILL and restarted, step "));
  EXPECT_EQ(cluster_->GetModel("text").state().step(), kNumSteps);
}

TEST_F(ProgramTest, NothingLearned_Fails) {
  const Outcome outcome = Run({"--svg=", "--kill_at_step=0", "--learning_rate=1e-12"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("holdfast_text: the loss did not fall: it began at 4."));
}

TEST_F(ProgramTest, WrongFlag_IsNamedWithWhatWouldDo) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--role=boss", "--role is 'boss'; it must be one of launch, worker, solo"},
      {"--strategy=SOME_SHARD",
       "--strategy is 'SOME_SHARD'; it must be one of FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD, NO_SHARD"},
      {"--param_dtype=int8", "--param_dtype is 'int8'; it must be one of float32, bfloat16, float16"},
      {"--kill_at_step=40", "--kill_at_step is 40; it must be -1, or below --steps, which is 40"},
      {"--kill_at_step=-2", "--kill_at_step is -2; it must be -1, or below --steps, which is 40"},
      {"--heads=5", "width is 36; it must be a multiple of heads, which is 5"},
      {"--ranks=0", "ranks is 0; it must be at least 1"},
      {"--ranks=2", "the daemon has 4 ranks; start 4 workers (--ranks=4)"},
      {"--text=/nowhere", "cannot read the text '/nowhere': give a readable file with --text"},
      {"--context=100000", "it must have more than --context, which is 100000"},
  };
  for (const auto& [flag, message] : cases) {
    const Outcome outcome = Run({flag});
    EXPECT_EQ(outcome.exit_code, 1) << flag;
    EXPECT_THAT(outcome.errors, HasSubstr(message)) << flag;
    EXPECT_EQ(outcome.output, "") << flag;
  }
}

}  // namespace
}  // namespace text
