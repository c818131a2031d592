#include "tests/server/handover/worker_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace holdfast {

WorkerProcess::WorkerProcess(const std::string& mode, const std::string& path, const std::string& token, size_t count) {
  int input[2];
  int output[2];
  EXPECT_EQ(::pipe2(input, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(output, O_CLOEXEC), 0);
  const UniqueFd child_input(input[0]);
  input_.reset(input[1]);
  output_.reset(output[0]);
  const UniqueFd child_output(output[1]);
  std::array<std::string, 5> arguments = {MEMORY_WORKER, mode, path, token, std::to_string(count)};
  std::array<char*, 6> argv = {};
  for (size_t i = 0; i < arguments.size(); ++i) argv[i] = arguments[i].data();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, child_input.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, child_output.get(), STDOUT_FILENO);
  EXPECT_EQ(::posix_spawn(&pid_, MEMORY_WORKER, &actions, nullptr, argv.data(), environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
}

WorkerProcess::~WorkerProcess() { Kill(); }

std::string WorkerProcess::ReadLine() {
  std::string line;
  char c = 0;
  while (::read(output_.get(), &c, 1) == 1 && c != '\n') line.push_back(c);
  return line;
}

void WorkerProcess::Kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  Reap();
}

void WorkerProcess::Finish() {
  input_.reset();
  Reap();
}

void WorkerProcess::Reap() {
  if (pid_ <= 0) return;
  EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  pid_ = -1;
}

}  // namespace holdfast
