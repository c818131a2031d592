// How a client reaches its daemon, and how long it waits.
#ifndef HOLDFAST_CLIENT_OPTIONS_H_
#define HOLDFAST_CLIENT_OPTIONS_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace holdfast {

struct ClientOptions {
  // The daemon's worker socket, as a path ("/run/holdfast/worker.sock"); or, for RegisterModel and Pull only, its
  // operator address ("127.0.0.1:7700"). Required.
  std::string address;
  // How long Connect waits for the daemon to listen.
  absl::Duration connect_timeout = absl::Seconds(10);
  // The deadline of every call. Keep it above the daemon's collective_timeout, so that the daemon is the one to say
  // which ranks did not come.
  absl::Duration call_timeout = absl::Seconds(90);
  // How long Rejoin tries to get back to a daemon that is gone: it retries all that time, then says why it failed.
  absl::Duration reattach_timeout = absl::Seconds(60);
  // Told in a line of plain text what goes on while the client reconnects. Called from the thread that called Rejoin.
  std::function<void(std::string_view)> on_progress;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_OPTIONS_H_
