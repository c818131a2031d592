// What every Device must do. A backend's test links device_conformance.cc and instantiates the suite with a factory:
//   INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformanceTest, ::testing::Values(...), DeviceFactoryName());
#ifndef HOLDFAST_TESTS_SERVER_DEVICE_DEVICE_CONFORMANCE_H_
#define HOLDFAST_TESTS_SERVER_DEVICE_DEVICE_CONFORMANCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/dtype.h"
#include "gtest/gtest.h"
#include "server/device/device.h"

namespace holdfast {

// A device and what a test needs around it.
class DeviceUnderTest {
 public:
  virtual ~DeviceUnderTest() = default;

  virtual Device& device() = 0;
  // Between host memory and the device's; done when they return.
  virtual void Upload(void* device_address, const void* host, size_t size_bytes) = 0;
  virtual void Download(void* host, const void* device_address, size_t size_bytes) = 0;
};

struct DeviceFactory {
  // Letters, digits and underscores.
  std::string name;
  std::function<std::unique_ptr<DeviceUnderTest>()> create;

  friend void PrintTo(const DeviceFactory& factory, std::ostream* out) { *out << factory.name; }
};

struct DeviceFactoryName {
  std::string operator()(const ::testing::TestParamInfo<DeviceFactory>& info) const { return info.param.name; }
};

class DeviceConformanceTest : public ::testing::TestWithParam<DeviceFactory> {
 protected:
  void SetUp() override;

  Device& device() { return under_test_->device(); }
  Stream& stream() { return *stream_; }

  // Bytes of an arena, with a margin after them that CheckMargins looks at.
  std::byte* Place(const std::vector<std::byte>& bytes);
  std::vector<std::byte> Fetch(const void* address, size_t size_bytes);
  // Nothing has been written behind what was placed.
  void CheckMargins();
  // Forgets what was placed.
  void Clear();

 private:
  std::unique_ptr<DeviceUnderTest> under_test_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> arena_;
  size_t used_bytes_ = 0;
  std::vector<const std::byte*> margins_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_DEVICE_DEVICE_CONFORMANCE_H_
