#include "server/core/staging_budget.h"

#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "tests/server/core/status_matchers.h"

namespace holdfast {
namespace {

TEST(StagingBudgetTest, GivesUntilTheLimitAndAgainAfterAReturn) {
  StagingBudget budget(100);
  absl::StatusOr<StagingBudget::Reservation> first = budget.Reserve(60);
  ASSERT_THAT(first, IsOk());
  std::optional<StagingBudget::Reservation> held = *std::move(first);
  const absl::StatusOr<StagingBudget::Reservation> rest = budget.Reserve(40);
  ASSERT_THAT(rest, IsOk());
  EXPECT_THAT(budget.Reserve(1), FailsWith(absl::StatusCode::kResourceExhausted,
                                           "a tensor of 1 bytes is to be pulled; 100 of 100 bytes are staged"));
  held.reset();
  EXPECT_THAT(budget.Reserve(60), IsOk());
}

TEST(StagingBudgetTest, SaysWhetherToWaitOrToRaiseTheLimit) {
  StagingBudget budget(100);
  EXPECT_THAT(budget.Reserve(101),
              FailsWith(absl::StatusCode::kResourceExhausted, "raise pull_staging_bytes of the daemon"));
  const absl::StatusOr<StagingBudget::Reservation> half = budget.Reserve(50);
  EXPECT_THAT(budget.Reserve(100), FailsWith(absl::StatusCode::kResourceExhausted, "pull again later"));
}

TEST(StagingBudgetTest, MovedReservationsGiveTheirBytesBackOnce) {
  StagingBudget budget(100);
  {
    StagingBudget::Reservation a = *budget.Reserve(100);
    StagingBudget::Reservation b = std::move(a);
    StagingBudget::Reservation c;
    c = std::move(b);
    EXPECT_THAT(budget.Reserve(1), FailsWith(absl::StatusCode::kResourceExhausted, ""));
  }
  EXPECT_THAT(budget.Reserve(100), IsOk());
  EXPECT_THAT(budget.Reserve(101), FailsWith(absl::StatusCode::kResourceExhausted, ""));
}

TEST(StagingBudgetTest, NothingCostsNothing) {
  StagingBudget budget(0);
  EXPECT_THAT(budget.Reserve(0), IsOk());
}

}  // namespace
}  // namespace holdfast
