#include "models/kokoro/groups.h"

#include <numeric>

namespace shoal::kokoro {

size_t end_of_group(std::span<const int32_t> frames, size_t first, int64_t most) {
  const std::span<const int32_t> left = frames.subspan(first);
  const int64_t all = std::accumulate(left.begin(), left.end(), int64_t{0});
  const int64_t share = all / ((all + most - 1) / most);
  size_t end = first + 1;
  for (int64_t total = frames[first]; end < frames.size(); ++end) {
    if (total + frames[end] > most || total + frames[end] / 2 > share) break;
    total += frames[end];
  }
  return end;
}

}  // namespace shoal::kokoro
