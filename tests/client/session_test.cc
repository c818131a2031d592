// A session against a daemon that does what the real one does not do, or not when a test needs it.
#include "client/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/client/scripted_daemon.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr UnitIndex kRoot(0), kLayer(1);

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class SessionTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Session>> Attach(WorkerOptions options = {}) {
    absl::StatusOr<std::shared_ptr<Connection>> connection = Connection::Open(daemon_.client_options());
    if (!connection.ok()) return connection.status();
    return Session::Attach(*std::move(connection), "small", Rank(0), std::move(options));
  }

  // Both units are there.
  void CompleteGathers() {
    daemon_.memory().SetGatherWord(0, DoneValue(Completion(1)));
    daemon_.memory().SetGatherWord(1, DoneValue(Completion(2)));
  }

  ScriptedDaemon daemon_;
};

TEST_F(SessionTest, Attach_MapsTheMemoryAndTakesTheState) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->layout().fingerprint(), daemon_.layout().fingerprint());
  EXPECT_EQ((*session)->state().epoch(), 1u);
  EXPECT_TRUE((*session)->status().ok());
}

TEST_F(SessionTest, Attach_WhatTheDaemonSaysWronglyIsRefused) {
  const struct {
    std::string message;
    absl::StatusCode code;
    std::function<void(v1::AttachResponse&)> change;
  } cases[] = {
      {"fingerprint 0123456789abcdef", absl::StatusCode::kFailedPrecondition,
       [](v1::AttachResponse& r) { r.mutable_attached()->set_fingerprint("0123456789abcdef"); }},
      {"whose mesh is 0×2", absl::StatusCode::kInternal,
       [](v1::AttachResponse& r) { r.mutable_attached()->mutable_spec()->mutable_mesh()->set_num_replicate(0); }},
      {"the daemon's spec", absl::StatusCode::kInvalidArgument,
       [](v1::AttachResponse& r) { r.mutable_attached()->mutable_spec()->mutable_units(0)->set_name("layer"); }},
      {"expected", absl::StatusCode::kInternal,
       [](v1::AttachResponse& r) { r.mutable_attached()->mutable_arenas(0)->set_size_bytes(4096); }},
      {"receiving the rank's memory", absl::StatusCode::kInternal,
       [](v1::AttachResponse& r) { r.mutable_attached()->mutable_arenas()->RemoveLast(); }},
      {"receiving the rank's memory", absl::StatusCode::kUnavailable,
       [](v1::AttachResponse& r) { r.mutable_attached()->set_memory_socket("/nonexistent/memory.sock"); }},
      {"has no lease in it", absl::StatusCode::kInternal,
       [](v1::AttachResponse& r) { r.mutable_event()->set_draining(true); }},
  };
  for (const auto& test : cases) {
    daemon_.change_attached = test.change;
    const auto session = Attach();
    ASSERT_FALSE(session.ok()) << test.message;
    EXPECT_EQ(session.status().code(), test.code) << session.status();
    EXPECT_THAT(Message(session.status()), HasSubstr(test.message));
    EXPECT_THAT(Message(session.status()), StartsWith("rank 0 of 'small': Attach: "));
  }
}

TEST_F(SessionTest, Gather_TakesANumberForEachUnitItAsksFor) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  CompleteGathers();
  ASSERT_TRUE((*session)->Gather(kRoot, {kLayer}).Wait().ok());
  ASSERT_TRUE((*session)->Gather(kLayer, {kRoot}).Wait().ok()) << "both are held: no call, no number";
  ASSERT_TRUE((*session)->Release(kRoot).ok());
  ASSERT_TRUE((*session)->FlushReleases().ok());
  ASSERT_TRUE((*session)->Gather(kLayer, {kRoot}).Wait().ok()) << "the unit held is named again, for the prefetch";
  ASSERT_TRUE((*session)->Gather(kRoot, {}).Wait().ok());
  EXPECT_TRUE((*session)->BeginUpdate(v1::UPDATE_KIND_OPTIMIZER).ok());

  const auto gathers = daemon_.gathers();
  ASSERT_EQ(gathers.size(), 2u);
  EXPECT_EQ(gathers[0].call().sequence(), 0u);
  EXPECT_EQ(gathers[0].call().lease(), 77u);
  EXPECT_THAT(gathers[0].prefetch(), ElementsAre("layer"));
  EXPECT_EQ(gathers[1].unit(), "layer");
  EXPECT_EQ(gathers[1].call().sequence(), 2u);
  EXPECT_THAT(gathers[1].prefetch(), ElementsAre("root"));
  EXPECT_EQ(daemon_.last_begin().call().sequence(), 4u);
}

TEST_F(SessionTest, Release_IsToldWithTheNextGather) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  CompleteGathers();
  ASSERT_TRUE((*session)->Gather(kRoot, {}).Wait().ok());
  ASSERT_TRUE((*session)->Release(kRoot).ok());
  ASSERT_TRUE((*session)->Gather(kLayer, {}).Wait().ok());
  const auto gathers = daemon_.gathers();
  ASSERT_EQ(gathers.size(), 2u);
  EXPECT_THAT(gathers[0].release(), IsEmpty());
  EXPECT_THAT(gathers[1].release(), ElementsAre("root"));
  EXPECT_THAT(daemon_.releases(), IsEmpty());
}

TEST_F(SessionTest, FlushReleases_TellsAtOnceAndOnce) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  CompleteGathers();
  ASSERT_TRUE((*session)->Gather(kRoot, {}).Wait().ok());
  ASSERT_TRUE((*session)->Release(kRoot).ok());
  ASSERT_TRUE((*session)->FlushReleases().ok());
  ASSERT_TRUE((*session)->FlushReleases().ok());
  ASSERT_EQ(daemon_.releases().size(), 1u);
  EXPECT_THAT(daemon_.releases()[0].units(), ElementsAre("root"));
}

TEST_F(SessionTest, Gather_OfAPrefetchedUnitWaitsForItsWordOnly) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  daemon_.memory().SetGatherWord(0, DoneValue(Completion(1)));
  ASSERT_TRUE((*session)->Gather(kRoot, {kLayer}).Wait().ok());
  const Future<GatheredSlot> layer = (*session)->Gather(kLayer, {});
  EXPECT_FALSE(layer.ready());
  std::thread daemon([this] { daemon_.memory().SetGatherWord(1, DoneValue(Completion(2))); });
  const auto slot = layer.Wait();
  daemon.join();
  ASSERT_TRUE(slot.ok()) << slot.status();
  EXPECT_EQ(slot->slot, 1);
  EXPECT_EQ(daemon_.gathers().size(), 1u);
}

TEST_F(SessionTest, Gather_ResultStaysWhenTheWordMovesOn) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  CompleteGathers();
  const Future<GatheredSlot> root = (*session)->Gather(kRoot, {});
  ASSERT_TRUE(root.Wait().ok());
  daemon_.memory().SetGatherWord(0, DoneValue(Completion(9)));
  EXPECT_TRUE(root.Wait().ok());
}

TEST_F(SessionTest, Gather_VoidWordBringsTheReasonOfTheEvent) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  daemon_.memory().SetGatherWord(0, DoneValue(Completion(1)));
  ASSERT_TRUE((*session)->Gather(kRoot, {kLayer}).Wait().ok());
  daemon_.memory().SetGatherWord(1, VoidValue(Completion(2)));
  v1::GroupEvent event;
  event.set_epoch(2);
  event.set_reason("rank 1 (process 4711) died");
  daemon_.SendEvent(event);
  const auto slot = (*session)->Gather(kLayer, {}).Wait();
  EXPECT_EQ(slot.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Message(slot.status()), HasSubstr("rank 1 (process 4711) died"));
  EXPECT_THAT(Message(slot.status()), StartsWith("rank 0 of 'small': Gather('layer'): "));
}

TEST_F(SessionTest, Gather_DaemonDiesWhileAWordIsWaitedFor) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  daemon_.memory().SetGatherWord(0, DoneValue(Completion(1)));
  ASSERT_TRUE((*session)->Gather(kRoot, {kLayer}).Wait().ok());
  const Future<GatheredSlot> layer = (*session)->Gather(kLayer, {});
  std::thread daemon([this] { daemon_.Die(); });
  const auto slot = layer.Wait();
  daemon.join();
  EXPECT_FALSE(slot.ok());
  EXPECT_THAT(Message(slot.status()), HasSubstr("the lease is lost"));
  EXPECT_FALSE((*session)->status().ok());
  // Nobody is there to attach to: it says so, and after how many attempts.
  const auto state = (*session)->Rejoin();
  EXPECT_EQ(state.status().code(), absl::StatusCode::kUnavailable) << state.status();
  EXPECT_THAT(Message(state.status()), HasSubstr("given up after"));
  // The memory is given back, its addresses are not.
  const FlatParameter& flat = (*session)->layout().units()[0].flat_parameters[0];
  EXPECT_EQ(*(*session)->memory()->Shard(flat), std::byte{0});
}

TEST_F(SessionTest, Gather_TicketThatLiesIsRefusedAndPutsTheRankOutOfStep) {
  const struct {
    std::string message;
    std::function<void(v1::GatherResponse&)> change;
  } cases[] = {
      {"gather slot 3; there are 3", [](v1::GatherResponse& r) { r.mutable_unit()->set_slot(3); }},
      {"gather slot 4294967295", [](v1::GatherResponse& r) { r.mutable_prefetch(0)->set_slot(~0u); }},
      {"answered with unit 'layer', expected 'root'",
       [](v1::GatherResponse& r) { r.mutable_unit()->set_unit("layer"); }},
      {"answered for 0 prefetched units, expected 1", [](v1::GatherResponse& r) { r.clear_prefetch(); }},
      {"answered for 2 prefetched units, expected 1",
       [](v1::GatherResponse& r) { r.add_prefetch()->set_unit("root"); }},
  };
  CompleteGathers();
  for (const auto& test : cases) {
    daemon_.change_gather = [&test](const v1::GatherRequest&, v1::GatherResponse& response) {
      test.change(response);
      return grpc::Status::OK;
    };
    auto session = Attach();
    ASSERT_TRUE(session.ok()) << session.status();
    const Future<GatheredSlot> root = (*session)->Gather(kRoot, {kLayer});
    const auto layer = (*session)->Gather(kLayer, {}).Wait();
    EXPECT_EQ(layer.status().code(), absl::StatusCode::kInternal) << test.message;
    EXPECT_THAT(Message((*session)->status()), HasSubstr(test.message));
    // What comes later fails with the same reason and without a call.
    const size_t num_calls = daemon_.gathers().size();
    const absl::Status begin = (*session)->BeginUpdate(v1::UPDATE_KIND_OPTIMIZER);
    EXPECT_THAT(Message(begin), HasSubstr(test.message));
    EXPECT_EQ(daemon_.gathers().size(), num_calls);
  }
}

TEST_F(SessionTest, Gather_RefusedHereLeavesTheRankInStep) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->Gather(UnitIndex(2), {}).Wait().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ((*session)->Gather(kRoot, {UnitIndex(-1)}).Wait().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ((*session)->Release(UnitIndex(9)).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ((*session)->ClaimGradient(UnitIndex(9)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE((*session)->status().ok());
  EXPECT_THAT(daemon_.gathers(), IsEmpty());
}

TEST_F(SessionTest, ClaimGradient_ZeroesThePadding) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  const FlatParameter& flat = daemon_.layout().units()[0].flat_parameters[0];
  auto* slot =
      reinterpret_cast<float*>(daemon_.memory().data(v1::MEMORY_PURPOSE_GRADIENT_SLOTS) + flat.gradient_slot_offset);
  ASSERT_EQ(flat.num_elements, 15);
  slot[14] = slot[15] = 5;
  const auto claim = (*session)->ClaimGradient(kRoot);
  ASSERT_TRUE(claim.ok()) << claim.status();
  ASSERT_EQ(claim->slot(), 0);
  EXPECT_EQ(slot[14], 5);
  EXPECT_EQ(slot[15], 0);
}

TEST_F(SessionTest, ReduceScatter_GivesItsSlotBackWhenItIsAnswered) {
  auto session = Attach();
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 8; ++i) {
    auto claim = (*session)->ClaimGradient(kRoot);
    ASSERT_TRUE(claim.ok()) << claim.status();
    const Future<void> reduced = (*session)->ReduceScatter(*std::move(claim), false);
    if (i % 2 == 0) {
      EXPECT_TRUE(reduced.Wait().ok());
    }
  }
}

TEST_F(SessionTest, Events_ReachTheHookAndDrainingShows) {
  Promise<v1::GroupEvent> heard;
  auto session = Attach({.on_event = [&heard](const v1::GroupEvent& event) { heard.Set(event); }});
  ASSERT_TRUE(session.ok()) << session.status();
  v1::GroupEvent event;
  event.set_epoch(1);
  event.set_draining(true);
  daemon_.SendEvent(event);
  EXPECT_TRUE(heard.Await(absl::InfiniteFuture())->value().draining());
  EXPECT_TRUE((*session)->draining());
  EXPECT_TRUE((*session)->status().ok());
}

TEST_F(SessionTest, Future_OutlivesTheSession) {
  Future<GatheredSlot> layer;
  {
    auto session = Attach();
    ASSERT_TRUE(session.ok()) << session.status();
    daemon_.memory().SetGatherWord(0, DoneValue(Completion(1)));
    ASSERT_TRUE((*session)->Gather(kRoot, {kLayer}).Wait().ok());
    layer = (*session)->Gather(kLayer, {});
  }
  // The lease has ended with the session: the wait ends, too.
  EXPECT_FALSE(layer.Wait().ok());
}

}  // namespace
}  // namespace holdfast
