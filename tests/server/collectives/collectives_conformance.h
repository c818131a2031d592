// What every Collectives must do. A backend's test links the conformance library's sources and instantiates the suite
// with a factory of worlds; a world may be of one node or of several.
#ifndef HOLDFAST_TESTS_SERVER_COLLECTIVES_COLLECTIVES_CONFORMANCE_H_
#define HOLDFAST_TESTS_SERVER_COLLECTIVES_COLLECTIVES_CONFORMANCE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "server/collectives/collectives.h"

namespace holdfast {

// All nodes of a mesh, in one process.
class World {
 public:
  virtual ~World() = default;

  virtual int num_nodes() const = 0;
  virtual Collectives& node(int index) = 0;
  // In rank order; node after node they are all ranks of the mesh.
  virtual std::vector<Rank> ranks(int node) const = 0;

  // Memory of a rank's device, aligned to 64 bytes; lives as long as the world.
  virtual std::byte* Allocate(Rank rank, size_t size_bytes) = 0;
  virtual void Upload(std::byte* to, const void* from, size_t size_bytes) = 0;
  // What has been enqueued before is done first.
  virtual void Download(void* to, const std::byte* from, size_t size_bytes) = 0;
};

struct WorldFactory {
  // Letters, digits and underscores.
  std::string name;
  std::function<std::unique_ptr<World>(const MeshShape&)> create;

  friend void PrintTo(const WorldFactory& factory, std::ostream* out) { *out << factory.name; }
};

struct WorldFactoryName {
  std::string operator()(const ::testing::TestParamInfo<WorldFactory>& info) const { return info.param.name; }
};

class CollectivesConformanceTest : public ::testing::TestWithParam<WorldFactory> {
 public:
  // A world's memory with a margin behind it that CheckMargins looks at.
  struct Buffer {
    std::byte* address = nullptr;
    size_t size_bytes = 0;
  };

  void Start(const MeshShape& mesh);
  World& world() { return *world_; }
  int32_t num_ranks() const { return mesh_.world(); }
  const MeshShape& mesh() const { return mesh_; }

  Buffer Place(Rank rank, const std::vector<std::byte>& bytes);
  std::vector<std::byte> Fetch(const Buffer& buffer);
  void CheckMargins();

  // Runs `call` on every node at a time, and returns the first error.
  absl::Status OnEveryNode(absl::FunctionRef<absl::Status(int node, Collectives& collectives)> call);

  // The call of a task that has the parts of all ranks: each node gets its own parts.
  template <typename Task>
  absl::Status Call(absl::Status (Collectives::*method)(absl::Span<const Task>), const std::vector<Task>& tasks) {
    return OnEveryNode([&](int node, Collectives& collectives) {
      std::vector<Task> own = tasks;
      const std::vector<Rank> ranks = world_->ranks(node);
      for (Task& task : own) {
        std::vector<typename Task::Part> parts;
        for (const Rank rank : ranks) parts.push_back(task.parts[static_cast<size_t>(rank.value())]);
        task.parts = parts;
      }
      return (collectives.*method)(own);
    });
  }

 private:
  MeshShape mesh_;
  std::unique_ptr<World> world_;
  std::vector<std::byte*> margins_;
};

// num_replicate × num_shard for every mesh of at most 8 ranks.
std::vector<MeshShape> AllMeshes();

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_COLLECTIVES_COLLECTIVES_CONFORMANCE_H_
