// The way in for a trainer or an evaluator: connect, register a model, attach as a rank, pull tensors.
#ifndef HOLDFAST_CLIENT_CLIENT_H_
#define HOLDFAST_CLIENT_CLIENT_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/model_tensor.h"
#include "client/options.h"
#include "client/worker.h"
#include "common/ids.h"
#include "holdfast/v1/parameter_service.pb.h"

namespace holdfast {

class Connection;

// A connection to one daemon. Thread-safe. Workers keep what they need of it: it may be destroyed before them.
//
// Do not fork() after Connect: gRPC's threads do not survive it. A trainer that starts data loaders by fork does so
// first; the mapped memory is left out of the children in any case.
class Client {
 public:
  // Waits until the daemon answers, at most connect_timeout. INVALID_ARGUMENT: an address that cannot be one.
  // UNAVAILABLE: nobody answers there.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);
  ~Client();

  // Declares a model and takes its memory. Every rank may do it; only the first call creates anything. Errors as
  // ParameterService.RegisterModel.
  absl::StatusOr<v1::RegisterModelResponse> RegisterModel(const v1::ModelSpec& spec);

  // Takes the lease on a rank of a registered model and maps its memory; needs the worker socket. The lease is held
  // until the Worker is destroyed or this process ends. ALREADY_EXISTS: another worker holds the rank, or one that held
  // it still has its memory mapped. UNAVAILABLE: the daemon is draining.
  absl::StatusOr<std::unique_ptr<Worker>> Attach(std::string_view model, Rank rank, WorkerOptions options = {});

  // Whole tensors, while training goes on; no lease is needed. Each tensor is of the one committed step that it names;
  // two tensors of one Pull may be of neighbouring steps. NOT_FOUND: no such model, EMA or name.
  absl::StatusOr<std::vector<ModelTensor>> Pull(std::string_view model, const PullOptions& options = {});

  // The same, tensor by tensor, so that no more than one is held in memory. An error from `receive` ends the Pull and
  // is returned. There is no limit of time on the whole; a stream that stands still for call_timeout fails with
  // DEADLINE_EXCEEDED.
  absl::Status Pull(std::string_view model, const PullOptions& options,
                    absl::FunctionRef<absl::Status(ModelTensor)> receive);

 private:
  explicit Client(std::shared_ptr<Connection> connection);

  std::shared_ptr<Connection> connection_;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_CLIENT_H_
