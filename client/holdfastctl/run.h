// holdfastctl, less its process.
#ifndef HOLDFAST_CLIENT_HOLDFASTCTL_RUN_H_
#define HOLDFAST_CLIENT_HOLDFASTCTL_RUN_H_

#include <ostream>
#include <string>
#include <vector>

namespace holdfast::ctl {

// What a script can rely on.
enum ExitCode : int {
  kDone = 0,
  // The daemon said no, or a file could not be written.
  kFailed = 1,
  // Wrong arguments, or a configuration that `config check` found wrong.
  kUsage = 2,
  // No daemon there, or no answer in time.
  kUnreachable = 3,
};

// `arguments` without the program's name. Results go to `out`, and what is wrong to `err`.
ExitCode Run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace holdfast::ctl

#endif  // HOLDFAST_CLIENT_HOLDFASTCTL_RUN_H_
