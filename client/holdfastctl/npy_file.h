// A tensor as NumPy's file format.
#ifndef HOLDFAST_CLIENT_HOLDFASTCTL_NPY_FILE_H_
#define HOLDFAST_CLIENT_HOLDFASTCTL_NPY_FILE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/unique_fd.h"
#include "holdfast/v1/parameter_service.pb.h"

namespace holdfast::ctl {

// The name of a tensor as that of a file: what is not a letter, a digit, '.', '_' or '-' is written as %XX, and so is a
// '.' at the beginning. Other tensors have other names.
std::string NpyFileName(std::string_view tensor);

// NumPy has no bfloat16: it is widened to float32, which loses nothing. fp8 has no NumPy type either, and is written
// as bytes (uint8).
class NpyFile {
 public:
  // Makes the file under a temporary name beside `path`, at its full size. The tensor's size_bytes must fit its shape
  // and dtype. FAILED_PRECONDITION: the system refuses, as when the disk is full.
  static absl::StatusOr<std::unique_ptr<NpyFile>> Create(const std::string& path, const v1::TensorStart& tensor);
  // Removes it, unless it was committed.
  ~NpyFile();
  NpyFile(const NpyFile&) = delete;
  NpyFile& operator=(const NpyFile&) = delete;

  // Where the tensor's bytes go: size_bytes of them, in the tensor's own dtype.
  absl::Span<std::byte> data();
  // Gives the file its name.
  absl::Status Commit();

 private:
  NpyFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string temporary_path() const { return path_ + ".partial"; }
  absl::Status Map(const std::string& header, size_t data_bytes);

  const std::string path_;
  UniqueFd fd_;
  bool committed_ = false;
  // The whole file.
  std::byte* mapping_ = nullptr;
  size_t file_bytes_ = 0;
  size_t header_bytes_ = 0;
  // Of the tensor in its own dtype.
  size_t tensor_bytes_ = 0;
  bool widen_ = false;
};

}  // namespace holdfast::ctl

#endif  // HOLDFAST_CLIENT_HOLDFASTCTL_NPY_FILE_H_
