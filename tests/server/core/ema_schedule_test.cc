#include "server/core/ema_schedule.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

v1::EmaSpec PowerFunction(double gamma) {
  v1::EmaSpec spec;
  spec.mutable_power_function()->set_gamma(gamma);
  return spec;
}

TEST(EmaScheduleTest, ConstantDecayIsTheSameAtEveryStep) {
  v1::EmaSpec spec;
  spec.mutable_constant()->set_decay(0.9999);
  for (const uint64_t step : {1, 2, 1000000}) EXPECT_EQ(DecayAt(spec, Step(step)), 0.9999);
}

TEST(EmaScheduleTest, WarmupRisesToItsLimitAndStaysThere) {
  v1::EmaSpec spec;
  spec.mutable_warmup()->set_decay(0.99);
  EXPECT_DOUBLE_EQ(DecayAt(spec, Step(1)), 2.0 / 11);
  EXPECT_DOUBLE_EQ(DecayAt(spec, Step(90)), 91.0 / 100);
  // (1 + t) / (10 + t) = 0.99 at t = 890.
  EXPECT_LT(DecayAt(spec, Step(889)), 0.99);
  EXPECT_EQ(DecayAt(spec, Step(891)), 0.99);
  EXPECT_EQ(DecayAt(spec, Step(1000000)), 0.99);
}

TEST(EmaScheduleTest, PowerFunctionStartsAsACopyAndFollowsItsFormula) {
  const v1::EmaSpec spec = PowerFunction(6.94);
  EXPECT_EQ(DecayAt(spec, Step(1)), 0);
  EXPECT_DOUBLE_EQ(DecayAt(spec, Step(2)), std::pow(0.5, 7.94));
  EXPECT_DOUBLE_EQ(DecayAt(spec, Step(1000)), std::pow(0.999, 7.94));
}

TEST(EmaScheduleTest, PowerFunctionWeighsStepsByTheirGammaPower) {
  // What the recursion gives to the value of step t, over all steps to the last: for large t it goes as t^gamma.
  constexpr uint64_t kLast = 4000;
  const double gamma = 3;
  const v1::EmaSpec spec = PowerFunction(gamma);
  std::vector<double> weights(kLast + 1, 0.0);
  for (uint64_t step = 1; step <= kLast; ++step) {
    const double decay = DecayAt(spec, Step(step));
    for (double& weight : weights) weight *= decay;
    weights[step] += 1 - decay;
  }
  EXPECT_NEAR(weights[4000] / weights[2000], std::pow(2.0, gamma), 0.02);
  EXPECT_NEAR(weights[3000] / weights[1000], std::pow(3.0, gamma), 0.1);
}

TEST(EmaScheduleTest, SigmaRelOfThePaperGivesItsGamma) {
  EXPECT_NEAR(GammaOfSigmaRel(0.10), 6.94, 0.005);
  EXPECT_NEAR(GammaOfSigmaRel(0.05), 16.97, 0.005);
  v1::EmaSpec spec;
  spec.mutable_power_function()->set_sigma_rel(0.05);
  EXPECT_NEAR(DecayAt(spec, Step(100)), DecayAt(PowerFunction(16.97), Step(100)), 1e-4);
}

TEST(EmaScheduleTest, GammaOfSigmaRelInvertsTheVarianceOfTheProfile) {
  for (double sigma = 1e-4; sigma < 0.2886; sigma *= 1.13) {
    const double gamma = GammaOfSigmaRel(sigma);
    ASSERT_GT(gamma, 0) << sigma;
    const double variance = (gamma + 1) / (std::pow(gamma + 2, 2) * (gamma + 3));
    EXPECT_NEAR(std::sqrt(variance) / sigma, 1, 1e-12) << sigma;
  }
}

TEST(EmaScheduleTest, UpdateEveryTakesMultiplesAndZeroMeansEveryStep) {
  v1::EmaSpec spec;
  EXPECT_TRUE(UpdatesAt(spec, Step(1)));
  spec.set_update_every(3);
  EXPECT_FALSE(UpdatesAt(spec, Step(1)));
  EXPECT_FALSE(UpdatesAt(spec, Step(4)));
  EXPECT_TRUE(UpdatesAt(spec, Step(3)));
  EXPECT_TRUE(UpdatesAt(spec, Step(6)));
}

}  // namespace
}  // namespace holdfast
