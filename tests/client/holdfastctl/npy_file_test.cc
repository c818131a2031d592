#include "client/holdfastctl/npy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "common/dtype.h"

namespace holdfast::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class NpyFileTest : public testing::Test {
 protected:
  NpyFileTest() {
    std::string directory = std::filesystem::temp_directory_path() / "npyXXXXXX";
    directory_ = ::mkdtemp(directory.data());
    path_ = directory_ / "tensor.npy";
  }
  ~NpyFileTest() override { std::filesystem::remove_all(directory_); }

  static v1::TensorStart Tensor(v1::DataType dtype, const std::vector<int64_t>& shape) {
    v1::TensorStart tensor;
    tensor.set_dtype(dtype);
    int64_t size_bytes = SizeOf(FromProto(dtype));
    for (const int64_t length : shape) {
      tensor.add_shape(length);
      size_bytes *= length;
    }
    tensor.set_size_bytes(static_cast<uint64_t>(size_bytes));
    return tensor;
  }

  // Writes `values` as the tensor's bytes, and returns the file's.
  template <typename T>
  std::string Write(const v1::TensorStart& tensor, const std::vector<T>& values) {
    auto file = NpyFile::Create(path_, tensor);
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->data().size(), values.size() * sizeof(T));
    std::memcpy((*file)->data().data(), values.data(), values.size() * sizeof(T));
    EXPECT_TRUE((*file)->Commit().ok());
    file->reset();
    std::ostringstream content;
    content << std::ifstream(path_, std::ios::binary).rdbuf();
    return content.str();
  }

  // What follows the header, which must be a whole number of 64 bytes.
  template <typename T>
  static std::vector<T> Data(const std::string& file) {
    const size_t header = 10 + static_cast<unsigned char>(file[8]) + 256 * static_cast<unsigned char>(file[9]);
    EXPECT_EQ(header % 64, 0u);
    EXPECT_EQ(file[header - 1], '\n');
    std::vector<T> values((file.size() - header) / sizeof(T));
    std::memcpy(values.data(), file.data() + header, values.size() * sizeof(T));
    return values;
  }

  std::filesystem::path directory_;
  std::string path_;
};

TEST_F(NpyFileTest, Float32IsWrittenAsItIs) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::string file = Write(Tensor(v1::DATA_TYPE_FLOAT32, {2, 3}), values);
  EXPECT_THAT(file, StartsWith(std::string("\x93NUMPY\x01\x00", 8)));
  EXPECT_THAT(file, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_EQ(Data<float>(file), values);
}

TEST_F(NpyFileTest, BFloat16IsWidenedWithoutLoss) {
  // 1, −2, the largest finite one, an infinity, and many more, so that the widening passes over itself.
  std::vector<uint16_t> narrow = {0x3F80, 0xC000, 0x7F7F, 0xFF80};
  for (uint16_t i = 0; i < 1000; ++i) narrow.push_back(static_cast<uint16_t>(0x3F80 + i));
  const std::string file = Write(Tensor(v1::DATA_TYPE_BFLOAT16, {static_cast<int64_t>(narrow.size())}), narrow);
  EXPECT_THAT(file, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (1004,), }"));
  const std::vector<uint32_t> wide = Data<uint32_t>(file);
  ASSERT_EQ(wide.size(), narrow.size());
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(wide[i], uint32_t{narrow[i]} << 16) << i;
  const std::vector<float> values = Data<float>(file);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(values[3], -std::numeric_limits<float>::infinity());
}

TEST_F(NpyFileTest, EveryDtypeHasADescriptor) {
  const std::pair<v1::DataType, std::string> cases[] = {
      {v1::DATA_TYPE_FLOAT16, "<f2"},      {v1::DATA_TYPE_FLOAT64, "<f8"}, {v1::DATA_TYPE_INT64, "<i8"},
      {v1::DATA_TYPE_INT32, "<i4"},        {v1::DATA_TYPE_INT16, "<i2"},   {v1::DATA_TYPE_INT8, "|i1"},
      {v1::DATA_TYPE_UINT8, "|u1"},        {v1::DATA_TYPE_BOOL, "|b1"},    {v1::DATA_TYPE_FLOAT8_E5M2, "|u1"},
      {v1::DATA_TYPE_FLOAT8_E4M3FN, "|u1"}};
  for (const auto& [dtype, descriptor] : cases) {
    const v1::TensorStart tensor = Tensor(dtype, {4});
    const std::string file = Write(tensor, std::vector<char>(tensor.size_bytes(), 1));
    EXPECT_THAT(file, HasSubstr("{'descr': '" + descriptor + "',"));
    EXPECT_EQ(Data<char>(file).size(), tensor.size_bytes());
  }
}

TEST_F(NpyFileTest, ScalarsAndEmptyTensors) {
  EXPECT_THAT(Write(Tensor(v1::DATA_TYPE_FLOAT32, {}), std::vector<float>{7}), HasSubstr("'shape': (), }"));
  const std::string empty = Write(Tensor(v1::DATA_TYPE_BFLOAT16, {3, 0}), std::vector<uint16_t>());
  EXPECT_THAT(empty, HasSubstr("'shape': (3, 0), }"));
  EXPECT_THAT(Data<float>(empty), ElementsAre());
}

TEST_F(NpyFileTest, NothingIsLeftOfAFileThatWasNotCommitted) {
  {
    const auto file = NpyFile::Create(path_, Tensor(v1::DATA_TYPE_FLOAT32, {1000}));
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_FALSE(std::filesystem::is_empty(directory_));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(NpyFileTest, DiskThatIsTooSmallIsAnError) {
  const absl::Status status = NpyFile::Create(path_, Tensor(v1::DATA_TYPE_UINT8, {int64_t{1} << 60})).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot take room for"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST(NpyFileNameTest, StaysInItsDirectoryAndIsUnique) {
  EXPECT_EQ(NpyFileName("layers.0.mlp_x-y.weight"), "layers.0.mlp_x-y.weight.npy");
  EXPECT_EQ(NpyFileName("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd.npy");
  EXPECT_EQ(NpyFileName("a b%"), "a%20b%25.npy");
  EXPECT_EQ(NpyFileName("\xC3\xBC"), "%C3%BC.npy");
}

}  // namespace
}  // namespace holdfast::ctl
