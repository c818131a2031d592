// What the calls of a worker carry and bring, as the core sees them.
#ifndef HOLDFAST_SERVER_CORE_CALLS_H_
#define HOLDFAST_SERVER_CORE_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"

namespace holdfast {

// Called once, from any thread, with no lock held.
template <typename T>
using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;

// Names a call that waits, so that it can be cancelled; unique in the process.
using CallId = Id<struct CallIdTag, uint64_t>;

// v1::CallHeader, less the model's name.
struct CallContext {
  CallId id;
  LeaseId lease;
  Epoch epoch;
  Step step;
  Sequence sequence;
};

struct GatherTicket {
  UnitIndex unit;
  int32_t slot = 0;
  Completion completion;
  bool hit = false;
};

struct GatherResult {
  GatherTicket unit;
  std::vector<GatherTicket> prefetch;
};

struct Nothing {};

enum class UpdateKind : uint8_t { kOptimizer, kInitialize };

struct EmaResult {
  std::string name;
  bool applied = false;
  double decay = 1;
  uint64_t num_updates = 0;
};

struct EmaPosition {
  std::string name;
  Step step;
  uint64_t num_updates = 0;
};

// v1::ModelState.
struct ModelPosition {
  Epoch epoch;
  Step step;
  bool initialized = false;
  bool torn = false;
  std::vector<EmaPosition> emas;
  std::vector<std::string> resident_units;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_CALLS_H_
