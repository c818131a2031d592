#include "client/examples/text/worker_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <string>
#include <vector>

namespace text {
namespace {

std::vector<std::string> ReadAll(WorkerProcess& worker) {
  std::vector<std::string> all;
  while (worker.output() >= 0) {
    for (std::string& line : worker.ReadLines()) all.push_back(std::move(line));
  }
  return all;
}

TEST(WorkerProcessTest, Output_ComesAsWholeLines) {
  auto worker = WorkerProcess::Start("/bin/sh", {"-c", "echo one; printf 'two\\nthr'; printf 'ee\\nunended'"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(ReadAll(**worker), (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_TRUE((*worker)->Wait().ok());
}

TEST(WorkerProcessTest, Wait_TellsHowItEnded) {
  auto worker = WorkerProcess::Start("/bin/sh", {"-c", "exit 3"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_NE((*worker)->Wait().message().find("exited with 3"), std::string::npos);
  worker = WorkerProcess::Start("/bin/sh", {"-c", "kill -TERM $$"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_NE((*worker)->Wait().message().find("signal 15"), std::string::npos);
}

TEST(WorkerProcessTest, Kill_WhatWasWrittenCanStillBeRead) {
  auto worker = WorkerProcess::Start("/bin/sh", {"-c", "echo ready; exec cat /dev/zero >/dev/null"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  std::vector<std::string> lines = (*worker)->ReadLines();
  (*worker)->Kill();
  EXPECT_EQ(::kill((*worker)->pid(), 0), -1);
  EXPECT_EQ(errno, ESRCH);
  for (std::string& line : ReadAll(**worker)) lines.push_back(std::move(line));
  EXPECT_EQ(lines, (std::vector<std::string>{"ready"}));
}

TEST(WorkerProcessTest, Destroyed_TheProcessIsGone) {
  auto worker = WorkerProcess::Start("/bin/cat", {"/dev/zero"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  const pid_t pid = (*worker)->pid();
  worker->reset();
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(WorkerProcessTest, Start_NoSuchProgram_IsNamed) {
  const auto worker = WorkerProcess::Start("/nowhere/worker", {});
  EXPECT_EQ(worker.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(worker.status().message().find("/nowhere/worker"), std::string::npos);
}

}  // namespace
}  // namespace text
