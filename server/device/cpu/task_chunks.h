// Cuts a table of tasks, of any sizes, into chunks of about equal work.
#ifndef HOLDFAST_SERVER_DEVICE_CPU_TASK_CHUNKS_H_
#define HOLDFAST_SERVER_DEVICE_CPU_TASK_CHUNKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace holdfast {

// The elements of all tasks, one task after the other, in runs of `chunk_elements`: a large task spans many chunks, a
// chunk spans many small tasks. Within a task every cut lies at a multiple of kCutElements, so that no two chunks write
// to one cache line of an aligned task. Immutable.
class TaskChunks {
 public:
  static constexpr int64_t kCutElements = 64;

  // `task_elements[t]` ≥ 0; `chunk_elements` is a multiple of kCutElements.
  TaskChunks(absl::Span<const int64_t> task_elements, int64_t chunk_elements);

  int64_t num_chunks() const { return (ends_.empty() ? 0 : ends_.back() + chunk_elements_ - 1) / chunk_elements_; }

  // Calls visit(task, first_element, num_elements) for each piece of `chunk`; none is empty.
  template <typename Visit>
  void ForEachPiece(int64_t chunk, Visit visit) const {
    int64_t position = chunk * chunk_elements_;
    const int64_t end = position + chunk_elements_;
    size_t task = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin());
    for (; task < elements_.size() && position < end; ++task) {
      const int64_t start = task == 0 ? 0 : ends_[task - 1];
      const int64_t first = position - start;
      const int64_t last = std::min(end - start, elements_[task]);
      if (first < last) visit(task, first, last - first);
      position = std::max(position, ends_[task]);
    }
  }

 private:
  const int64_t chunk_elements_;
  const std::vector<int64_t> elements_;
  // Where each task ends when all are laid out in a row, each rounded up to kCutElements.
  std::vector<int64_t> ends_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DEVICE_CPU_TASK_CHUNKS_H_
