#include "tests/bench/gloo_peer.h"

#include <exception>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace holdfast::bench {
namespace {

class TorchGloo final : public GlooPeer {
 public:
  explicit TorchGloo(int world) : groups_(static_cast<size_t>(world)) {}

  // Ranks meet in the constructors of their groups, each on a thread of its own.
  absl::Status Connect() {
    const auto store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::string> errors(groups_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < groups_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          const auto options = c10d::ProcessGroupGloo::Options::create();
          options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
          groups_[rank] = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(rank),
                                                                      static_cast<int>(groups_.size()), options);
        } catch (const std::exception& error) {
          errors[rank] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& error : errors) {
      if (!error.empty()) return absl::UnavailableError(absl::StrCat("ProcessGroupGloo: ", error));
    }
    return absl::OkStatus();
  }

  absl::Status Prepare(int64_t unit_bytes, bool half) override {
    const int64_t world = static_cast<int64_t>(groups_.size());
    const int64_t elements = unit_bytes / (half ? 2 : 4);
    const auto options = at::TensorOptions().dtype(half ? at::kHalf : at::kFloat);
    units_.clear();
    shards_.clear();
    gathered_.clear();
    for (int64_t rank = 0; rank < world; ++rank) {
      units_.push_back({at::zeros({elements}, options)});
      shards_.push_back({at::ones({elements / world}, options)});
      gathered_.push_back({});
      gathered_.back().emplace_back();
      for (int64_t peer = 0; peer < world; ++peer) {
        gathered_.back()[0].push_back(at::zeros({elements / world}, options));
      }
    }
    return absl::OkStatus();
  }

  void AllGather() override {
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (size_t rank = 0; rank < groups_.size(); ++rank) {
      works.push_back(groups_[rank]->allgather(gathered_[rank], shards_[rank]));
    }
    for (const auto& work : works) work->wait();
  }

  void AllReduce() override {
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (size_t rank = 0; rank < groups_.size(); ++rank) works.push_back(groups_[rank]->allreduce(units_[rank]));
    for (const auto& work : works) work->wait();
  }

 private:
  std::vector<c10::intrusive_ptr<c10d::ProcessGroupGloo>> groups_;
  // By rank.
  std::vector<std::vector<at::Tensor>> units_;
  std::vector<std::vector<at::Tensor>> shards_;
  std::vector<std::vector<std::vector<at::Tensor>>> gathered_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GlooPeer>> GlooPeer::Create(int world) {
  auto peer = std::make_unique<TorchGloo>(world);
  if (absl::Status status = peer->Connect(); !status.ok()) return status;
  return peer;
}

}  // namespace holdfast::bench
