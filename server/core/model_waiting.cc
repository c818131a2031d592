// How a waiting call of a Model ends without its peers: cancelled, or too late.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/core/model.h"

namespace holdfast {

void Model::CancelCall(CallId call, const absl::Status& reason) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  if (std::optional<Operation::Waiter> waiter = operations_.TakeWaiter(call)) {
    after.Add([done = std::move(waiter->done), reason]() mutable { done(reason); });
    return;
  }
  for (RankState& rank : ranks_) {
    for (auto early = rank.early_calls.begin(); early != rank.early_calls.end(); ++early) {
      if (early->second.call != call) continue;
      EarlyCall cancelled = std::move(rank.early_calls.extract(early).mapped());
      return cancelled.turn(reason, after);
    }
  }
  const auto begin = std::find_if(waiting_begins_.begin(), waiting_begins_.end(),
                                  [call](const WaitingBegin& waiting) { return waiting.call == call; });
  if (begin == waiting_begins_.end()) return;
  after.Add([done = std::move(begin->done), reason]() mutable { done(reason); });
  waiting_begins_.erase(begin);
}

absl::Time Model::NextDeadline() const {
  absl::Time next = operations_.NextDeadline();
  for (const WaitingBegin& begin : waiting_begins_) next = std::min(next, begin.deadline);
  for (const RankState& rank : ranks_) {
    for (const auto& [sequence, early] : rank.early_calls) next = std::min(next, early.deadline);
  }
  return next;
}

void Model::WatchDeadlines() {
  while (true) {
    Callbacks after;
    absl::MutexLock lock(&mu_);
    const absl::Time next = NextDeadline();
    const auto changed = [this, next]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return stopping_ || NextDeadline() < next; };
    mu_.AwaitWithDeadline(absl::Condition(&changed), next);
    if (stopping_) return;
    ExpireCalls(absl::Now(), after);
  }
}

void Model::ExpireCalls(absl::Time now, Callbacks& after) {
  const auto late = [this](Sequence sequence) ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    const std::string ranks = absl::StrJoin(gate_.Missing(sequence), ", ", [this](std::string* out, Rank rank) {
      mu_.AssertReaderHeld();
      absl::StrAppend(out, "rank ", rank.value());
      const Lease& lease = leases_.lease(rank);
      lease.state == LeaseState::kHeld
          ? absl::StrAppend(out, " (process ", lease.pid, ", at ", gate_.next(rank).value(), ")")
          : absl::StrAppend(out, " (no worker)");
    });
    return absl::DeadlineExceededError(absl::StrFormat("waited %s at sequence %d of epoch %d of model '%s' for %s",
                                                       absl::FormatDuration(options_.collective_timeout),
                                                       sequence.value(), epoch_.value(), layout_.name(), ranks));
  };
  for (auto& [sequence, waiter] : operations_.TakeExpired(now)) {
    after.Add([done = std::move(waiter.done), status = late(sequence)]() mutable { done(status); });
  }
  for (size_t i = 0; i < ranks_.size(); ++i) {
    std::map<Sequence, EarlyCall>& early_calls = ranks_[i].early_calls;
    for (auto early = early_calls.begin(); early != early_calls.end();) {
      const auto current = early++;
      if (current->second.deadline > now) continue;
      const absl::Status status = absl::DeadlineExceededError(
          absl::StrFormat("call.sequence: %d waited %s for its turn; rank %d has not made its call %d of epoch %d",
                          current->first.value(), absl::FormatDuration(options_.collective_timeout), i,
                          gate_.next(Rank(static_cast<int32_t>(i))).value(), epoch_.value()));
      EarlyCall late_call = std::move(early_calls.extract(current).mapped());
      late_call.turn(status, after);
    }
  }
  for (auto begin = waiting_begins_.begin(); begin != waiting_begins_.end();) {
    if (begin->deadline > now) {
      ++begin;
      continue;
    }
    const Sequence before(begin->sequence.value() == 0 ? 0 : begin->sequence.value() - 1);
    after.Add([done = std::move(begin->done), status = late(before)]() mutable { done(status); });
    begin = waiting_begins_.erase(begin);
  }
}

}  // namespace holdfast
