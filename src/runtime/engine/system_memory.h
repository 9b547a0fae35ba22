// How much memory the system has for us.
#pragma once

#include <cstdint>

namespace shoal::runtime {

// Bytes that may be taken without swapping: what /proc/meminfo calls available, or what the control group
// leaves if that is less.
int64_t available_memory();

// Bytes of this process that lie in memory.
int64_t resident_memory();

}  // namespace shoal::runtime
