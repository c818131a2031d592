#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "holdfast/v1/parameter_service.grpc.pb.h"
#include "tests/bench/daemon_node.h"
#include "tests/bench/suites.h"

namespace holdfast::bench {
namespace {

double Percentile(std::vector<double>& sorted, double of) {
  return sorted[static_cast<size_t>(of * static_cast<double>(sorted.size() - 1))];
}

// Microseconds of each of `count` calls, sorted; a tenth of as many are made before them and not counted.
absl::StatusOr<std::vector<double>> TimeCalls(int count, const std::function<absl::Status()>& call) {
  std::vector<double> microseconds;
  for (int i = -count / 10; i < count; ++i) {
    const absl::Time start = absl::Now();
    if (absl::Status status = call(); !status.ok()) return status;
    if (i >= 0) microseconds.push_back(absl::ToDoubleMicroseconds(absl::Now() - start));
  }
  std::sort(microseconds.begin(), microseconds.end());
  return microseconds;
}

}  // namespace

absl::Status RunRpc(const Options& options, const Report& report) {
  const int count = options.quick ? 50 : 5000;
  absl::StatusOr<std::unique_ptr<DaemonNode>> node = DaemonNode::Create(1, int64_t{1} << 20, DType::kFloat32);
  if (!node.ok()) return node.status();

  v1::ParameterService::Stub& stub = (*node)->cluster().parameters();
  v1::ReleaseRequest release;
  release.mutable_call()->set_model("bench");
  // Answered by the first check of the core: what is left is the way there and back.
  absl::StatusOr<std::vector<double>> empty = TimeCalls(count, [&] {
    grpc::ClientContext context;
    v1::ReleaseResponse response;
    const grpc::Status status = stub.Release(&context, release, &response);
    return status.error_code() == grpc::StatusCode::ABORTED ? absl::OkStatus()
                                                            : absl::InternalError(status.error_message());
  });
  if (!empty.ok()) return empty.status();
  const std::string name = "empty call, Unix socket";
  report({"rpc", name + ", p50", "", Percentile(*empty, 0.5), 0, "us", Better::kLower,
          options.quick ? std::nullopt : std::optional<double>(150)});
  report({"rpc", name + ", p99", "", Percentile(*empty, 0.99), 0, "us", Better::kLower, std::nullopt});

  // A unit that is resident needs no call at all.
  Worker& worker = (*node)->worker(0);
  absl::StatusOr<std::vector<double>> resident = TimeCalls(count, [&] { return worker.Gather(UnitIndex(0)).status(); });
  if (!resident.ok()) return resident.status();
  report({"rpc", "Gather of a resident unit, p50", "empty call, Unix socket, p50", Percentile(*resident, 0.5),
          Percentile(*empty, 0.5), "us", Better::kLower, std::nullopt});
  return absl::OkStatus();
}

}  // namespace holdfast::bench
