#include "server/device/cpu/kernels/kernels.h"

#include <cmath>
#include <cstring>
#include <random>

#include "gtest/gtest.h"
#include "server/device/cpu/kernels/dispatch.h"
#include "tests/common/element/element_reference.h"

namespace holdfast {
namespace {

using testing::ArithmeticDTypes;
using testing::EncodeAll;
using testing::RandomValues;

// Prime, so that every vector loop has a remainder.
constexpr int64_t kCount = 20'011;

std::vector<std::byte> RandomBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

size_t Bytes(DType dtype) { return static_cast<size_t>(SizeOf(dtype) * kCount); }

// Each instruction set of this machine but the baseline, which it is held against.
class KernelsTest : public ::testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    absl::StatusOr<const Kernels*> kernels = KernelsFor(GetParam());
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    kernels_ = *kernels;
  }
  const Kernels& kernels() const { return *kernels_; }

 private:
  const Kernels* kernels_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(All, KernelsTest, ::testing::ValuesIn(SupportedInstructionSets()),
                         [](const auto& info) { return std::string(Name(info.param)); });

// Any bits at all: NaNs with their payloads, infinities and subnormals among them.
TEST_P(KernelsTest, Convert_AnyBits_GivesTheBaselinesBits) {
  for (const DType from : ArithmeticDTypes()) {
    for (const DType to : ArithmeticDTypes()) {
      const std::vector<std::byte> source = RandomBytes(Bytes(from), 1);
      std::vector<std::byte> expected(Bytes(to));
      std::vector<std::byte> got(Bytes(to));
      Select(BaselineKernels().convert, from, to)(source.data(), expected.data(), kCount);
      Select(kernels().convert, from, to)(source.data(), got.data(), kCount);
      EXPECT_EQ(got, expected) << Name(from) << " to " << Name(to);
    }
  }
}

TEST_P(KernelsTest, Convert_EveryFloat16_GivesTheBaselinesBits) {
  std::vector<uint16_t> source(65536);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint16_t>(i);
  std::vector<uint32_t> expected(source.size());
  std::vector<uint32_t> got(source.size());
  Select(BaselineKernels().convert, DType::kFloat16, DType::kFloat32)(source.data(), expected.data(), 65536);
  Select(kernels().convert, DType::kFloat16, DType::kFloat32)(source.data(), got.data(), 65536);
  EXPECT_EQ(got, expected);
}

TEST_P(KernelsTest, Ema_GivesTheBaselinesBits) {
  for (const DType parameter_dtype : ArithmeticDTypes()) {
    for (const DType ema_dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat64}) {
      const std::vector<std::byte> parameter = EncodeAll(parameter_dtype, RandomValues(parameter_dtype, kCount, 2));
      const std::vector<std::byte> start = EncodeAll(ema_dtype, RandomValues(ema_dtype, kCount, 3));
      std::vector<std::byte> expected = start;
      std::vector<std::byte> got = start;
      EmaArguments arguments{parameter.data(), expected.data(), kCount, 0.9997, 21, (uint64_t{1} << 32) - 77};
      Select(BaselineKernels().ema, parameter_dtype, ema_dtype)(arguments);
      arguments.ema = got.data();
      Select(kernels().ema, parameter_dtype, ema_dtype)(arguments);
      EXPECT_EQ(got, expected) << Name(parameter_dtype) << " into " << Name(ema_dtype);
      EXPECT_NE(got, start);
    }
  }
}

TEST_P(KernelsTest, Gather_StreamingOrNot_WritesTheSameToAllAndNothingElse) {
  constexpr size_t kMargin = 64;
  for (const DType from : ArithmeticDTypes()) {
    for (const DType to : ArithmeticDTypes()) {
      const std::vector<std::byte> shard = EncodeAll(from, RandomValues(from, kCount, 4));
      std::vector<std::byte> expected(Bytes(to));
      Select(BaselineKernels().convert, from, to)(shard.data(), expected.data(), kCount);
      for (const bool streaming : {false, true}) {
        // The outputs begin at different places of a cache line.
        std::vector<std::vector<std::byte>> outs(3, std::vector<std::byte>(Bytes(to) + 2 * kMargin, std::byte{0xee}));
        void* addresses[3];
        for (size_t i = 0; i < outs.size(); ++i) {
          addresses[i] = outs[i].data() + kMargin - i * static_cast<size_t>(SizeOf(to));
        }
        Select(kernels().gather, from, to)(GatherArguments{shard.data(), addresses, 3, kCount, streaming});
        for (size_t i = 0; i < outs.size(); ++i) {
          std::vector<std::byte> all(outs[i].size(), std::byte{0xee});
          std::memcpy(all.data() + kMargin - i * static_cast<size_t>(SizeOf(to)), expected.data(), expected.size());
          EXPECT_EQ(outs[i], all) << Name(from) << " to " << Name(to);
        }
      }
    }
  }
}

TEST_P(KernelsTest, Reduce_GivesTheBaselinesBits) {
  for (const DType reduce : ArithmeticDTypes()) {
    for (const DType master : ArithmeticDTypes()) {
      std::vector<std::vector<std::byte>> gradients;
      const void* addresses[6];
      for (size_t rank = 0; rank < 6; ++rank) {
        gradients.push_back(EncodeAll(reduce, RandomValues(reduce, kCount, 10 + rank)));
        addresses[rank] = gradients[rank].data();
      }
      const std::vector<std::byte> start = EncodeAll(master, RandomValues(master, kCount, 5));
      for (const bool accumulate : {false, true}) {
        std::vector<std::byte> expected[2] = {start, start};
        void* shards[2] = {expected[0].data(), expected[1].data()};
        Select(BaselineKernels().reduce, reduce,
               master)({addresses, 2, 3, shards, kCount, 4.0, 1.5, accumulate, false});
        EXPECT_EQ(expected[1], expected[0]);
        for (const bool streaming : {false, true}) {
          std::vector<std::byte> got[2] = {start, start};
          void* others[2] = {got[0].data(), got[1].data()};
          Select(kernels().reduce, reduce, master)({addresses, 2, 3, others, kCount, 4.0, 1.5, accumulate, streaming});
          EXPECT_EQ(got[0], expected[0]) << Name(reduce) << " to " << Name(master);
          EXPECT_EQ(got[1], expected[0]) << Name(reduce) << " to " << Name(master);
        }
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
