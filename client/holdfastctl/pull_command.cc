// pull.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "client/holdfastctl/command.h"
#include "client/holdfastctl/daemon_channel.h"
#include "client/holdfastctl/npy_file.h"
#include "client/holdfastctl/table.h"
#include "client/pull_stream.h"
#include "common/dtype.h"

namespace holdfast::ctl {
namespace {

// Writes each tensor to a file of its own.
class NpyDirectory : public PullSink {
 public:
  explicit NpyDirectory(std::filesystem::path directory) : directory_(std::move(directory)) {}

  absl::StatusOr<absl::Span<std::byte>> Begin(const v1::TensorStart& start) override {
    absl::StatusOr<std::unique_ptr<NpyFile>> file = NpyFile::Create(directory_ / NpyFileName(start.name()), start);
    if (!file.ok()) return file.status();
    file_ = *std::move(file);
    first_step_ = num_tensors_ == 0 ? start.step() : std::min(first_step_, start.step());
    last_step_ = std::max(last_step_, start.step());
    ++num_tensors_;
    size_bytes_ += start.size_bytes();
    return file_->data();
  }

  absl::Status End() override { return std::exchange(file_, nullptr)->Commit(); }

  // "12 tensors, 3.40 MiB, of step 120, in DIR".
  std::string Summary() const {
    const std::string steps = first_step_ == last_step_ ? absl::StrCat("step ", last_step_)
                                                        : absl::StrCat("steps ", first_step_, " to ", last_step_);
    return absl::StrCat(num_tensors_, num_tensors_ == 1 ? " tensor, " : " tensors, ", BytesText(size_bytes_), ", of ",
                        steps, ", in ", directory_.string());
  }

 private:
  const std::filesystem::path directory_;
  std::unique_ptr<NpyFile> file_;
  uint64_t num_tensors_ = 0;
  uint64_t size_bytes_ = 0;
  uint64_t first_step_ = 0;
  uint64_t last_step_ = 0;
};

absl::StatusOr<v1::PullRequest> RequestOf(const Arguments& arguments) {
  v1::PullRequest request;
  request.set_model(arguments.words().front());
  request.mutable_names()->Assign(arguments.words().begin() + 1, arguments.words().end());
  request.set_ema(arguments.Get("ema"));
  if (!arguments.Has("dtype")) return request;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64}) {
    if (arguments.Get("dtype") == Name(dtype)) request.set_dtype(ToProto(dtype));
  }
  if (request.dtype() == v1::DATA_TYPE_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype: '", arguments.Get("dtype"), "'; valid are float32, bfloat16, float16, float64"));
  }
  return request;
}

}  // namespace

absl::Status RunPull(const Arguments& arguments, std::ostream& out) {
  const std::string directory = arguments.Get("out");
  if (directory.empty()) return absl::InvalidArgumentError("--out=DIRECTORY is required: where the files go");
  const absl::StatusOr<v1::PullRequest> request = RequestOf(arguments);
  if (!request.ok()) return request.status();
  // Says at once if nobody is there, where a client would go on trying.
  const absl::StatusOr<DaemonChannel> daemon = DaemonChannel::Open(arguments);
  if (!daemon.ok()) return daemon.status();
  const absl::StatusOr<std::shared_ptr<Connection>> connection = Connection::Open(
      {.address = daemon->address(), .connect_timeout = daemon->timeout(), .call_timeout = daemon->timeout()});
  if (!connection.ok()) return connection.status();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return absl::FailedPreconditionError(absl::StrCat("cannot make '", directory, "': ", error.message()));
  NpyDirectory files(directory);
  const absl::Status status = ReadPull(**connection, *request, files);
  if (!status.ok()) return status;
  out << files.Summary() << '\n';
  return absl::OkStatus();
}

}  // namespace holdfast::ctl
