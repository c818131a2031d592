// status and models.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/holdfastctl/command.h"
#include "client/holdfastctl/daemon_channel.h"
#include "client/holdfastctl/print_json.h"
#include "client/holdfastctl/table.h"
#include "common/dtype.h"
#include "holdfast/v1/admin_service.grpc.pb.h"

namespace holdfast::ctl {
namespace {

// Whole seconds, from seconds on.
std::string AgeText(const google::protobuf::Timestamp& since) {
  const absl::Duration age = absl::Now() - absl::FromUnixSeconds(since.seconds()) - absl::Nanoseconds(since.nanos());
  return absl::FormatDuration(absl::Trunc(std::max(age, absl::ZeroDuration()), absl::Seconds(1)));
}

// LEASE_STATE_HELD → held.
std::string LeaseText(v1::LeaseState state) {
  const std::string name = v1::LeaseState_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "LEASE_STATE_"));
}

// FULL_SHARD 1×4.
std::string MeshText(const v1::Mesh& mesh) {
  const std::string strategy = v1::ShardingStrategy_Name(mesh.strategy());
  const std::string name(absl::StripPrefix(strategy, "SHARDING_STRATEGY_"));
  // A registered spec may leave them to the strategy.
  if (mesh.num_replicate() == 0 || mesh.num_shard() == 0) return name;
  return absl::StrCat(name, " ", mesh.num_replicate(), "×", mesh.num_shard());
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

// "3 held, 1 free".
std::string LeasesText(const v1::ModelStatus& model) {
  std::map<v1::LeaseState, int> counts;
  for (const v1::RankStatus& rank : model.ranks()) ++counts[rank.lease()];
  std::vector<std::string> parts;
  for (const v1::LeaseState state : {v1::LEASE_STATE_HELD, v1::LEASE_STATE_MAPPED, v1::LEASE_STATE_FREE}) {
    if (counts[state] > 0) parts.push_back(absl::StrCat(counts[state], " ", LeaseText(state)));
  }
  return OrDash(absl::StrJoin(parts, ", "));
}

// "default@120".
std::string EmasText(const v1::ModelState& state) {
  const auto with_step = [](std::string* out, const v1::EmaState& ema) {
    absl::StrAppend(out, ema.name(), "@", ema.step());
  };
  return OrDash(absl::StrJoin(state.emas(), ", ", with_step));
}

std::string ConditionText(const v1::ModelState& state) {
  if (state.torn()) return "torn: initialise or load it";
  return state.initialized() ? "ready" : "not initialised";
}

uint64_t RankBytes(const v1::ModelStatus& model) {
  uint64_t size_bytes = 0;
  for (const v1::MemoryUse& use : model.memory()) size_bytes += use.size_bytes();
  return size_bytes;
}

void PrintStatus(const v1::GetStatusResponse& status, std::ostream& out) {
  out << "holdfastd " << status.version() << " (" << status.backend() << "), " << status.num_ranks() << " ranks, up "
      << AgeText(status.started()) << ", " << BytesText(status.memory_used_bytes()) << " of models";
  if (status.memory_limit_bytes() > 0) out << ", limit " << BytesText(status.memory_limit_bytes());
  out << (status.draining() ? ", DRAINING\n" : "\n");
  if (status.models().empty()) return;
  out << '\n';
  Table table({"MODEL", "STATE", "STEP", "EPOCH", "COMMITTED", "MESH", "PARAMETERS", "BYTES/RANK", "LEASES", "EMA"});
  for (const v1::ModelStatus& model : status.models()) {
    table.AddRow({model.name(), ConditionText(model.state()), absl::StrCat(model.state().step()),
                  absl::StrCat(model.state().epoch()),
                  model.has_last_commit() ? absl::StrCat(AgeText(model.last_commit()), " ago") : "-",
                  MeshText(model.mesh()), CountText(model.num_elements()), BytesText(RankBytes(model)),
                  LeasesText(model), EmasText(model.state())});
  }
  table.Print(out);
}

void PrintRanks(const v1::GetStatusResponse& status, std::ostream& out) {
  Table table({"MODEL", "RANK", "LEASE", "PID", "SEQUENCE", "UPDATING"});
  for (const v1::ModelStatus& model : status.models()) {
    for (const v1::RankStatus& rank : model.ranks()) {
      table.AddRow({model.name(), absl::StrCat(rank.rank()), LeaseText(rank.lease()),
                    rank.pid() == 0 ? "-" : absl::StrCat(rank.pid()), absl::StrCat(rank.sequence()),
                    rank.updating() ? "yes" : "no"});
    }
  }
  out << '\n';
  table.Print(out);
}

// "param bfloat16, reduce float32"; what is not said is the parameter's own dtype.
std::string PrecisionText(const v1::Precision& precision) {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* place, v1::DataType dtype) {
    if (dtype != v1::DATA_TYPE_UNSPECIFIED)
      parts.push_back(absl::StrCat(place, " ", std::string(Name(FromProto(dtype)))));
  };
  add("param", precision.param());
  add("reduce", precision.reduce());
  add("master", precision.master());
  add("buffer", precision.buffer());
  return OrDash(absl::StrJoin(parts, ", "));
}

void PrintModels(const v1::ListModelsResponse& models, std::ostream& out) {
  Table table({"MODEL", "UNITS", "PARAMETERS", "BUFFERS", "MESH", "PRECISION", "EMA"});
  for (const v1::ModelSpec& model : models.models()) {
    int num_parameters = 0;
    int num_buffers = 0;
    for (const v1::UnitSpec& unit : model.units()) {
      num_parameters += unit.parameters_size();
      num_buffers += unit.buffers_size();
    }
    const auto name = [](std::string* text, const v1::EmaSpec& ema) { text->append(ema.name()); };
    table.AddRow({model.name(), absl::StrCat(model.units_size()), absl::StrCat(num_parameters),
                  absl::StrCat(num_buffers), MeshText(model.mesh()), PrecisionText(model.precision()),
                  OrDash(absl::StrJoin(model.emas(), ", ", name))});
  }
  table.Print(out);
}

}  // namespace

absl::Status RunStatus(const Arguments& arguments, std::ostream& out) {
  const absl::StatusOr<DaemonChannel> daemon = DaemonChannel::Open(arguments);
  if (!daemon.ok()) return daemon.status();
  const std::unique_ptr<v1::AdminService::Stub> admin = v1::AdminService::NewStub(daemon->channel());
  v1::GetStatusResponse response;
  const absl::Status status =
      daemon->Call(*admin, &v1::AdminService::Stub::GetStatus, v1::GetStatusRequest(), response);
  if (!status.ok()) return status;
  if (arguments.Has("json")) return PrintJson(response, out);
  PrintStatus(response, out);
  if (arguments.Has("ranks")) PrintRanks(response, out);
  return absl::OkStatus();
}

absl::Status RunModels(const Arguments& arguments, std::ostream& out) {
  const absl::StatusOr<DaemonChannel> daemon = DaemonChannel::Open(arguments);
  if (!daemon.ok()) return daemon.status();
  const std::unique_ptr<v1::AdminService::Stub> admin = v1::AdminService::NewStub(daemon->channel());
  v1::ListModelsResponse response;
  const absl::Status status =
      daemon->Call(*admin, &v1::AdminService::Stub::ListModels, v1::ListModelsRequest(), response);
  if (!status.ok()) return status;
  if (arguments.Has("json")) return PrintJson(response, out);
  PrintModels(response, out);
  return absl::OkStatus();
}

}  // namespace holdfast::ctl
