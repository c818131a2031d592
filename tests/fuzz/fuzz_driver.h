// Drives a daemon with right, changed and meaningless requests, and looks for what must never be.
#ifndef HOLDFAST_TESTS_FUZZ_FUZZ_DRIVER_H_
#define HOLDFAST_TESTS_FUZZ_FUZZ_DRIVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/v1/parameter_service.pb.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/fuzz_call.h"
#include "tests/fuzz/fuzz_daemon.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/integration/raw_worker.h"

namespace holdfast {

// The rules that it checks:
//   - a request that is refused changes nothing (calls that end an epoch by their nature aside: ranks that disagree);
//   - whatever came before, a step made of right calls succeeds;
//   - every call is answered, and never with UNKNOWN, DATA_LOSS or (but for bytes that are no message) INTERNAL.
// Used by one thread.
class FuzzDriver {
 public:
  // Both must outlive it.
  FuzzDriver(FuzzDaemon& daemon, Choices& choices);
  ~FuzzDriver();

  // A few requests.
  void Run();
  // Many requests at once, some of which are cancelled or late; so nothing can be said of the state between them. Run
  // must not follow: it could take the effect of one that arrives late for another's.
  void RunWild();
  // A whole step of right calls, on all ranks of the model "base". With `disturb`, other requests come between them; it
  // is given up when one of them has had an effect.
  void RunStep(bool disturb);

  int64_t num_requests() const { return num_requests_; }
  int64_t num_refused() const { return num_refused_; }
  // How often a refused request's state was compared.
  int64_t num_compared() const { return num_compared_; }
  // What was against the rules, and how it came.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  using Calls = std::vector<std::unique_ptr<FuzzCall>>;

  // One request that nothing else disturbs, compared before and after. True if it was refused at once.
  bool RunAlone();
  // Many at once, without waiting for their answers.
  void RunTogether(bool wild);
  void AttachSomewhere();
  void PullSomething();
  void RegisterSomething();

  // `deadline` 0: none.
  std::unique_ptr<FuzzCall> Start(const std::string& path, const std::string& bytes, absl::Duration deadline);
  // A request of that method, as bytes: right, changed, random, or no message at all (`is_message` is false then).
  std::string SomeRequest(const FuzzMethod& method, bool& is_message);
  // What a worker would ask.
  void FillRight(google::protobuf::Message& request);
  // The same call on all ranks of "base"; false, and a fault, if one failed.
  bool OnAllRanks(const std::string& method, google::protobuf::Message& request);
  // All ranks of "base" attached and at the start of an epoch.
  bool PrepareBase();
  RawWorker* FindWorker(const std::string& model, uint32_t rank);
  // Whatever waits is answered: all workers rejoin. Those that have lost their lease are let go.
  void Flush();
  void AwaitAll(const Calls& calls);
  void Judge(const FuzzCall& call, bool is_message, bool wild);
  void Fault(const std::string& what);
  // Ends the worker's lease, and waits until the daemon knows.
  void Detach(size_t index);

  FuzzDaemon& daemon_;
  Choices& choices_;
  const std::vector<FuzzMethod> methods_;
  MessageMutator mutator_;
  // Of any model.
  std::vector<std::unique_ptr<RawWorker>> workers_;
  // The next sequence number of all ranks of "base", as far as is known.
  uint64_t sequence_ = 0;
  int64_t num_requests_ = 0;
  int64_t num_refused_ = 0;
  int64_t num_compared_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_FUZZ_FUZZ_DRIVER_H_
