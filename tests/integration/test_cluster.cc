#include "tests/integration/test_cluster.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace holdfast {
namespace {

// Sanitizers, and machines that do much else, make everything slower.
constexpr absl::Duration kStartTimeout = absl::Seconds(60);
constexpr absl::Duration kAwaitTimeout = absl::Seconds(60);

// Waits until `file` is there or the process has ended.
bool AwaitFile(const std::string& directory, const std::string& file, ChildProcess& process, int inotify) {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (::access((directory + "/" + file).c_str(), R_OK) != 0) {
    pollfd fds[] = {{.fd = inotify, .events = POLLIN, .revents = 0},
                    {.fd = process.pidfd(), .events = POLLIN, .revents = 0}};
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    ::poll(fds, 2, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (fds[1].revents != 0) return false;
    char events[4096];
    if (fds[0].revents != 0 && ::read(inotify, events, sizeof(events)) < 0) return false;
  }
  return true;
}

}  // namespace

std::string DaemonExecutable() { return HOLDFASTD_EXECUTABLE; }

std::vector<std::string> DaemonFlags(const TemporaryDirectory& directory, int32_t num_ranks) {
  return {absl::StrCat("--worker_socket=", directory.File("w")), absl::StrCat("--num_ranks=", num_ranks),
          absl::StrCat("--ready_file=", directory.File("ready.json")), "--backend=cpu", "--log_level=debug"};
}

std::string ReadFile(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

absl::StatusOr<std::unique_ptr<TestCluster>> TestCluster::Start(const TestClusterOptions& options) {
  auto directory = std::make_unique<TemporaryDirectory>();
  if (directory->path().empty()) return absl::InternalError("no temporary directory can be made");
  UniqueFd inotify(::inotify_init1(IN_CLOEXEC));
  if (::inotify_add_watch(inotify.get(), directory->path().c_str(), IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
    return absl::ErrnoToStatus(errno, "inotify_add_watch");
  }
  ChildProcess::Options process = {.executable = DaemonExecutable(),
                                   .arguments = DaemonFlags(*directory, options.num_ranks),
                                   .error_file = directory->File("log")};
  if (options.operator_address) process.arguments.push_back("--operator_address=127.0.0.1:0");
  if (options.metrics_address) process.arguments.push_back("--metrics_address=127.0.0.1:0");
  process.arguments.insert(process.arguments.end(), options.flags.begin(), options.flags.end());
  absl::StatusOr<std::unique_ptr<ChildProcess>> daemon = ChildProcess::Start(process);
  if (!daemon.ok()) return daemon.status();
  if (!AwaitFile(directory->path(), "ready.json", **daemon, inotify.get())) {
    return absl::UnavailableError(
        absl::StrCat(process.executable, " does not serve; its log:\n", ReadFile(directory->File("log"))));
  }
  return std::unique_ptr<TestCluster>(new TestCluster(std::move(directory), *std::move(daemon)));
}

TestCluster::TestCluster(std::unique_ptr<TemporaryDirectory> directory, std::unique_ptr<ChildProcess> daemon)
    : directory_(std::move(directory)),
      daemon_(std::move(daemon)),
      channel_(NewChannel()),
      parameters_(v1::ParameterService::NewStub(channel_)),
      admin_(v1::AdminService::NewStub(channel_)) {}

TestCluster::~TestCluster() {
  if (testing::Test::HasFailure()) std::cerr << "the daemon's log:\n" << Log() << std::endl;
}

std::string TestCluster::Address(const std::string& name) const {
  google::protobuf::Struct addresses;
  const auto parsed = google::protobuf::util::JsonStringToMessage(ReadFile(directory_->File("ready.json")), &addresses);
  const auto found = addresses.fields().find(name);
  return parsed.ok() && found != addresses.fields().end() ? found->second.string_value() : "";
}

std::string TestCluster::Log() const { return ReadFile(directory_->File("log")); }

std::shared_ptr<grpc::Channel> TestCluster::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel("unix:" + worker_socket(), grpc::InsecureChannelCredentials(), arguments);
}

v1::GetStatusResponse TestCluster::GetStatus() {
  grpc::ClientContext context;
  v1::GetStatusResponse response;
  const grpc::Status status = admin_->GetStatus(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

v1::ModelStatus TestCluster::GetModel(const std::string& name) {
  v1::GetStatusResponse status = GetStatus();
  for (v1::ModelStatus& model : *status.mutable_models()) {
    if (model.name() == name) return std::move(model);
  }
  return {};
}

bool TestCluster::AwaitModel(const std::string& name, const std::function<bool(const v1::ModelStatus&)>& holds) {
  const absl::Time deadline = absl::Now() + kAwaitTimeout;
  while (!holds(GetModel(name))) {
    if (absl::Now() > deadline) return false;
  }
  return true;
}

absl::Status TestCluster::RegisterModel(const v1::ModelSpec& spec) {
  grpc::ClientContext context;
  v1::RegisterModelRequest request;
  *request.mutable_spec() = spec;
  v1::RegisterModelResponse response;
  const grpc::Status status = parameters_->RegisterModel(&context, request, &response);
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace holdfast
