#include "tests/client/scripted_daemon.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/memory_handover.h"

namespace holdfast {

ScriptedDaemon::ScriptedDaemon()
    : layout_(std::make_shared<const ModelLayout>(*ModelLayout::Create(SmallModelSpec(), 2))),
      memory_(layout_, Rank(0)) {
  std::string pattern = (std::filesystem::temp_directory_path() / "holdfast_test.XXXXXX").string();
  directory_ = ::mkdtemp(pattern.data());
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("unix:", directory_, "/worker.sock"), grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();

  listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = absl::StrCat(directory_, "/memory.sock");
  std::memcpy(address.sun_path, path.data(), path.size());
  EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::listen(listener_.get(), 8), 0);
  memory_thread_ = std::thread([this] { ServeMemory(); });
}

ScriptedDaemon::~ScriptedDaemon() {
  Die();
  ::shutdown(listener_.get(), SHUT_RDWR);
  memory_thread_.join();
  std::filesystem::remove_all(directory_);
}

ClientOptions ScriptedDaemon::client_options() const {
  ClientOptions options;
  options.address = absl::StrCat(directory_, "/worker.sock");
  options.call_timeout = absl::Seconds(30);
  options.reattach_timeout = absl::Milliseconds(100);
  return options;
}

void ScriptedDaemon::SendEvent(const v1::GroupEvent& event) {
  absl::MutexLock lock(&mu_);
  events_.push_back(event);
}

void ScriptedDaemon::Die() {
  {
    absl::MutexLock lock(&mu_);
    dying_ = true;
  }
  server_->Shutdown(std::chrono::system_clock::now());
}

std::vector<v1::GatherRequest> ScriptedDaemon::gathers() const {
  absl::MutexLock lock(&mu_);
  return gathers_;
}

std::vector<v1::ReleaseRequest> ScriptedDaemon::releases() const {
  absl::MutexLock lock(&mu_);
  return releases_;
}

v1::BeginUpdateRequest ScriptedDaemon::last_begin() const {
  absl::MutexLock lock(&mu_);
  return last_begin_;
}

grpc::Status ScriptedDaemon::Attach(grpc::ServerContext* context, const v1::AttachRequest*,
                                    grpc::ServerWriter<v1::AttachResponse>* writer) {
  v1::AttachResponse first;
  v1::Attached& attached = *first.mutable_attached();
  attached.set_lease(77);
  attached.set_memory_token(std::string(kMemoryTokenBytes, 't'));
  attached.set_memory_socket(absl::StrCat(directory_, "/memory.sock"));
  *attached.mutable_spec() = layout_->spec();
  attached.mutable_spec()->mutable_mesh()->set_num_replicate(1);
  attached.mutable_spec()->mutable_mesh()->set_num_shard(2);
  attached.set_fingerprint(FingerprintText(layout_->fingerprint()));
  attached.mutable_arenas()->Add(memory_.arenas().begin(), memory_.arenas().end());
  attached.mutable_state()->set_epoch(1);
  attached.mutable_state()->set_initialized(true);
  if (change_attached) change_attached(first);
  writer->Write(first);
  while (!context->IsCancelled()) {
    std::vector<v1::GroupEvent> events;
    {
      absl::MutexLock lock(&mu_);
      const auto something = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return dying_ || !events_.empty(); };
      mu_.AwaitWithTimeout(absl::Condition(&something), absl::Milliseconds(10));
      events.swap(events_);
      if (dying_) break;
    }
    for (const v1::GroupEvent& event : events) {
      v1::AttachResponse message;
      *message.mutable_event() = event;
      writer->Write(message);
    }
  }
  return grpc::Status::OK;
}

void ScriptedDaemon::FillTicket(const std::string& unit, v1::GatherTicket& ticket) const {
  const int32_t index = layout_->FindUnit(unit)->value();
  ticket.set_unit(unit);
  ticket.set_slot(static_cast<uint32_t>(index));
  ticket.set_completion(static_cast<uint64_t>(index) + 1);
}

grpc::Status ScriptedDaemon::Gather(grpc::ServerContext*, const v1::GatherRequest* request,
                                    v1::GatherResponse* response) {
  FillTicket(request->unit(), *response->mutable_unit());
  for (const std::string& unit : request->prefetch()) FillTicket(unit, *response->add_prefetch());
  {
    absl::MutexLock lock(&mu_);
    gathers_.push_back(*request);
  }
  return change_gather ? change_gather(*request, *response) : grpc::Status::OK;
}

grpc::Status ScriptedDaemon::Release(grpc::ServerContext*, const v1::ReleaseRequest* request, v1::ReleaseResponse*) {
  absl::MutexLock lock(&mu_);
  releases_.push_back(*request);
  return grpc::Status::OK;
}

grpc::Status ScriptedDaemon::BeginUpdate(grpc::ServerContext*, const v1::BeginUpdateRequest* request,
                                         v1::BeginUpdateResponse*) {
  absl::MutexLock lock(&mu_);
  last_begin_ = *request;
  return grpc::Status::OK;
}

grpc::Status ScriptedDaemon::ReduceScatter(grpc::ServerContext*, const v1::ReduceScatterRequest*,
                                           v1::ReduceScatterResponse*) {
  return grpc::Status::OK;
}

grpc::Status ScriptedDaemon::Pull(grpc::ServerContext*, const v1::PullRequest*,
                                  grpc::ServerWriter<v1::PullResponse>* writer) {
  for (const v1::PullResponse& piece : pull_pieces) writer->Write(piece);
  return grpc::Status::OK;
}

void ScriptedDaemon::ServeMemory() {
  for (;;) {
    const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;
    std::string token(kMemoryTokenBytes, '\0');
    if (::recv(connection.get(), token.data(), token.size(), MSG_WAITALL) != static_cast<ssize_t>(token.size()))
      continue;
    MemoryAnswer answer = MemoryAnswer::Grant(memory_.Hand().descriptors);
    while (!answer.Send(connection.get()).value_or(true)) {
    }
  }
}

}  // namespace holdfast
