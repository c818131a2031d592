#include "server/core/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/spec_difference.h"

namespace holdfast {
namespace {

std::string DescribeMemory(const ModelLayout& layout) {
  return absl::StrJoin(layout.Memory(), ", ", [](std::string* out, const v1::MemoryUse& use) {
    absl::StrAppend(out, v1::MemoryPurpose_Name(use.purpose()), " ", use.size_bytes());
  });
}

}  // namespace

Registry::Registry(std::vector<Device*> devices, CollectivesFactory collectives, Observer& observer,
                   const RegistryOptions& options)
    : devices_(std::move(devices)),
      collectives_(std::move(collectives)),
      observer_(observer),
      options_(options),
      staging_(options.pull_staging_bytes) {}

Registry::~Registry() {
  // Names, not models: Drop waits until nobody else holds the model.
  std::vector<std::string> names;
  for (const std::shared_ptr<Model>& model : models()) names.push_back(model->layout().name());
  for (const std::string& name : names) Drop(name, /*force=*/true).IgnoreError();
}

absl::Status Registry::CheckFits(const ModelLayout& layout) const {
  const int64_t needed = layout.BytesPerRank() * num_ranks();
  const int64_t used = memory_used_bytes();
  if (options_.memory_limit_bytes > 0 && needed > options_.memory_limit_bytes - used) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("model '%s' needs %d bytes on %d ranks (each: %s); the limit is %d bytes (memory_limit_bytes), "
                        "of which %d are taken; drop a model, raise the limit, or use fewer slots",
                        layout.name(), needed, num_ranks(), DescribeMemory(layout), options_.memory_limit_bytes, used));
  }
  std::map<Device*, int64_t> needed_of;
  for (Device* device : devices_) needed_of[device] += layout.BytesPerRank();
  for (const auto& [device, bytes] : needed_of) {
    // The rest is left to the system and to the workers, whatever the limit says.
    const int64_t usable = device->AvailableBytes() / 10 * 9;
    if (bytes <= usable) continue;
    return absl::ResourceExhaustedError(absl::StrFormat(
        "model '%s' needs %d bytes on device %s (each rank: %s); %d are usable (90 %% of what is free); "
        "drop a model, shard over more ranks, or use fewer slots",
        layout.name(), bytes, device->name(), DescribeMemory(layout), usable));
  }
  return absl::OkStatus();
}

absl::StatusOr<Registry::Registered> Registry::Register(const v1::ModelSpec& spec) {
  absl::StatusOr<ModelLayout> layout = ModelLayout::Create(spec, num_ranks());
  if (!layout.ok()) return layout.status();
  absl::MutexLock lock(&register_mu_);
  if (absl::StatusOr<std::shared_ptr<Model>> existing = Find(spec.name()); existing.ok()) {
    const std::string difference = FirstDifference((*existing)->layout().spec(), layout->spec());
    if (difference.empty()) return Registered{.model = *std::move(existing), .created = false};
    return absl::AlreadyExistsError(absl::StrFormat(
        "another model is registered as '%s': %s; use its spec, another name, or drop it", spec.name(), difference));
  }
  if (absl::Status status = CheckNotDraining(); !status.ok()) return status;
  if (absl::Status status = CheckFits(*layout); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Collectives>> collectives = collectives_(layout->mesh());
  if (!collectives.ok()) return collectives.status();
  observer_.ModelRegistered(*layout, num_ranks());
  absl::StatusOr<std::unique_ptr<Model>> created =
      Model::Create(*std::move(layout), devices_, *std::move(collectives), observer_,
                    {.collective_timeout = options_.collective_timeout, .staging = &staging_});
  if (!created.ok()) {
    observer_.ModelDropped(spec.name());
    return created.status();
  }
  std::shared_ptr<Model> model = *std::move(created);
  absl::MutexLock map_lock(&mu_);
  models_[spec.name()] = model;
  return Registered{.model = std::move(model), .created = true};
}

absl::StatusOr<std::shared_ptr<Model>> Registry::Find(std::string_view name) const {
  absl::MutexLock lock(&mu_);
  const auto found = models_.find(name);
  if (found != models_.end()) return found->second;
  const std::string known = absl::StrJoin(
      models_, ", ", [](std::string* out, const auto& entry) { absl::StrAppend(out, "'", entry.first, "'"); });
  return absl::NotFoundError(
      absl::StrFormat("model: no model '%s' is registered; registered: %s", name, known.empty() ? "none" : known));
}

std::vector<std::shared_ptr<Model>> Registry::models() const {
  absl::MutexLock lock(&mu_);
  std::vector<std::shared_ptr<Model>> models;
  for (const auto& [name, model] : models_) models.push_back(model);
  return models;
}

absl::StatusOr<int64_t> Registry::Drop(std::string_view name, bool force) {
  absl::MutexLock lock(&register_mu_);
  absl::StatusOr<std::shared_ptr<Model>> found = Find(name);
  if (!found.ok()) return found.status();
  if (const int32_t leases = (*found)->NumLeases(); leases > 0 && !force) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%d workers hold leases on model '%s'; end them first, or drop it by force", leases, name));
  }
  std::shared_ptr<Model> model = *std::move(found);
  {
    absl::MutexLock map_lock(&mu_);
    models_.erase(models_.find(name));
  }
  // Calls that found the model before it left the map keep it for their moment; none of them is on the model's own
  // thread for longer, and the model must not end there.
  while (model.use_count() > 1) absl::SleepFor(absl::Milliseconds(1));
  const int64_t freed = model->total_bytes();
  model.reset();
  observer_.ModelDropped(name);
  return freed;
}

void Registry::StartDrain() {
  {
    absl::MutexLock lock(&mu_);
    draining_ = true;
  }
  for (const std::shared_ptr<Model>& model : models()) {
    model->Announce({.reason = "the daemon is draining: finish the step", .draining = true});
  }
}

bool Registry::draining() const {
  absl::MutexLock lock(&mu_);
  return draining_;
}

absl::Status Registry::CheckNotDraining() const {
  if (!draining()) return absl::OkStatus();
  return absl::UnavailableError("the daemon is draining and takes no new work; try its successor");
}

bool Registry::AwaitNoLeases(absl::Time deadline) const {
  for (const std::shared_ptr<Model>& model : models()) {
    if (!model->AwaitNoLeases(deadline)) return false;
  }
  return true;
}

int64_t Registry::memory_used_bytes() const {
  int64_t used = 0;
  for (const std::shared_ptr<Model>& model : models()) used += model->total_bytes();
  return used;
}

std::shared_ptr<Model> Registry::FindByToken(std::string_view token) const {
  for (std::shared_ptr<Model>& model : models()) {
    if (model->HasToken(token)) return std::move(model);
  }
  return nullptr;
}

absl::StatusOr<std::vector<UniqueFd>> Registry::ClaimMemory(std::string_view token, pid_t pid) {
  const std::shared_ptr<Model> model = FindByToken(token);
  if (model == nullptr) {
    return absl::PermissionDeniedError("the memory token is of no lease that is held; attach again");
  }
  return model->ClaimMemory(token, pid);
}

void Registry::ConnectionClosed(std::string_view token) {
  if (const std::shared_ptr<Model> model = FindByToken(token)) model->MemoryReturned(token, "gave its memory back");
}

void Registry::ProcessDied(std::string_view token, pid_t pid) {
  static_cast<void>(pid);  // The lease knows it.
  if (const std::shared_ptr<Model> model = FindByToken(token)) model->MemoryReturned(token, "died");
}

}  // namespace holdfast
