#include "tests/integration/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace holdfast {
namespace {

// Between fork and exec: only what is safe in a signal handler.
[[noreturn]] void Become(char* const* argv, int input, int output, int error) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  if (error >= 0) ::dup2(error, STDERR_FILENO);
  ::execv(argv[0], argv);
  ::_exit(127);
}

}  // namespace

bool AwaitReadable(int fd, absl::Time deadline) {
  while (true) {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    pollfd poll_fd = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&poll_fd, 1, static_cast<int>(std::min<int64_t>(milliseconds, 60'000)));
    if (ready > 0) return true;
    if (absl::Now() >= deadline) return false;
  }
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const Options& options) {
  int input[2], output[2];
  if (::pipe2(input, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  UniqueFd input_read(input[0]), input_write(input[1]);
  if (::pipe2(output, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  UniqueFd output_read(output[0]), output_write(output[1]);
  UniqueFd error;
  if (!options.error_file.empty()) {
    error.reset(::open(options.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!error) return absl::ErrnoToStatus(errno, options.error_file);
  }
  std::vector<char*> argv = {const_cast<char*>(options.executable.c_str())};
  for (const std::string& argument : options.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
  if (pid == 0) Become(argv.data(), input_read.get(), output_write.get(), error.get());
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, std::move(input_write), std::move(output_read)));
}

ChildProcess::ChildProcess(pid_t pid, UniqueFd input, UniqueFd output)
    : pid_(pid),
      pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
      input_(std::move(input)),
      output_(std::move(output)) {}

ChildProcess::~ChildProcess() { Kill(); }

std::optional<std::string> ChildProcess::ReadLine(absl::Time deadline) {
  while (true) {
    if (const size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    if (!AwaitReadable(output_.get(), deadline)) return std::nullopt;
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(output_.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    pending_.append(buffer.data(), static_cast<size_t>(count));
  }
}

bool ChildProcess::WriteLine(const std::string& line) {
  // A pipe whose reader has died raises SIGPIPE; the test must not die of it.
  static const bool ignored = ::signal(SIGPIPE, SIG_IGN) != SIG_ERR;
  const std::string bytes = line + "\n";
  return ignored && ::write(input_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

void ChildProcess::Signal(int signal) {
  // After Wait the number may be another process's.
  if (!end_.has_value()) ::kill(pid_, signal);
}

std::optional<ProcessEnd> ChildProcess::Wait(absl::Time deadline) {
  if (end_.has_value() || !AwaitReadable(pidfd_.get(), deadline)) return end_;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  end_ = WIFEXITED(status) ? ProcessEnd{.exit_code = WEXITSTATUS(status)} : ProcessEnd{.signal = WTERMSIG(status)};
  return end_;
}

void ChildProcess::Kill() {
  Signal(SIGKILL);
  Wait(absl::InfiniteFuture());
}

}  // namespace holdfast
