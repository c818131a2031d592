#include "server/device/cpu/task_chunks.h"

#include <vector>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

// How often each element of each task is visited, over all chunks.
std::vector<std::vector<int>> Visits(const std::vector<int64_t>& tasks, int64_t chunk_elements) {
  std::vector<std::vector<int>> visits;
  for (const int64_t elements : tasks) visits.emplace_back(static_cast<size_t>(elements), 0);
  const TaskChunks chunks(tasks, chunk_elements);
  for (int64_t chunk = 0; chunk < chunks.num_chunks(); ++chunk) {
    int64_t in_chunk = 0;
    chunks.ForEachPiece(chunk, [&](size_t task, int64_t first, int64_t count) {
      EXPECT_GT(count, 0);
      EXPECT_EQ(first % TaskChunks::kCutElements, 0);
      in_chunk += count;
      for (int64_t i = first; i < first + count; ++i) ++visits.at(task).at(static_cast<size_t>(i));
    });
    EXPECT_LE(in_chunk, chunk_elements);
  }
  return visits;
}

TEST(TaskChunksTest, EveryElementOfEveryTask_IsVisitedOnce) {
  const std::vector<std::vector<int64_t>> tables = {{},           {0},           {1},
                                                    {0, 0, 5, 0}, {64},          {65},
                                                    {63, 64, 65}, {1000},        {1, 2, 3, 4, 5, 1000, 0, 7},
                                                    {128, 128},   {127, 1, 256}, {5000, 1, 5000}};
  for (const std::vector<int64_t>& tasks : tables) {
    for (const int64_t chunk_elements : {64, 128, 1024}) {
      std::vector<std::vector<int>> expected;
      for (const int64_t elements : tasks) expected.emplace_back(static_cast<size_t>(elements), 1);
      EXPECT_EQ(Visits(tasks, chunk_elements), expected);
    }
  }
}

TEST(TaskChunksTest, SmallTasks_ShareAChunk) {
  EXPECT_EQ(TaskChunks(std::vector<int64_t>(100, 10), 6400).num_chunks(), 1);
  EXPECT_EQ(TaskChunks(std::vector<int64_t>{6401}, 6400).num_chunks(), 2);
  EXPECT_EQ(TaskChunks({}, 6400).num_chunks(), 0);
}

}  // namespace
}  // namespace holdfast
