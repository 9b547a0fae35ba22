// For tests of what stays allocated.
#pragma once

#include <cstddef>
#include <malloc.h>

namespace shoal {

// Bytes that malloc has given out and not got back, of all threads, and what their caches hold (up to a
// quarter of a megabyte each). 0 under a sanitizer.
inline size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace shoal
