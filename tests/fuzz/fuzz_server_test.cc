// Ten thousand requests, out of a seed that is printed; HOLDFAST_FUZZ_SEED takes another one.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/client.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/fuzz_daemon.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/integration/status_matchers.h"
#include "tests/integration/toy_training.h"

namespace holdfast {
namespace {

constexpr int64_t kNumRequests = 10000;
constexpr uint64_t kSeed = 20261201;

uint64_t Seed() {
  uint64_t seed = kSeed;
  const char* const asked = std::getenv("HOLDFAST_FUZZ_SEED");
  return asked != nullptr && absl::SimpleAtoi(asked, &seed) ? seed : kSeed;
}

// The daemon still trains a model, bit for bit as it should.
void ExpectTrains(FuzzDaemon& daemon) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = daemon.worker_socket()});
  ASSERT_THAT(client, IsOk());
  ASSERT_THAT((*client)->RegisterModel(ToySpec("after")), IsOk());
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::future<absl::Status>> trained;
  for (int32_t rank = 0; rank < FuzzDaemon::kWorld; ++rank) {
    absl::StatusOr<std::unique_ptr<Worker>> worker = (*client)->Attach("after", Rank(rank));
    ASSERT_THAT(worker, IsOk());
    workers.push_back(*std::move(worker));
  }
  for (const std::unique_ptr<Worker>& worker : workers) {
    trained.push_back(std::async(std::launch::async, [&] { return TrainToy(*worker, FuzzDaemon::kWorld, 3); }));
  }
  for (std::future<absl::Status>& rank : trained) EXPECT_THAT(rank.get(), IsOk());
  EXPECT_THAT(CheckToy(**client, "after", FuzzDaemon::kWorld, 3), IsOk());
}

TEST(FuzzServerTest, TenThousandRequests_NothingBreaks) {
  const uint64_t seed = Seed();
  std::cout << "HOLDFAST_FUZZ_SEED=" << seed << std::endl;
  RecordProperty("seed", std::to_string(seed));
  // protobuf writes a line for each message that it cannot read.
  google::protobuf::SetLogHandler(nullptr);
  absl::StatusOr<std::unique_ptr<FuzzDaemon>> daemon = FuzzDaemon::Start();
  ASSERT_THAT(daemon, IsOk());
  {
    Choices choices(seed);
    FuzzDriver driver(**daemon, choices);
    driver.RunStep(/*disturb=*/false);
    while (driver.num_requests() < kNumRequests * 4 / 5 && driver.faults().empty()) driver.Run();
    const int64_t num_compared = driver.num_compared();
    while (driver.num_requests() < kNumRequests && driver.faults().empty()) driver.RunWild();
    driver.RunStep(/*disturb=*/false);
    for (const std::string& fault : driver.faults()) ADD_FAILURE() << fault;
    std::cout << driver.num_requests() << " requests, " << driver.num_refused() << " refused, " << num_compared
              << " compared before and after" << std::endl;
    // It must be able to fail: enough was refused, and enough was not.
    EXPECT_GT(num_compared, kNumRequests / 20);
    EXPECT_LT(driver.num_refused(), driver.num_requests() * 9 / 10);
  }
  ExpectTrains(**daemon);
}

}  // namespace
}  // namespace holdfast
