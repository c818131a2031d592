#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/local_node.h"
#include "tests/bench/measure.h"
#include "tests/bench/suites.h"
#include "tests/bench/triad.h"

namespace holdfast::bench {
namespace {

constexpr int kTensors = 40;
constexpr double kDecay = 0.9999;

// Torch's side, as in the training code that holdfast replaces.
struct Peers {
  std::vector<at::Tensor> emas;
  std::vector<at::Tensor> floats;
  std::vector<at::Tensor> bfloats;

  explicit Peers(int64_t tensor_elements) {
    for (int i = 0; i < kTensors; ++i) {
      emas.push_back(at::rand({tensor_elements}));
      floats.push_back(at::rand({tensor_elements}));
      bfloats.push_back(floats.back().to(at::kBFloat16));
    }
  }
  void Float() { Update(floats); }
  void BFloatConverted() {
    std::vector<at::Tensor> converted;
    for (const at::Tensor& tensor : bfloats) converted.push_back(tensor.to(at::kFloat));
    Update(converted);
  }
  void BFloatDirect() { Update(bfloats); }

 private:
  void Update(const std::vector<at::Tensor>& parameters) {
    at::_foreach_mul_(emas, kDecay);
    at::_foreach_add_(emas, parameters, 1 - kDecay);
  }
};

// Ours: the same elements in arenas.
struct Tables {
  std::vector<EmaTask> floats;
  std::vector<EmaTask> bfloats;
};

absl::StatusOr<Tables> MakeTables(LocalNode& node, int64_t tensor_elements) {
  absl::StatusOr<float*> emas = node.AllocateFloats(kTensors * tensor_elements);
  if (!emas.ok()) return emas.status();
  absl::StatusOr<float*> floats = node.AllocateFloats(kTensors * tensor_elements);
  if (!floats.ok()) return floats.status();
  absl::StatusOr<std::byte*> bfloats = node.Allocate(kTensors * tensor_elements * 2);
  if (!bfloats.ok()) return bfloats.status();
  const CopyTask convert{*floats, DType::kFloat32, *bfloats, DType::kBFloat16, kTensors * tensor_elements};
  if (absl::Status status = node.device().Copy(node.stream(), {convert}); !status.ok()) return status;

  Tables tables;
  for (int64_t i = 0; i < kTensors; ++i) {
    EmaTask task{*floats + i * tensor_elements,
                 DType::kFloat32,
                 *emas + i * tensor_elements,
                 DType::kFloat32,
                 tensor_elements,
                 kDecay};
    tables.floats.push_back(task);
    task.parameter = *bfloats + i * tensor_elements * 2;
    task.parameter_dtype = DType::kBFloat16;
    tables.bfloats.push_back(task);
  }
  return tables;
}

absl::Status RunWithThreads(const Options& options, int num_threads, const Report& report) {
  const int64_t millions = options.quick ? 1 : 64;
  const int64_t tensor_elements = (millions << 20) / kTensors;
  const double elements = static_cast<double>(kTensors * tensor_elements);
  absl::StatusOr<std::unique_ptr<LocalNode>> node = LocalNode::Create(num_threads);
  if (!node.ok()) return node.status();
  absl::StatusOr<Tables> tables = MakeTables(**node, tensor_elements);
  if (!tables.ok()) return tables.status();
  at::set_num_threads(num_threads);
  Peers peers(tensor_elements);
  Triad triad(options.quick ? int64_t{1} << 18 : int64_t{32} << 20);

  absl::Status status;
  const auto ours = [&](const std::vector<EmaTask>& table) {
    return [&] { status.Update((*node)->device().Ema((*node)->stream(), table)); };
  };
  const std::vector<double> seconds =
      MedianSeconds({ours(tables->floats), [&] { peers.Float(); }, [&] { triad.Run((*node)->pool()); },
                     ours(tables->bfloats), [&] { peers.BFloatConverted(); }, [&] { peers.BFloatDirect(); }},
                    options.repetitions());
  if (!status.ok()) return status;

  const std::string threads = absl::StrCat(num_threads, num_threads == 1 ? " thread" : " threads");
  const std::string size = absl::StrCat(millions, "M in ", kTensors, " tensors, ", threads);
  const auto aim = [&](double ratio) { return options.quick ? std::nullopt : std::optional<double>(ratio); };
  const auto time = [&](const std::string& name, const std::string& peer, double own, double other,
                        std::optional<double> wanted) {
    report({"ema", name + ", " + size, peer, own * 1e3, other * 1e3, "ms", Better::kLower, wanted});
  };
  const auto rate = [&](const std::string& name, double bytes, double own) {
    report({"ema", name + ", " + size, "STREAM triad", bytes / own / 1e9, triad.bytes() / seconds[2] / 1e9, "GB/s",
            Better::kHigher, aim(0.95)});
  };
  time("fp32", "_foreach_mul_ + _foreach_add_", seconds[0], seconds[1], aim(1.55));
  rate("fp32", 12 * elements, seconds[0]);
  time("bf16 to fp32", ".to(float) + _foreach_mul_ + _foreach_add_", seconds[3], seconds[4], aim(4.5));
  time("bf16 to fp32", "_foreach_mul_ + _foreach_add_ of bf16", seconds[3], seconds[5], std::nullopt);
  rate("bf16 to fp32", 10 * elements, seconds[3]);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunEma(const Options& options, const Report& report) {
  for (const int num_threads : {1, 2}) {
    if (absl::Status status = RunWithThreads(options, num_threads, report); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace holdfast::bench
