#include "tests/client/test_rank_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <initializer_list>
#include <string>
#include <utility>

#include "common/futex.h"
#include "tests/client/test_arena.h"

namespace holdfast {
namespace {

void AddParameter(v1::UnitSpec& unit, const std::string& name, std::initializer_list<int64_t> shape,
                  v1::DataType dtype = v1::DATA_TYPE_FLOAT32, bool frozen = false) {
  v1::ParameterSpec& parameter = *unit.add_parameters();
  parameter.set_name(name);
  parameter.mutable_shape()->Add(shape.begin(), shape.end());
  parameter.set_dtype(dtype);
  parameter.set_frozen(frozen);
}

void AddBuffer(v1::UnitSpec& unit, const std::string& name, std::initializer_list<int64_t> shape, v1::DataType dtype) {
  v1::BufferSpec& buffer = *unit.add_buffers();
  buffer.set_name(name);
  buffer.mutable_shape()->Add(shape.begin(), shape.end());
  buffer.set_dtype(dtype);
}

}  // namespace

v1::ModelSpec SmallModelSpec() {
  v1::ModelSpec spec;
  spec.set_name("small");
  v1::UnitSpec& root = *spec.add_units();
  root.set_name("root");
  AddParameter(root, "embed.weight", {5, 3});
  AddParameter(root, "norm.scale", {}, v1::DATA_TYPE_FLOAT32, /*frozen=*/true);
  AddParameter(root, "head.weight", {5, 3});
  root.mutable_parameters(2)->set_alias_of("embed.weight");
  AddBuffer(root, "positions", {4}, v1::DATA_TYPE_INT64);
  v1::UnitSpec& layer = *spec.add_units();
  layer.set_name("layer");
  AddParameter(layer, "layer.weight", {2, 5});
  AddParameter(layer, "layer.none", {0, 3});
  AddParameter(layer, "layer.bias", {3});
  AddBuffer(layer, "layer.mean", {2, 2}, v1::DATA_TYPE_FLOAT32);
  spec.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_FULL_SHARD);
  spec.mutable_precision()->set_param(v1::DATA_TYPE_BFLOAT16);
  spec.mutable_precision()->set_reduce(v1::DATA_TYPE_FLOAT32);
  v1::EmaSpec& ema = *spec.add_emas();
  ema.set_name("default");
  ema.mutable_constant()->set_decay(0.9);
  spec.mutable_optimizer()->mutable_worker()->add_states()->set_name("exp_avg");
  spec.add_ignored_parameters("ignored.*");
  return spec;
}

TestRankMemory::TestRankMemory(std::shared_ptr<const ModelLayout> layout, Rank rank) {
  for (const v1::MemoryUse& use : layout->Memory()) {
    if (use.purpose() == v1::MEMORY_PURPOSE_UNDO) continue;
    v1::ArenaDescription& arena = arenas_.emplace_back();
    arena.set_purpose(use.purpose());
    arena.set_size_bytes(use.size_bytes());
    arena.set_writable(true);
    const bool gathers = use.purpose() == v1::MEMORY_PURPOSE_GATHER_SLOTS;
    const bool reduces = use.purpose() == v1::MEMORY_PURPOSE_GRADIENT_SLOTS;
    const ArenaExpectation expected = {
        .purpose = use.purpose(),
        .size_bytes = static_cast<int64_t>(use.size_bytes()),
        .writable = true,
        .fingerprint = layout->fingerprint(),
        .rank = rank,
        .num_words = gathers ? layout->gather_slots() : (reduces ? layout->gradient_slots() : 0)};
    descriptors_.push_back(MakeTestArena(expected));
    absl::StatusOr<MappedArena> mapping = MappedArena::Map(descriptors_.back(), expected);
    EXPECT_TRUE(mapping.ok()) << mapping.status();
    mappings_.push_back(*std::move(mapping));
  }
}

ReceivedMemory TestRankMemory::Hand() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  connection_ = UniqueFd(ends[0]);
  ReceivedMemory received;
  received.connection = UniqueFd(ends[1]);
  for (const UniqueFd& fd : descriptors_) {
    received.descriptors.emplace_back(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  }
  return received;
}

bool TestRankMemory::IsConnected() const {
  char byte = 0;
  // 0 is the end of the stream; a living peer that is silent is EAGAIN.
  return ::recv(connection_.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

std::byte* TestRankMemory::data(v1::MemoryPurpose purpose) {
  for (size_t i = 0; i < arenas_.size(); ++i) {
    if (arenas_[i].purpose() == purpose) return mappings_[i].data();
  }
  ADD_FAILURE() << "no arena of purpose " << purpose;
  return nullptr;
}

void TestRankMemory::SetGatherWord(int32_t slot, uint64_t value) {
  auto& header = *reinterpret_cast<ArenaHeader*>(data(v1::MEMORY_PURPOSE_GATHER_SLOTS) - kPageBytes);
  StoreAndWake(header.words[slot], value);
}

}  // namespace holdfast
