// The collective operations of a model that have not ended.
#ifndef HOLDFAST_SERVER_CORE_OPERATION_TABLE_H_
#define HOLDFAST_SERVER_CORE_OPERATION_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "server/core/calls.h"
#include "server/core/collective_gate.h"

namespace holdfast {

// One sequence number of one epoch, from the first rank's arrival until the work is done.
struct Operation {
  // A call that is answered when the operation ends.
  struct Waiter {
    Rank rank;
    CallId call;
    // Peers that have not arrived by then are reported to it.
    absl::Time deadline;
    absl::AnyInvocable<void(absl::Status)> done;
  };

  Completion completion;
  Sequence sequence;
  OperationKey key;
  // Every rank has arrived: it will be done, whatever happens to its callers.
  bool launched = false;
  // By rank: the gather or gradient slot that takes part; −1 for none.
  std::vector<int32_t> slots;
  std::vector<Waiter> waiters;
};

// Not thread-safe.
class OperationTable {
 public:
  explicit OperationTable(int32_t num_ranks) : num_ranks_(num_ranks) {}

  // The operation that is open at `sequence` and not launched; a new one if there is none.
  Operation& Open(Sequence sequence, const OperationKey& key);
  // Null if it has ended.
  Operation* Find(Completion completion);
  // Takes it out: it has ended.
  Operation Close(Completion completion);
  // Takes out all that are not launched: their epoch has ended.
  std::vector<Operation> CloseUnlaunched();
  // True if every operation of the current epoch before `sequence` has ended.
  bool AllEndedBefore(Sequence sequence) const;

  // Takes the waiting call out of whatever it waits for.
  std::optional<Operation::Waiter> TakeWaiter(CallId call);
  // The earliest deadline at which somebody waits for peers; InfiniteFuture for none.
  absl::Time NextDeadline() const;
  // Takes out the calls that have waited for peers too long, each with the number it waited at.
  std::vector<std::pair<Sequence, Operation::Waiter>> TakeExpired(absl::Time now);

  Completion last_completion() const { return last_; }

 private:
  const int32_t num_ranks_;
  Completion last_;
  std::map<Completion, Operation> operations_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_OPERATION_TABLE_H_
