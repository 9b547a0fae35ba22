// Events in Chrome's trace format ("Trace Event Format", 2016), which Perfetto reads too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/trace.h"

namespace shoal::server {

constexpr std::string_view kEventBreak = ",\n";  // before each event but the first, and nowhere else

// The opening bracket and a first event, which names the process.
std::string trace_head();
// Names a thread after the first activity seen on it.
void append_thread_name(std::string& out, uint32_t thread, std::string_view name);
// A complete event of a thread ("X"); without one, the two of something that overlaps others ("b", "e").
// Times are microseconds since origin_us; what began before it began then. Numbers above 2^53 are texts:
// viewers read doubles.
void append_event(std::string& out, const TraceEvent& event, int64_t origin_us);

}  // namespace shoal::server
