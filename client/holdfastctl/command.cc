#include "client/holdfastctl/command.h"

#include "client/holdfastctl/daemon_channel.h"

namespace holdfast::ctl {
namespace {

constexpr FlagSpec kJson = {"json", "", "prints the daemon's answer as JSON"};
constexpr FlagSpec kAddress = {"address", "ADDRESS", kAddressHelp};
constexpr FlagSpec kTimeout = {"timeout", "DURATION", "how long to wait for the daemon; 10s if not given"};

constexpr FlagSpec kStatusFlags[] = {
    kJson, {"ranks", "", "adds a table of the ranks and who holds them"}, kAddress, kTimeout};
constexpr FlagSpec kModelsFlags[] = {kJson, kAddress, kTimeout};
constexpr FlagSpec kDropFlags[] = {
    {"force", "", "drops it though workers hold leases: their calls are aborted"}, kAddress, kTimeout};
constexpr FlagSpec kDrainFlags[] = {
    {"grace_period", "DURATION", "how long leases may go on; the daemon's own setting if not given"},
    kAddress,
    kTimeout};
constexpr FlagSpec kPullFlags[] = {{"out", "DIRECTORY", "where the files go; required, and made if it is not there"},
                                   {"ema", "NAME", "pulls that EMA copy, not the model itself"},
                                   {"dtype", "DTYPE", "lets the daemon convert: float32, bfloat16, float16 or float64"},
                                   kAddress,
                                   kTimeout};

constexpr Command kCommands[] = {
    {"status", "", "the daemon and its models at a glance", 0, 0, kStatusFlags, &RunStatus},
    {"models", "", "what is registered", 0, 0, kModelsFlags, &RunModels},
    {"drop", "MODEL", "forgets a model and frees its memory", 1, 1, kDropFlags, &RunDrop},
    {"drain", "", "lets the daemon end: no new leases, then out", 0, 0, kDrainFlags, &RunDrain},
    {"pull", "MODEL [NAME...]", "writes tensors, by name or glob (all if none is given), as .npy files", 1, kAnyNumber,
     kPullFlags, &RunPull},
    {"config check",
     "FILE",
     "checks a configuration of holdfastd, and shows it with its defaults",
     1,
     1,
     {},
     &RunConfigCheck},
};

}  // namespace

absl::Span<const Command> AllCommands() { return kCommands; }

}  // namespace holdfast::ctl
