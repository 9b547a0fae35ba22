#include "server/routes/statistics_json.h"

#include <utility>

#include "report/engine_json.h"
#include "report/json_parts.h"
#include "server/observe/model_health.h"

namespace shoal::server {
namespace {

using Object = Value::Object;
using report::append, report::count, report::number;

Value connections_of(const TransportStatistics& of) {
  return {Object{{"connections", count(of.connections)},
                 {"websockets", count(of.websockets)},
                 {"body_bytes", count(of.body_bytes)},
                 {"accepted", count(of.accepted)},
                 {"refused", count(of.refused)}}};
}

// Names of older servers that speak in batches.
Object batching_of(const Health& engine) {
  const Statistics& of = engine.statistics;
  return {{"total_batches", count(of.steps)},
          {"total_requests", count(of.submitted)},
          {"avg_batch_size", number(of.recent_batch_size)},
          {"current_queue_size", count(of.preparing + of.waiting)},
          {"worker_running", {takes_requests(engine)}},
          {"gpu_available", {engine.gpu_available}},
          {"mps_available", {false}}};
}

}  // namespace

std::string state_of(const Health& engine, bool draining) {
  return draining ? "draining" : std::string(name_of(engine.state));
}

Value video_memory_json(const Health& engine) {
  if (engine.device_total_bytes == 0) return {};
  const auto gb = [](int64_t bytes) { return number(static_cast<double>(bytes) / 1e9); };
  return {Object{{"used_gb", gb(engine.device_used_bytes)}, {"total_gb", gb(engine.device_total_bytes)}}};
}

Value statistics_json(const Health& engine, const TransportStatistics& transport, bool draining) {
  Object members{{"state", {state_of(engine, draining)}},
                 {"model", text_or_null(engine.model)},
                 {"device", text_or_null(engine.device)},
                 {"uptime_s", number(engine.uptime_s)}};
  append(members, report::format_members(engine.formats));
  append(members, report::statistics_members(engine.statistics));
  append(members, {{"memory", report::memory_parts_json(engine.memory)},
                   {"device_memory", report::device_memory_json(engine)},
                   {"resident_bytes", count(engine.resident_bytes)},
                   {"http", connections_of(transport)}});
  append(members, batching_of(engine));
  return {std::move(members)};
}

}  // namespace shoal::server
