#include "tests/fuzz/fuzz_driver.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "holdfast/v1/admin_service.pb.h"
#include "tests/fuzz/fuzz_vocabulary.h"

namespace holdfast {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A call that is not answered by then waits for something.
constexpr absl::Duration kAtOnce = absl::Milliseconds(5);
// One that is not answered by then, whatever happens, never is.
constexpr absl::Duration kEver = absl::Seconds(60);
constexpr size_t kMaxWorkers = 12;

std::string ParameterCall(const std::string& method) { return "/holdfast.v1.ParameterService/" + method; }

}  // namespace

FuzzDriver::FuzzDriver(FuzzDaemon& daemon, Choices& choices)
    : daemon_(daemon), choices_(choices), methods_(FuzzMethods()), mutator_(choices, FuzzWords()) {}

FuzzDriver::~FuzzDriver() {
  while (!workers_.empty()) Detach(workers_.size() - 1);
}

void FuzzDriver::Run() {
  switch (choices_.Below(12)) {
    case 0:
      return RunStep(/*disturb=*/choices_.OneIn(2));
    case 1:
      return RunTogether(/*wild=*/false);
    case 2:
      return AttachSomewhere();
    case 3:
      if (!workers_.empty()) Detach(choices_.Below(workers_.size()));
      return;
    case 4:
      return PullSomething();
    case 5:
      return RegisterSomething();
    default:
      RunAlone();
  }
}

void FuzzDriver::RunWild() {
  switch (choices_.Below(8)) {
    case 0:
      return AttachSomewhere();
    case 1:
      return PullSomething();
    case 2:
      return RegisterSomething();
    default:
      RunTogether(/*wild=*/true);
  }
}

bool FuzzDriver::RunAlone() {
  const FuzzMethod& method = methods_[choices_.Below(methods_.size())];
  bool is_message = true;
  const std::string bytes = SomeRequest(method, is_message);
  const std::string before = daemon_.State();
  Calls call;
  call.push_back(Start(method.path, bytes, absl::ZeroDuration()));
  const bool at_once = call[0]->Await(kAtOnce);
  AwaitAll(call);
  Judge(*call[0], is_message, /*wild=*/false);
  const grpc::Status& status = call[0]->status();
  // The one refusal that has an effect: the ranks disagree, and must start the epoch again.
  if (!at_once || status.ok() || absl::StrContains(status.error_message(), "ranks disagree")) return false;
  ++num_compared_;
  if (const std::string after = daemon_.State(); after != before) {
    Fault(absl::StrCat(method.path, " was refused (", status.error_message(), "), but the state went from\n", before,
                       "to\n", after));
  }
  return true;
}

void FuzzDriver::RunTogether(bool wild) {
  Calls calls;
  std::vector<bool> are_messages;
  for (uint64_t count = 2 + choices_.Below(10); count > 0; --count) {
    const FuzzMethod& method = methods_[choices_.Below(methods_.size())];
    bool is_message = true;
    const std::string bytes = SomeRequest(method, is_message);
    const absl::Duration deadline = wild && choices_.OneIn(3) ? absl::Milliseconds(2) : absl::ZeroDuration();
    calls.push_back(Start(method.path, bytes, deadline));
    are_messages.push_back(is_message);
    if (wild && choices_.OneIn(3)) calls[choices_.Below(calls.size())]->Cancel();
  }
  AwaitAll(calls);
  for (size_t i = 0; i < calls.size(); ++i) Judge(*calls[i], are_messages[i], wild);
}

void FuzzDriver::AttachSomewhere() {
  v1::AttachRequest request = AttachRequestOf(FuzzModels()[choices_.Below(FuzzModels().size())],
                                              static_cast<uint32_t>(choices_.Below(FuzzDaemon::kWorld)));
  if (choices_.OneIn(2)) mutator_.Mutate(request);
  ++num_requests_;
  auto worker = std::make_unique<RawWorker>(daemon_.parameters(), std::move(request));
  if (!worker->status().ok()) {
    ++num_refused_;
    return;
  }
  workers_.push_back(std::move(worker));
  if (workers_.size() > kMaxWorkers) Detach(0);
}

void FuzzDriver::PullSomething() {
  v1::PullRequest request;
  request.set_model("base");
  for (uint64_t count = choices_.Below(3); count > 0; --count) mutator_.Mutate(request);
  ++num_requests_;
  grpc::ClientContext context;
  const auto reader = daemon_.parameters().Pull(&context, request);
  v1::PullResponse response;
  for (uint64_t count = choices_.Below(8); count > 0 && reader->Read(&response); --count) {
  }
  const bool cancelled = choices_.OneIn(2);
  if (cancelled) context.TryCancel();
  while (reader->Read(&response)) {
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) ++num_refused_;
  if (status.error_code() == grpc::StatusCode::UNKNOWN || status.error_code() == grpc::StatusCode::INTERNAL) {
    Fault(absl::StrCat("Pull: ", status.error_message(), "\n", request.DebugString()));
  }
}

void FuzzDriver::RegisterSomething() {
  v1::RegisterModelRequest request;
  *request.mutable_spec() = FuzzSpec(FuzzModels()[choices_.Below(FuzzModels().size())]);
  for (uint64_t count = choices_.Below(4); count > 0; --count) mutator_.Mutate(*request.mutable_spec());
  Calls call;
  call.push_back(Start(ParameterCall("RegisterModel"), request.SerializeAsString(), absl::ZeroDuration()));
  AwaitAll(call);
  Judge(*call[0], /*is_message=*/true, /*wild=*/false);
}

void FuzzDriver::RunStep(bool disturb) {
  if (!PrepareBase()) return;
  const auto undisturbed = [&] { return !disturb || !choices_.OneIn(2) || RunAlone(); };
  v1::BeginUpdateRequest begin;
  v1::CommitUpdateRequest commit;
  if (!workers_.empty() && !FindWorker("base", 0)->state().initialized()) {
    begin.set_kind(v1::UPDATE_KIND_INITIALIZE);
    if (!OnAllRanks("BeginUpdate", begin) || !OnAllRanks("CommitUpdate", commit)) return;
    begin.clear_kind();
  }
  v1::GatherRequest gather;
  gather.set_unit("a");
  gather.add_prefetch("b");
  if (!undisturbed() || !OnAllRanks("Gather", gather)) return;
  sequence_ += 1;
  gather.Clear();
  gather.set_unit("d");
  gather.add_release("a");
  if (!undisturbed() || !OnAllRanks("Gather", gather)) return;
  for (const std::string unit : {"d", "b"}) {
    v1::ReduceScatterRequest reduce;
    reduce.set_unit(unit);
    reduce.set_gradient_slot(unit == "d" ? 0 : 1);
    if (!undisturbed() || !OnAllRanks("ReduceScatter", reduce)) return;
  }
  if (!undisturbed() || !OnAllRanks("BeginUpdate", begin)) return;
  commit.set_ema_step(choices_.OneIn(2));
  if (!undisturbed()) return;
  OnAllRanks("CommitUpdate", commit);
}

bool FuzzDriver::PrepareBase() {
  Calls call;
  v1::RegisterModelRequest request;
  *request.mutable_spec() = FuzzSpec("base");
  call.push_back(Start(ParameterCall("RegisterModel"), request.SerializeAsString(), absl::ZeroDuration()));
  AwaitAll(call);
  // A changed spec may have taken the name, or other models the memory: make room.
  if (!call[0]->status().ok()) {
    for (const std::string& model : FuzzModels()) {
      v1::DropModelRequest drop;
      drop.set_model(model);
      drop.set_force(true);
      call.push_back(Start("/holdfast.v1.AdminService/DropModel", drop.SerializeAsString(), absl::ZeroDuration()));
    }
    AwaitAll(call);
    Flush();
    return false;
  }
  Flush();
  for (uint32_t rank = 0; rank < FuzzDaemon::kWorld; ++rank) {
    if (FindWorker("base", rank) != nullptr) continue;
    ++num_requests_;
    auto worker = std::make_unique<RawWorker>(daemon_.parameters(), AttachRequestOf("base", rank));
    if (!worker->status().ok()) {
      Fault(absl::StrCat("rank ", rank, " of 'base' is free, but: ", worker->status().error_message()));
      return false;
    }
    workers_.push_back(std::move(worker));
  }
  // The first of these may end an epoch that the others then have to enter.
  Flush();
  Flush();
  sequence_ = 0;
  return true;
}

bool FuzzDriver::OnAllRanks(const std::string& method, Message& request) {
  const FieldDescriptor& call_field = *request.GetDescriptor()->FindFieldByName("call");
  Calls calls;
  for (uint32_t rank = 0; rank < FuzzDaemon::kWorld; ++rank) {
    v1::CallHeader header = FindWorker("base", rank)->Header(sequence_);
    request.GetReflection()->MutableMessage(&request, &call_field)->CopyFrom(header);
    calls.push_back(Start(ParameterCall(method), request.SerializeAsString(), absl::ZeroDuration()));
  }
  ++sequence_;
  bool all = true;
  for (const std::unique_ptr<FuzzCall>& call : calls) {
    if (!call->Await(kEver)) {
      Fault(absl::StrCat(method, " on all ranks of 'base' waits, though all have come"));
      Flush();
      call->Await(kEver);
      all = false;
    } else if (!call->status().ok()) {
      Fault(absl::StrCat(method, " on all ranks of 'base': ", call->status().error_message()));
      all = false;
    }
  }
  return all;
}

std::unique_ptr<FuzzCall> FuzzDriver::Start(const std::string& path, const std::string& bytes,
                                            absl::Duration deadline) {
  ++num_requests_;
  return std::make_unique<FuzzCall>(daemon_.channel(), path, bytes, deadline);
}

std::string FuzzDriver::SomeRequest(const FuzzMethod& method, bool& is_message) {
  if (choices_.OneIn(16)) {
    is_message = false;
    return choices_.Bytes(200);
  }
  const std::unique_ptr<Message> request(method.request->New());
  if (choices_.OneIn(12)) {
    mutator_.Fill(*request);
  } else {
    FillRight(*request);
    for (uint64_t count = choices_.Below(3); count > 0; --count) mutator_.Mutate(*request);
  }
  std::string bytes = request->SerializeAsString();
  if (choices_.OneIn(24) && !bytes.empty()) {
    is_message = false;
    bytes[choices_.Below(bytes.size())] ^= static_cast<char>(1 << choices_.Below(8));
  }
  return bytes;
}

void FuzzDriver::FillRight(Message& request) {
  const google::protobuf::Descriptor& type = *request.GetDescriptor();
  const google::protobuf::Reflection& reflection = *request.GetReflection();
  if (const FieldDescriptor* call = type.FindFieldByName("call"); call != nullptr && !workers_.empty()) {
    const v1::CallHeader header = workers_[choices_.Below(workers_.size())]->Header(sequence_ + choices_.Below(3));
    reflection.MutableMessage(&request, call)->CopyFrom(header);
  }
  if (const FieldDescriptor* unit = type.FindFieldByName("unit")) {
    reflection.SetString(&request, unit, FuzzUnits()[choices_.Below(FuzzUnits().size())]);
  }
  if (const FieldDescriptor* model = type.FindFieldByName("model")) {
    reflection.SetString(&request, model, FuzzModels()[choices_.Below(FuzzModels().size())]);
  }
  if (const FieldDescriptor* spec = type.FindFieldByName("spec")) {
    reflection.MutableMessage(&request, spec)->CopyFrom(FuzzSpec(FuzzModels()[choices_.Below(FuzzModels().size())]));
  }
}

RawWorker* FuzzDriver::FindWorker(const std::string& model, uint32_t rank) {
  for (const std::unique_ptr<RawWorker>& worker : workers_) {
    if (worker->model() == model && worker->rank() == rank) return worker.get();
  }
  return nullptr;
}

void FuzzDriver::Flush() {
  for (size_t i = workers_.size(); i-- > 0;) {
    ++num_requests_;
    const grpc::Status status = workers_[i]->Rejoin();
    if (status.ok()) continue;
    if (status.error_code() != grpc::StatusCode::ABORTED && status.error_code() != grpc::StatusCode::NOT_FOUND) {
      Fault(absl::StrCat("Rejoin: ", status.error_message()));
    }
    Detach(i);
  }
}

void FuzzDriver::AwaitAll(const Calls& calls) {
  for (const std::unique_ptr<FuzzCall>& call : calls) {
    const absl::Time deadline = absl::Now() + kEver;
    // Again and again, as the call may only get there when the epoch has ended once.
    while (!call->Await(kAtOnce)) {
      if (absl::Now() > deadline) {
        Fault(absl::StrCat(call->path(), " is never answered"));
        call->Cancel();
        call->Await(absl::InfiniteDuration());
        break;
      }
      Flush();
    }
  }
}

void FuzzDriver::Judge(const FuzzCall& call, bool is_message, bool wild) {
  const grpc::Status& status = call.status();
  if (!status.ok()) ++num_refused_;
  switch (status.error_code()) {
    case grpc::StatusCode::INTERNAL:
      // gRPC's own answer to bytes that are no message.
      if (is_message) Fault(absl::StrCat(call.path(), ": INTERNAL ", status.error_message()));
      return;
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      if (wild) return;
      [[fallthrough]];
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS:
      return Fault(absl::StrCat(call.path(), ": code ", status.error_code(), " ", status.error_message()));
    default:
      return;
  }
}

void FuzzDriver::Fault(const std::string& what) {
  faults_.push_back(absl::StrCat("request ", num_requests_, ": ", what));
}

void FuzzDriver::Detach(size_t index) {
  v1::RejoinRequest request;
  *request.mutable_call() = workers_[index]->Header();
  workers_.erase(workers_.begin() + static_cast<ptrdiff_t>(index));
  const absl::Time deadline = absl::Now() + kEver;
  while (CallOnce(daemon_.parameters(), &ParameterStub::Rejoin, request).ok()) {
    if (absl::Now() > deadline) return Fault("a lease outlives its stream");
  }
}

}  // namespace holdfast
