#include "server/device/cpu/cpu_device.h"

#include <cstring>
#include <utility>

#include "server/device/cpu/kernels/dispatch.h"
#include "tests/server/device/device_conformance.h"

namespace holdfast {
namespace {

class CpuDeviceUnderTest final : public DeviceUnderTest {
 public:
  CpuDeviceUnderTest(std::unique_ptr<WorkerPool> pool, std::unique_ptr<CpuDevice> device)
      : pool_(std::move(pool)), device_(std::move(device)) {}

  Device& device() override { return *device_; }
  void Upload(void* to, const void* from, size_t size_bytes) override { std::memcpy(to, from, size_bytes); }
  void Download(void* to, const void* from, size_t size_bytes) override { std::memcpy(to, from, size_bytes); }

 private:
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<CpuDevice> device_;
};

std::unique_ptr<DeviceUnderTest> CreateCpuDevice(int num_threads, InstructionSet instruction_set) {
  absl::StatusOr<std::unique_ptr<WorkerPool>> pool = WorkerPool::Create(num_threads);
  if (!pool.ok()) return nullptr;
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(pool->get(), instruction_set);
  if (!device.ok()) return nullptr;
  return std::make_unique<CpuDeviceUnderTest>(*std::move(pool), *std::move(device));
}

// Every instruction set of this machine with two threads, and the best with 1 to 4.
std::vector<DeviceFactory> Factories() {
  std::vector<DeviceFactory> factories;
  const auto add = [&factories](int num_threads, InstructionSet set) {
    factories.push_back({std::string(Name(set)) + "_threads" + std::to_string(num_threads),
                         [num_threads, set] { return CreateCpuDevice(num_threads, set); }});
  };
  for (const InstructionSet set : SupportedInstructionSets()) add(2, set);
  for (const int num_threads : {1, 3, 4}) add(num_threads, BestInstructionSet());
  return factories;
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformanceTest, ::testing::ValuesIn(Factories()), DeviceFactoryName());

TEST(CpuDeviceTest, Create_ForInstructionsThatTheMachineHasNot_IsRefused) {
  absl::StatusOr<std::unique_ptr<WorkerPool>> pool = WorkerPool::Create(1);
  ASSERT_TRUE(pool.ok());
  const std::vector<InstructionSet> supported = SupportedInstructionSets();
  for (const InstructionSet set : {InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    const bool has = std::find(supported.begin(), supported.end(), set) != supported.end();
    const absl::Status status = CpuDevice::Create(pool->get(), set).status();
    EXPECT_EQ(status.code(), has ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition) << Name(set);
  }
}

}  // namespace
}  // namespace holdfast
