#include "client/gather_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"
#include "common/futex.h"

namespace holdfast {
namespace {

// Nothing wakes the word of a daemon that died: so often it is looked whether the lease is still held.
constexpr absl::Duration kLookUp = absl::Milliseconds(50);
// The daemon voids words and tells why at the same time, on two ways.
constexpr absl::Duration kReasonTimeout = absl::Seconds(5);

}  // namespace

std::optional<absl::StatusOr<GatheredSlot>> GatherSource::Await(absl::Time deadline) {
  {
    absl::MutexLock lock(&mu_);
    if (result_.has_value()) return result_;
  }
  std::optional<absl::StatusOr<GatheredSlot>> result = AwaitOnce(deadline);
  if (!result.has_value()) return std::nullopt;
  absl::MutexLock lock(&mu_);
  if (!result_.has_value()) result_ = std::move(result);
  return result_;
}

std::optional<absl::StatusOr<GatheredSlot>> GatherSource::AwaitOnce(absl::Time deadline) const {
  // The ticket's own call has a deadline: no second one is needed here.
  std::optional<absl::StatusOr<GatherPlace>> place = wait_.entry.ticket->Await(deadline);
  if (!place.has_value()) return std::nullopt;
  if (!place->ok()) return absl::StatusOr<GatheredSlot>(place->status());
  return AwaitWord(**place, deadline);
}

std::optional<absl::StatusOr<GatheredSlot>> GatherSource::AwaitWord(const GatherPlace& place,
                                                                    absl::Time deadline) const {
  const CompletionWord& word = wait_.memory->GatherWord(place.slot);
  for (;;) {
    const absl::Time until = std::min({deadline, wait_.deadline, absl::Now() + kLookUp});
    switch (WaitForCompletion(word, place.completion, until)) {
      case WaitResult::kDone:
        return GatheredSlot{.unit = wait_.entry.unit, .slot = place.slot, .hit = place.hit};
      case WaitResult::kVoid:
        return absl::StatusOr<GatheredSlot>(WhyVoid());
      case WaitResult::kTimeout:
        break;
    }
    if (absl::Status status = wait_.standing->StatusOf(wait_.generation); !status.ok()) {
      return absl::StatusOr<GatheredSlot>(Annotate(status, wait_.caller));
    }
    const absl::Time now = absl::Now();
    if (now >= wait_.deadline) {
      absl::Status late = absl::DeadlineExceededError(
          absl::StrCat(wait_.caller, ": the unit did not arrive in gather slot ", place.slot,
                       " within the call's deadline; a peer, or the daemon, stands still"));
      wait_.standing->Fail(wait_.generation, late);
      return absl::StatusOr<GatheredSlot>(std::move(late));
    }
    if (now >= deadline) return std::nullopt;
  }
}

absl::Status GatherSource::WhyVoid() const {
  absl::Status reason = wait_.standing->AwaitFailure(wait_.generation, absl::Now() + kReasonTimeout);
  if (reason.ok()) {
    reason = absl::AbortedError(
        "what the gather slot holds is void: the epoch has ended, or the unit was released before it was waited for; "
        "call Rejoin");
    wait_.standing->Fail(wait_.generation, reason);
  }
  return Annotate(reason, wait_.caller);
}

}  // namespace holdfast
