#include "server/core/operation_table.h"

#include <algorithm>
#include <utility>

namespace holdfast {

Operation& OperationTable::Open(Sequence sequence, const OperationKey& key) {
  for (auto& [completion, operation] : operations_) {
    if (operation.sequence == sequence && !operation.launched) return operation;
  }
  last_ = last_.Next();
  return operations_
      .emplace(last_, Operation{.completion = last_,
                                .sequence = sequence,
                                .key = key,
                                .slots = std::vector<int32_t>(static_cast<size_t>(num_ranks_), -1)})
      .first->second;
}

Operation* OperationTable::Find(Completion completion) {
  const auto found = operations_.find(completion);
  return found == operations_.end() ? nullptr : &found->second;
}

Operation OperationTable::Close(Completion completion) {
  auto node = operations_.extract(completion);
  return std::move(node.mapped());
}

std::vector<Operation> OperationTable::CloseUnlaunched() {
  std::vector<Operation> closed;
  for (auto next = operations_.begin(); next != operations_.end();) {
    const auto current = next++;
    if (!current->second.launched) closed.push_back(std::move(operations_.extract(current).mapped()));
  }
  return closed;
}

bool OperationTable::AllEndedBefore(Sequence sequence) const {
  return std::none_of(operations_.begin(), operations_.end(), [sequence](const auto& entry) {
    // One that was launched in an ended epoch counts too: what it reads must not be written yet.
    return entry.second.launched || entry.second.sequence < sequence;
  });
}

std::optional<Operation::Waiter> OperationTable::TakeWaiter(CallId call) {
  for (auto& [completion, operation] : operations_) {
    for (auto waiter = operation.waiters.begin(); waiter != operation.waiters.end(); ++waiter) {
      if (waiter->call != call) continue;
      Operation::Waiter taken = std::move(*waiter);
      operation.waiters.erase(waiter);
      return taken;
    }
  }
  return std::nullopt;
}

absl::Time OperationTable::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [completion, operation] : operations_) {
    if (operation.launched) continue;
    for (const Operation::Waiter& waiter : operation.waiters) next = std::min(next, waiter.deadline);
  }
  return next;
}

std::vector<std::pair<Sequence, Operation::Waiter>> OperationTable::TakeExpired(absl::Time now) {
  std::vector<std::pair<Sequence, Operation::Waiter>> expired;
  for (auto& [completion, operation] : operations_) {
    if (operation.launched) continue;
    for (auto waiter = operation.waiters.begin(); waiter != operation.waiters.end();) {
      if (waiter->deadline > now) {
        ++waiter;
        continue;
      }
      expired.emplace_back(operation.sequence, std::move(*waiter));
      waiter = operation.waiters.erase(waiter);
    }
  }
  return expired;
}

}  // namespace holdfast
