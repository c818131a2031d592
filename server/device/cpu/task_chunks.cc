#include "server/device/cpu/task_chunks.h"

namespace holdfast {

TaskChunks::TaskChunks(absl::Span<const int64_t> task_elements, int64_t chunk_elements)
    : chunk_elements_(chunk_elements), elements_(task_elements.begin(), task_elements.end()) {
  ends_.reserve(elements_.size());
  int64_t end = 0;
  for (const int64_t elements : elements_) {
    end += (elements + kCutElements - 1) / kCutElements * kCutElements;
    ends_.push_back(end);
  }
}

}  // namespace holdfast
