#include "client/gather_tickets.h"

#include <algorithm>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"

namespace holdfast {

absl::StatusOr<GatherTickets::Plan> GatherTickets::Begin(UnitIndex unit, absl::Span<const UnitIndex> prefetch) {
  absl::btree_set<UnitIndex> wanted(prefetch.begin(), prefetch.end());
  wanted.insert(unit);
  const auto num_held =
      std::count_if(tickets_.begin(), tickets_.end(), [](const auto& t) { return !t.second.released; });
  const auto num_new = std::count_if(wanted.begin(), wanted.end(), [this](UnitIndex u) { return !Holds(u); });
  if (num_held + num_new > num_slots_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(num_held, " units are held and ", num_new, " more are asked for, but there are ", num_slots_,
                     " gather slots: release units first, prefetch fewer, or raise gather_slots in the model's spec"));
  }
  Plan plan;
  plan.needs_call = Hold(unit);
  plan.unit = {unit, tickets_[unit].promise};
  for (const UnitIndex other : prefetch) {
    if (Hold(other)) plan.prefetch.push_back({other, tickets_[other].promise});
  }
  plan.needs_call = plan.needs_call || !plan.prefetch.empty();
  if (plan.needs_call) plan.released = TakeReleased();
  return plan;
}

void GatherTickets::Release(UnitIndex unit) {
  if (const auto it = tickets_.find(unit); it != tickets_.end()) it->second.released = true;
}

std::vector<GatherTickets::Entry> GatherTickets::TakeReleased() {
  std::vector<Entry> released;
  for (auto it = tickets_.begin(); it != tickets_.end();) {
    if (!it->second.released) {
      ++it;
      continue;
    }
    released.push_back({it->first, std::move(it->second.promise)});
    it = tickets_.erase(it);
  }
  return released;
}

bool GatherTickets::Holds(UnitIndex unit) const {
  const auto it = tickets_.find(unit);
  return it != tickets_.end() && !it->second.released;
}

bool GatherTickets::Hold(UnitIndex unit) {
  Ticket& ticket = tickets_[unit];
  ticket.released = false;
  if (ticket.promise != nullptr) return false;
  ticket.promise = std::make_shared<Promise<GatherPlace>>();
  return true;
}

}  // namespace holdfast
