#include "tests/server/device/device_conformance.h"

#include <cmath>
#include <limits>

#include "common/layout.h"
#include "gmock/gmock.h"
#include "tests/common/element/element_reference.h"

namespace holdfast {

using testing::ArithmeticDTypes;
using testing::DecodeAll;
using testing::EncodeAll;
using ::testing::HasSubstr;
using testing::RandomValues;

namespace {

constexpr int64_t kArenaBytes = int64_t{64} << 20;
constexpr size_t kMarginBytes = 64;
constexpr std::byte kMargin{0xa5};

const std::vector<int64_t>& OddSizes() {
  static const auto& sizes = *new std::vector<int64_t>{0, 1, 3, 7, 15, 63, 64, 65, 1023, 1025, 100'003};
  return sizes;
}

// Whether a conversion goes by way of float.
double Converted(DType from, DType to, double value) {
  if (from == DType::kFloat64 && to != DType::kFloat64) value = testing::RoundedTo(DType::kFloat32, value);
  return testing::RoundedTo(to, value);
}

size_t Bytes(DType dtype, int64_t count) { return static_cast<size_t>(SizeOf(dtype) * count); }

// As device.h states it, for one element, before it is rounded to the EMA's dtype.
template <typename C>
double ExpectedEma(double ema, double parameter, double decay) {
  const C factor = static_cast<C>(decay);
  const C kept = factor * static_cast<C>(ema);
  const C added = (C{1} - factor) * static_cast<C>(parameter);
  return kept + added;
}

double ExpectedEma(DType parameter_dtype, DType ema_dtype, double ema, double parameter, double decay) {
  const bool in_double = parameter_dtype == DType::kFloat64 || ema_dtype == DType::kFloat64;
  return in_double ? ExpectedEma<double>(ema, parameter, decay) : ExpectedEma<float>(ema, parameter, decay);
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformanceTest);

void DeviceConformanceTest::SetUp() {
  under_test_ = GetParam().create();
  ASSERT_NE(under_test_, nullptr);
  absl::StatusOr<std::unique_ptr<Stream>> stream = device().CreateStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  stream_ = *std::move(stream);
  absl::StatusOr<std::unique_ptr<Arena>> arena = device().Allocate("conformance", kArenaBytes);
  ASSERT_TRUE(arena.ok()) << arena.status();
  arena_ = *std::move(arena);
}

std::byte* DeviceConformanceTest::Place(const std::vector<std::byte>& bytes) {
  std::byte* const address = arena_->data() + used_bytes_;
  const std::vector<std::byte> margin(kMarginBytes, kMargin);
  if (!bytes.empty()) under_test_->Upload(address, bytes.data(), bytes.size());
  under_test_->Upload(address + bytes.size(), margin.data(), margin.size());
  margins_.push_back(address + bytes.size());
  used_bytes_ += (bytes.size() + kMarginBytes + 63) / 64 * 64;
  return address;
}

std::vector<std::byte> DeviceConformanceTest::Fetch(const void* address, size_t size_bytes) {
  EXPECT_TRUE(device().Synchronize(*stream_).ok());
  std::vector<std::byte> bytes(size_bytes);
  if (size_bytes > 0) under_test_->Download(bytes.data(), address, size_bytes);
  return bytes;
}

void DeviceConformanceTest::CheckMargins() {
  for (const std::byte* margin : margins_) {
    EXPECT_EQ(Fetch(margin, kMarginBytes), std::vector<std::byte>(kMarginBytes, kMargin));
  }
}

void DeviceConformanceTest::Clear() {
  used_bytes_ = 0;
  margins_.clear();
}

TEST_P(DeviceConformanceTest, Allocate_IsZeroedAndOfTheSizeAskedFor) {
  absl::StatusOr<std::unique_ptr<Arena>> arena = device().Allocate("zeroed", 3 * kPageBytes);
  ASSERT_TRUE(arena.ok()) << arena.status();
  EXPECT_EQ((*arena)->size_bytes(), 3 * kPageBytes);
  EXPECT_EQ((*arena)->header().magic, 0u);
  EXPECT_EQ((*arena)->header().words[kMaxSlots - 1].load(), 0u);
  EXPECT_EQ(Fetch((*arena)->data(), 2 * kPageBytes), std::vector<std::byte>(2 * kPageBytes));
}

TEST_P(DeviceConformanceTest, Allocate_OfOnlyAHeaderPage_Works) {
  EXPECT_TRUE(device().Allocate("empty", kPageBytes).ok());
}

TEST_P(DeviceConformanceTest, Allocate_OfNoWholePages_IsRefused) {
  for (const int64_t size : {int64_t{0}, int64_t{-4096}, int64_t{4097}, int64_t{100}}) {
    const absl::Status status = device().Allocate("odd", size).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(size)));
  }
}

TEST_P(DeviceConformanceTest, Allocate_OfMoreThanThereIs_NamesLabelAndSize) {
  const int64_t size = int64_t{1} << 50;
  const absl::Status status = device().Allocate("gather-ring", size).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gather-ring"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(size)));
}

TEST_P(DeviceConformanceTest, AvailableBytes_IsSomethingAndFallsShortOfAPetabyte) {
  EXPECT_GT(device().AvailableBytes(), 0);
  EXPECT_LT(device().AvailableBytes(), int64_t{1} << 50);
}

TEST_P(DeviceConformanceTest, Copy_EveryPairOfArithmeticDTypes_RoundsAsTheReference) {
  for (const DType from : ArithmeticDTypes()) {
    for (const DType to : ArithmeticDTypes()) {
      for (const int64_t count : OddSizes()) {
        Clear();
        // Beyond float16's largest, too.
        const std::vector<double> values = RandomValues(from, count, 1 + static_cast<uint64_t>(count), 18);
        const std::byte* const src = Place(EncodeAll(from, values));
        std::byte* const dst = Place(std::vector<std::byte>(Bytes(to, count)));
        ASSERT_TRUE(device().Copy(stream(), {{src, from, dst, to, count}}).ok());
        std::vector<double> expected(values.size());
        for (size_t i = 0; i < values.size(); ++i) expected[i] = Converted(from, to, values[i]);
        ASSERT_EQ(Fetch(dst, Bytes(to, count)), EncodeAll(to, expected))
            << Name(from) << " to " << Name(to) << ", " << count << " elements";
        CheckMargins();
      }
    }
  }
}

TEST_P(DeviceConformanceTest, Copy_OpaqueDTypes_CopiesTheBytes) {
  for (const DType dtype : testing::OpaqueDTypes()) {
    for (const int64_t count : OddSizes()) {
      Clear();
      std::vector<std::byte> bytes(Bytes(dtype, count));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 % 251);
      const std::byte* const src = Place(bytes);
      std::byte* const dst = Place(std::vector<std::byte>(bytes.size()));
      ASSERT_TRUE(device().Copy(stream(), {{src, dtype, dst, dtype, count}}).ok());
      ASSERT_EQ(Fetch(dst, bytes.size()), bytes) << Name(dtype) << ", " << count << " elements";
      CheckMargins();
    }
  }
}

TEST_P(DeviceConformanceTest, Copy_ManyTasksOfManySizes_DoesEachOfThem) {
  struct Expected {
    const std::byte* dst;
    std::vector<std::byte> bytes;
  };
  std::vector<CopyTask> tasks;
  std::vector<Expected> expected;
  for (int64_t i = 0; i < 700; ++i) {
    const int64_t count = i % 97 == 0 ? 70'000 + i : i % 130;
    const std::vector<double> values = RandomValues(DType::kBFloat16, count, static_cast<uint64_t>(i));
    const std::byte* const src = Place(EncodeAll(DType::kBFloat16, values));
    std::byte* const dst = Place(std::vector<std::byte>(Bytes(DType::kFloat32, count)));
    tasks.push_back({src, DType::kBFloat16, dst, DType::kFloat32, count});
    expected.push_back({dst, EncodeAll(DType::kFloat32, values)});
  }
  ASSERT_TRUE(device().Copy(stream(), tasks).ok());
  for (const Expected& one : expected) ASSERT_EQ(Fetch(one.dst, one.bytes.size()), one.bytes);
  CheckMargins();
}

TEST_P(DeviceConformanceTest, Copy_BadTask_IsRefusedAndNothingIsDone) {
  const std::byte* const src = Place(EncodeAll(DType::kFloat32, {1, 2}));
  std::byte* const dst = Place(std::vector<std::byte>(8));
  const CopyTask good{src, DType::kFloat32, dst, DType::kFloat32, 2};
  const CopyTask bad[] = {
      {src, DType::kFloat32, dst, DType::kInt32, 2},       {src, DType::kUInt8, dst, DType::kInt8, 2},
      {src, DType::kUnspecified, dst, DType::kFloat32, 2}, {src, DType::kFloat32, dst, DType::kFloat32, -1},
      {nullptr, DType::kFloat32, dst, DType::kFloat32, 2}, {src, DType::kFloat32, nullptr, DType::kFloat32, 2},
  };
  for (const CopyTask& task : bad) {
    const absl::Status status = device().Copy(stream(), {good, task});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("task 1"));
    EXPECT_EQ(Fetch(dst, 8), std::vector<std::byte>(8));
  }
}

TEST_P(DeviceConformanceTest, Ema_EveryPairOfDTypes_IsTheFormula) {
  for (const DType parameter_dtype : ArithmeticDTypes()) {
    for (const DType ema_dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const int64_t count : OddSizes()) {
        for (const double decay : {0.0, 0.5, 0.9999, 1.0}) {
          Clear();
          const std::vector<double> parameters = RandomValues(parameter_dtype, count, 3);
          const std::vector<double> emas = RandomValues(ema_dtype, count, 4);
          const std::byte* const parameter = Place(EncodeAll(parameter_dtype, parameters));
          std::byte* const ema = Place(EncodeAll(ema_dtype, emas));
          ASSERT_TRUE(device().Ema(stream(), {{parameter, parameter_dtype, ema, ema_dtype, count, decay}}).ok());
          std::vector<double> expected(emas.size());
          for (size_t i = 0; i < emas.size(); ++i) {
            const double exact = ExpectedEma(parameter_dtype, ema_dtype, emas[i], parameters[i], decay);
            expected[i] = testing::RoundedTo(ema_dtype, exact);
          }
          ASSERT_EQ(DecodeAll(ema_dtype, Fetch(ema, Bytes(ema_dtype, count))), expected)
              << Name(parameter_dtype) << " into " << Name(ema_dtype) << ", " << count << " elements, " << decay;
          CheckMargins();
        }
      }
    }
  }
}

TEST_P(DeviceConformanceTest, Ema_BFloat16_IsANeighbourOfTheFormulaAndRightOnAverage) {
  constexpr int64_t kCount = 100'003;
  for (const DType parameter_dtype : ArithmeticDTypes()) {
    Clear();
    const std::vector<double> parameters = RandomValues(parameter_dtype, kCount, 5);
    const std::vector<double> emas = RandomValues(DType::kBFloat16, kCount, 6);
    const std::byte* const parameter = Place(EncodeAll(parameter_dtype, parameters));
    std::byte* const ema = Place(EncodeAll(DType::kBFloat16, emas));
    ASSERT_TRUE(
        device().Ema(stream(), {{parameter, parameter_dtype, ema, DType::kBFloat16, kCount, 0.99, 11, 1000}}).ok());
    const std::vector<double> got = DecodeAll(DType::kBFloat16, Fetch(ema, Bytes(DType::kBFloat16, kCount)));
    // Of the error in units of the spacing.
    double sum = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double exact = ExpectedEma(parameter_dtype, DType::kBFloat16, emas[i], parameters[i], 0.99);
      const double spacing = testing::Spacing(DType::kBFloat16, exact);
      ASSERT_LE(std::abs(got[i] - exact), spacing) << i;
      sum += (got[i] - exact) / spacing;
    }
    EXPECT_LT(std::abs(sum / kCount), 5 * 0.5 / std::sqrt(kCount));
    CheckMargins();
  }
}

TEST_P(DeviceConformanceTest, Ema_BFloat16_DoesNotDependOnHowATensorIsCutIntoTasks) {
  constexpr int64_t kCount = 70'001;
  // Across 2^32, where the upper half of the element number changes.
  constexpr uint64_t kFirst = (uint64_t{1} << 32) - 1000;
  const std::vector<std::byte> parameters = EncodeAll(DType::kFloat32, RandomValues(DType::kFloat32, kCount, 7));
  const std::vector<std::byte> emas = EncodeAll(DType::kBFloat16, RandomValues(DType::kBFloat16, kCount, 8));
  const std::byte* const parameter = Place(parameters);
  std::byte* const whole = Place(emas);
  std::byte* const cut = Place(emas);
  EmaTask task{parameter, DType::kFloat32, whole, DType::kBFloat16, kCount, 0.9, 5, kFirst};
  ASSERT_TRUE(device().Ema(stream(), {task}).ok());

  std::vector<EmaTask> pieces;
  for (int64_t first = 0; first < kCount;) {
    const int64_t length = std::min<int64_t>(kCount - first, 1 + first % 977);
    pieces.push_back({parameter + first * 4, DType::kFloat32, cut + first * 2, DType::kBFloat16, length, 0.9, 5,
                      kFirst + static_cast<uint64_t>(first)});
    first += length;
  }
  ASSERT_TRUE(device().Ema(stream(), pieces).ok());
  EXPECT_EQ(Fetch(cut, emas.size()), Fetch(whole, emas.size()));
  EXPECT_NE(Fetch(cut, emas.size()), emas);
}

// A step of decay 0.9999 moves this average by less than half a bfloat16 spacing: rounded to the nearest it stands.
TEST_P(DeviceConformanceTest, Ema_BFloat16AtDecay9999_FollowsTheFloat32One) {
  constexpr int64_t kCount = 4096;
  constexpr int kSteps = 5000;
  constexpr double kDecay = 0.9999;
  const std::byte* const parameter = Place(EncodeAll(DType::kFloat32, std::vector<double>(kCount, 2.0)));
  std::byte* const wide = Place(EncodeAll(DType::kFloat32, std::vector<double>(kCount, 1.0)));
  std::byte* const narrow = Place(EncodeAll(DType::kBFloat16, std::vector<double>(kCount, 1.0)));
  double nearest = 1.0;
  for (uint64_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(device()
                    .Ema(stream(), {{parameter, DType::kFloat32, wide, DType::kFloat32, kCount, kDecay},
                                    {parameter, DType::kFloat32, narrow, DType::kBFloat16, kCount, kDecay, step}})
                    .ok());
    nearest = testing::RoundedTo(DType::kBFloat16, ExpectedEma<float>(nearest, 2.0, kDecay));
  }
  const double expected = 2.0 - std::pow(kDecay, kSteps);
  EXPECT_EQ(nearest, 1.0);
  const std::vector<double> wides = DecodeAll(DType::kFloat32, Fetch(wide, Bytes(DType::kFloat32, kCount)));
  EXPECT_NEAR(wides[0], expected, 1e-3);
  double sum = 0;
  for (const double value : DecodeAll(DType::kBFloat16, Fetch(narrow, Bytes(DType::kBFloat16, kCount)))) sum += value;
  // An element's random walk ends within about sqrt(steps · 1e-4 · spacing) = 0.06; the mean of 4096 within 0.001.
  EXPECT_NEAR(sum / kCount, wides[0], 0.005);
}

TEST_P(DeviceConformanceTest, Ema_BadTask_IsRefusedAndNothingIsDone) {
  const std::byte* const parameter = Place(EncodeAll(DType::kFloat32, {1, 2}));
  std::byte* const ema = Place(std::vector<std::byte>(8));
  const EmaTask good{parameter, DType::kFloat32, ema, DType::kFloat32, 2, 0.5};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const EmaTask bad[] = {
      {parameter, DType::kFloat32, ema, DType::kFloat16, 2, 0.5},
      {parameter, DType::kFloat32, ema, DType::kInt32, 2},
      {parameter, DType::kInt32, ema, DType::kFloat32, 2, 0.5},
      {parameter, DType::kFloat32, ema, DType::kFloat32, -1},
      {nullptr, DType::kFloat32, ema, DType::kFloat32, 2, 0.5},
      {parameter, DType::kFloat32, nullptr, DType::kFloat32, 2},
      {parameter, DType::kFloat32, ema, DType::kFloat32, 2, 1.5},
      {parameter, DType::kFloat32, ema, DType::kFloat32, 2, nan},
      {parameter, DType::kFloat32, ema, DType::kFloat32, 2, -0.1},
  };
  for (const EmaTask& task : bad) {
    const absl::Status status = device().Ema(stream(), {good, task});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("task 1"));
    EXPECT_EQ(Fetch(ema, 8), std::vector<std::byte>(8));
  }
}

TEST_P(DeviceConformanceTest, Signal_StoresTheValueInStreamOrder) {
  absl::StatusOr<std::unique_ptr<Arena>> arena = device().Allocate("words", kPageBytes);
  ASSERT_TRUE(arena.ok()) << arena.status();
  CompletionWord& word = (*arena)->header().words[3];
  ASSERT_TRUE(device().Signal(stream(), word, DoneValue(Completion(7))).ok());
  ASSERT_TRUE(device().Synchronize(stream()).ok());
  EXPECT_EQ(word.load(), 14u);
}

}  // namespace holdfast
