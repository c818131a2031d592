// The memory of one rank of a small model, without a daemon.
#ifndef HOLDFAST_TESTS_CLIENT_TEST_RANK_MEMORY_H_
#define HOLDFAST_TESTS_CLIENT_TEST_RANK_MEMORY_H_

#include <memory>
#include <vector>

#include "client/mapped_memory.h"
#include "common/ids.h"
#include "common/layout.h"
#include "common/unique_fd.h"
#include "holdfast/v1/model.pb.h"

namespace holdfast {

// Two units, FULL_SHARD over two ranks: odd sizes, a frozen 0-dim parameter, a tied name, a zero-size one, buffers.
v1::ModelSpec SmallModelSpec();

// What a daemon would hand to one rank, made here.
class TestRankMemory {
 public:
  TestRankMemory(std::shared_ptr<const ModelLayout> layout, Rank rank);

  // To be passed to MappedMemory. Each call duplicates the descriptors, and starts another memory connection.
  ReceivedMemory Hand();
  const std::vector<v1::ArenaDescription>& arenas() const { return arenas_; }
  // Whether the worker's end of the connection that was handed out last is open.
  bool IsConnected() const;
  // The arena's data, writable, as the daemon has it.
  std::byte* data(v1::MemoryPurpose purpose);
  // As the daemon writes it: DoneValue or VoidValue, and whoever waits is woken.
  void SetGatherWord(int32_t slot, uint64_t value);

 private:
  std::vector<v1::ArenaDescription> arenas_;
  std::vector<UniqueFd> descriptors_;
  std::vector<MappedArena> mappings_;
  UniqueFd connection_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_CLIENT_TEST_RANK_MEMORY_H_
