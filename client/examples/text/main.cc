// holdfast_text: trains a small character-level transformer whose weights live in holdfastd.
//
//   holdfastd --worker_socket=/tmp/holdfast.sock --num_ranks=4 &
//   holdfast_text --daemon=/tmp/holdfast.sock
#include <ATen/Parallel.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/client.h"
#include "client/examples/text/data.h"
#include "client/examples/text/flags.h"
#include "client/examples/text/launcher.h"
#include "client/examples/text/loss_plot.h"
#include "client/examples/text/progress_line.h"
#include "client/examples/text/sample.h"
#include "client/examples/text/solo.h"
#include "client/examples/text/worker.h"

namespace text {
namespace {

// The model's own weights, or those of the EMA of that name, as the daemon has them.
absl::StatusOr<Weights> PullWeights(holdfast::Client& client, const std::string& model, const std::string& ema) {
  const auto tensors = client.Pull(model, {.ema = ema});
  if (!tensors.ok()) return tensors.status();
  Weights weights;
  for (const holdfast::ModelTensor& tensor : *tensors) weights[tensor.name] = tensor.tensor;
  return weights;
}

void ShowSamples(const Settings& settings, const TextData& data, const Weights& raw, const Weights& ema) {
  for (const auto& [what, weights] : {std::pair{"raw", &raw}, {"EMA", &ema}}) {
    absl::PrintF("\n--- written by the %s weights ---\n%s\n", what, Sample(settings.training.model, *weights, data));
  }
}

absl::Status WriteSvg(const std::string& path, const LossPlot& plot) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path);
  file << LossPlotSvg(plot);
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write the loss curve to '", path, "' (--svg)"));
  absl::PrintF("\nThe loss curve is in %s\n", path);
  return absl::OkStatus();
}

std::string PlotTitle(const Settings& settings) {
  return absl::StrCat("A character-level transformer reads ",
                      std::filesystem::path(settings.text_path).filename().string());
}

absl::Status RunLaunch(const Settings& settings, const TextData& data, std::vector<std::string> arguments) {
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError(absl::StrCat("cannot find this program's file: ", error.message()));
  // Of a flag that is given twice the last counts.
  arguments.push_back("--role=worker");
  ProgressLine progress(stdout, settings.training.num_steps);
  const absl::StatusOr<LaunchResult> result = Launch({.executable = executable,
                                                      .worker_arguments = std::move(arguments),
                                                      .daemon_socket = settings.daemon_socket,
                                                      .model_name = settings.sharding.model_name,
                                                      .num_ranks = settings.training.num_ranks,
                                                      .num_steps = settings.training.num_steps,
                                                      .kill_at_step = settings.kill_at_step},
                                                     progress);
  if (!result.ok()) return result.status();

  const auto client = holdfast::Client::Connect({.address = settings.daemon_socket});
  if (!client.ok()) return client.status();
  const absl::StatusOr<Weights> raw = PullWeights(**client, settings.sharding.model_name, "");
  if (!raw.ok()) return raw.status();
  const absl::StatusOr<Weights> ema = PullWeights(**client, settings.sharding.model_name, kEma);
  if (!ema.ok()) return ema.status();
  ShowSamples(settings, data, *raw, *ema);

  LossPlot plot;
  plot.title = PlotTitle(settings);
  plot.subtitle = absl::StrFormat(
      "%d workers on one holdfastd · %s · weights gathered in %s", settings.training.num_ranks,
      absl::StripPrefix(holdfast::v1::ShardingStrategy_Name(settings.sharding.strategy), "SHARDING_STRATEGY_"),
      c10::toString(settings.training.param_dtype));
  plot.points = result->log.Losses();
  if (result->kill.has_value()) {
    plot.mark = {.step = result->kill->committed_step,
                 .label = absl::StrFormat("rank %d killed with SIGKILL and restarted, step %d",
                                          result->kill->rank.value(), result->kill->committed_step)};
  }
  if (absl::Status status = WriteSvg(settings.svg_path, plot); !status.ok()) return status;
  return CheckLossFell(plot.points);
}

absl::Status RunSolo(const Settings& settings, const TextData& data) {
  ProgressLine progress(stdout, settings.training.num_steps);
  TrainingLog log(settings.training.num_ranks);
  const SoloResult result = TrainSolo(settings.training, data, [&](const StepReport& report) {
    if (log.Add(report)) progress.Show(log.Summary(report.step));
  });
  ShowSamples(settings, data, result.weights, result.ema);
  const LossPlot plot{.title = PlotTitle(settings), .subtitle = "one process", .points = log.Losses()};
  if (absl::Status status = WriteSvg(settings.svg_path, plot); !status.ok()) return status;
  return CheckLossFell(plot.points);
}

absl::Status RunWorkerRole(const Settings& settings, const TextData& data) {
  // A worker is of no use without its launcher.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return RunWorker(settings.training, settings.sharding, data, settings.daemon_socket, settings.rank,
                   [](const Report& report) {
                     absl::PrintF("%s\n", FormatReport(report));
                     std::fflush(stdout);
                   });
}

absl::Status Run(const std::vector<std::string>& arguments) {
  absl::StatusOr<Settings> settings = SettingsFromFlags();
  if (!settings.ok()) return settings.status();
  const absl::StatusOr<TextData> data = TextData::Load(settings->text_path);
  if (!data.ok()) return data.status();
  settings->training.model.vocabulary_size = static_cast<int64_t>(data->vocabulary().size());
  if (absl::Status status = Validate(settings->training); !status.ok()) return status;
  if (data->num_characters() <= settings->training.model.context) {
    return absl::InvalidArgumentError(absl::StrCat("the text has ", data->num_characters(),
                                                   " characters; it must have more than --context, which is ",
                                                   settings->training.model.context));
  }
  // The workers share the machine's cores among themselves.
  at::set_num_threads(1);
  switch (settings->role) {
    case Role::kLaunch:
      return RunLaunch(*settings, *data, arguments);
    case Role::kWorker:
      return RunWorkerRole(*settings, *data);
    case Role::kSolo:
      return RunSolo(*settings, *data);
  }
  return absl::InternalError("no such role");
}

}  // namespace
}  // namespace text

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Trains a small character-level transformer whose weights live in holdfastd.");
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = text::Run(arguments);
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "holdfast_text: %s\n", status.message());
  return 1;
}
