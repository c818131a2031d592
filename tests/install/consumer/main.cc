// A trainer outside of the tree, as far as it can go without a daemon.
#include <iostream>
#include <memory>

#include "client/client.h"

int main() {
  const absl::StatusOr<std::unique_ptr<holdfast::Client>> client =
      holdfast::Client::Connect({.address = "/nonexistent/worker.sock", .connect_timeout = absl::Milliseconds(10)});
  std::cout << client.status() << "\n";
  return absl::IsUnavailable(client.status()) ? 0 : 1;
}
