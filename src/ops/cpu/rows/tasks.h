// How rows are shared out to threads.
#pragma once

#include <cstdint>

namespace shoal::ops::cpu {

// Rows of `width` floats that make a task worth handing to another thread (some microseconds).
constexpr int64_t rows_per_task(int64_t width) { return width >= 4096 ? 1 : 4096 / (width < 1 ? 1 : width); }

}  // namespace shoal::ops::cpu
