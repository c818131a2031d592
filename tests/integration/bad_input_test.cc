// Every bad request is refused with a code and a message that name what is wrong, and changes nothing.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/bad_input_world.h"
#include "tests/integration/status_matchers.h"

namespace holdfast {
namespace {

std::vector<BadCall> AllBadCalls() {
  std::vector<BadCall> all;
  for (std::vector<BadCall> (*table)() : {&BadHeaders, &BadWorkerCalls, &BadSpecs, &BadOtherCalls}) {
    for (BadCall& bad : table()) all.push_back(std::move(bad));
  }
  return all;
}

class BadInputTest : public testing::TestWithParam<BadCall> {
 protected:
  static void SetUpTestSuite() {
    absl::StatusOr<std::unique_ptr<BadInputWorld>> world = BadInputWorld::Start();
    ASSERT_THAT(world, IsOk());
    world_ = world->release();
  }
  static void TearDownTestSuite() {
    delete world_;
    world_ = nullptr;
  }
  void SetUp() override {
    ASSERT_NE(world_, nullptr);
    ASSERT_THAT(world_->Reset(), IsOk());
  }

  static BadInputWorld* world_;
};

BadInputWorld* BadInputTest::world_ = nullptr;

TEST_P(BadInputTest, IsRefused_NothingChanges) {
  std::vector<std::future<grpc::Status>> waiting;
  if (GetParam().prepare != nullptr) waiting = GetParam().prepare(*world_);
  const std::string before = world_->State();
  EXPECT_THAT(GetParam().call(*world_), FailsWith(GetParam().code, GetParam().text));
  EXPECT_EQ(world_->State(), before);
  // What waits is answered, not forgotten.
  ASSERT_THAT(world_->Reset(), IsOk());
  for (std::future<grpc::Status>& call : waiting) {
    EXPECT_THAT(call.get(), FailsWith(absl::StatusCode::kAborted, "gave up its step"));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, BadInputTest, testing::ValuesIn(AllBadCalls()),
                         [](const testing::TestParamInfo<BadCall>& info) { return info.param.name; });

TEST(BadInputTableTest, HasAtLeastEightyDifferentCases) {
  std::set<std::string> names;
  for (const BadCall& bad : AllBadCalls()) names.insert(bad.name);
  EXPECT_GE(names.size(), 80U);
}

}  // namespace
}  // namespace holdfast
