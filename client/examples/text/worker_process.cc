#include "client/examples/text/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace text {

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(const std::string& executable,
                                                                    const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe for a worker's output");
  holdfast::UniqueFd read_end(ends[0]), write_end(ends[1]);

  std::vector<char*> argv = {const_cast<char*>(executable.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, executable.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start '", executable, "'"));
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, std::move(read_end)));
}

WorkerProcess::WorkerProcess(pid_t pid, holdfast::UniqueFd output) : pid_(pid), output_(std::move(output)) {}

WorkerProcess::~WorkerProcess() { Kill(); }

std::vector<std::string> WorkerProcess::ReadLines() {
  std::array<char, 4096> buffer;
  ssize_t size;
  do {
    size = ::read(output_.get(), buffer.data(), buffer.size());
  } while (size < 0 && errno == EINTR);
  if (size <= 0) {
    output_.reset();
    return {};
  }
  rest_.append(buffer.data(), static_cast<size_t>(size));
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(rest_.substr(begin, end - begin));
  }
  rest_.erase(0, begin);
  return lines;
}

void WorkerProcess::Kill() {
  if (gone_) return;
  ::kill(pid_, SIGKILL);
  Wait().IgnoreError();
}

absl::Status WorkerProcess::Wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, absl::StrCat("cannot wait for worker process ", pid_));
  }
  gone_ = true;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  if (WIFEXITED(status)) {
    return absl::InternalError(absl::StrCat("worker process ", pid_, " exited with ", WEXITSTATUS(status)));
  }
  return absl::InternalError(absl::StrCat("worker process ", pid_, " was ended by signal ", WTERMSIG(status), " (",
                                          strsignal(WTERMSIG(status)), ")"));
}

}  // namespace text
