#include "client/holdfastctl/npy_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/dtype.h"

namespace holdfast::ctl {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY\x01";
constexpr size_t kPreambleBytes = 10;
// NumPy aligns the data so.
constexpr size_t kAlignment = 64;

// NumPy's name of the element type that is written.
const char* Descriptor(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kBFloat16:
      return "<f4";
    case DType::kFloat16:
      return "<f2";
    case DType::kFloat64:
      return "<f8";
    case DType::kInt64:
      return "<i8";
    case DType::kInt32:
      return "<i4";
    case DType::kInt16:
      return "<i2";
    case DType::kInt8:
      return "|i1";
    case DType::kBool:
      return "|b1";
    default:
      return "|u1";
  }
}

std::string HeaderOf(const v1::TensorStart& tensor) {
  // A tuple of one has a comma.
  const std::string shape = absl::StrCat(absl::StrJoin(tensor.shape(), ", "), tensor.shape_size() == 1 ? "," : "");
  std::string dictionary = absl::StrCat("{'descr': '", Descriptor(FromProto(tensor.dtype())),
                                        "', 'fortran_order': False, 'shape': (", shape, "), }");
  const size_t used = kPreambleBytes + dictionary.size() + 1;
  dictionary.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  dictionary.push_back('\n');
  std::string header(kMagic);
  header.push_back('\0');
  // At the most 64 dimensions of 20 digits: it fits into 16 bits.
  header.push_back(static_cast<char>(dictionary.size() & 0xFF));
  header.push_back(static_cast<char>(dictionary.size() >> 8));
  return header + dictionary;
}

// The bfloat16 in the second half of `data` become float32 in all of it. Element i is read at 2n + 2i and written at
// 4i, which is never behind an element that is yet to be read.
void WidenInPlace(absl::Span<std::byte> data) {
  const size_t count = data.size() / sizeof(float);
  const std::byte* source = data.data() + data.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    uint16_t narrow = 0;
    std::memcpy(&narrow, source + i * sizeof(narrow), sizeof(narrow));
    const uint32_t wide = uint32_t{narrow} << 16;
    std::memcpy(data.data() + i * sizeof(wide), &wide, sizeof(wide));
  }
}

absl::Status FileError(const std::string& path, const char* what, int error) {
  return absl::FailedPreconditionError(absl::StrCat("cannot ", what, " '", path, "': ", std::strerror(error)));
}

}  // namespace

std::string NpyFileName(std::string_view tensor) {
  std::string name;
  for (const char c : tensor) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '_' || c == '-' || (c == '.' && !name.empty())) {
      name.push_back(c);
    } else {
      absl::StrAppendFormat(&name, "%%%02X", byte);
    }
  }
  return name + ".npy";
}

absl::StatusOr<std::unique_ptr<NpyFile>> NpyFile::Create(const std::string& path, const v1::TensorStart& tensor) {
  const std::string temporary = path + ".partial";
  UniqueFd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd) return FileError(temporary, "make", errno);
  std::unique_ptr<NpyFile> file(new NpyFile(path, std::move(fd)));
  file->tensor_bytes_ = tensor.size_bytes();
  file->widen_ = tensor.dtype() == v1::DATA_TYPE_BFLOAT16;
  absl::Status status = file->Map(HeaderOf(tensor), tensor.size_bytes() * (file->widen_ ? 2 : 1));
  if (!status.ok()) return status;
  return file;
}

absl::Status NpyFile::Map(const std::string& header, size_t data_bytes) {
  header_bytes_ = header.size();
  file_bytes_ = header.size() + data_bytes;
  // Taken now: a disk that is full must not show as a fault in the mapping.
  if (const int error = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(file_bytes_)); error != 0) {
    return FileError(temporary_path(), "take room for", error);
  }
  void* const mapping = ::mmap(nullptr, file_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (mapping == MAP_FAILED) return FileError(temporary_path(), "map", errno);
  mapping_ = static_cast<std::byte*>(mapping);
  std::memcpy(mapping_, header.data(), header.size());
  return absl::OkStatus();
}

NpyFile::~NpyFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, file_bytes_);
  if (!committed_) ::unlink(temporary_path().c_str());
}

absl::Span<std::byte> NpyFile::data() { return absl::MakeSpan(mapping_ + file_bytes_ - tensor_bytes_, tensor_bytes_); }

absl::Status NpyFile::Commit() {
  if (widen_) WidenInPlace(absl::MakeSpan(mapping_ + header_bytes_, file_bytes_ - header_bytes_));
  if (::rename(temporary_path().c_str(), path_.c_str()) != 0) return FileError(path_, "make", errno);
  committed_ = true;
  return absl::OkStatus();
}

}  // namespace holdfast::ctl
