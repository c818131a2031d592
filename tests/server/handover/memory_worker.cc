// memory_worker MODE PATH TOKEN COUNT: receives memory as a worker does, prints a line about it, and keeps it until its
// standard input ends.
//   hold   prints "ok"
//   fork   forks a child that keeps everything, too, and prints "ok PID" with the child's pid
//   nobody becomes user 65534 first
// A failure is printed as "error CODE TEXT".
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/memory_handover.h"

namespace {

void WaitForEndOfInput() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string mode = argv[1];
  if (mode == "nobody" && ::setuid(65534) != 0) return 2;
  const absl::StatusOr<holdfast::ReceivedMemory> memory =
      holdfast::ReceiveMemory(argv[2], argv[3], std::strtoul(argv[4], nullptr, 10), absl::Now() + absl::Seconds(60));
  if (!memory.ok()) {
    std::printf("error %d %s\n", static_cast<int>(memory.status().code()),
                std::string(memory.status().message()).c_str());
    return 1;
  }
  if (mode == "fork") {
    const pid_t child = ::fork();
    if (child == 0) {
      WaitForEndOfInput();
      return 0;
    }
    std::printf("ok %d\n", child);
  } else {
    std::printf("ok\n");
  }
  std::fflush(stdout);
  WaitForEndOfInput();
  return 0;
}
