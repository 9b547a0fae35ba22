#include "server/routes/statistics_json.h"

#include <cmath>
#include <utility>

#include "report/engine_json.h"
#include "server/observe/model_health.h"

namespace shoal::server {
namespace {

using Object = Value::Object;

template <typename Number>
Value count(Number number) {
  return {static_cast<int64_t>(number)};
}

Value number(double value) { return std::isfinite(value) ? Value{value} : Value{}; }

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

void append(Object& members, Object more) {
  for (auto& member : more) members.push_back(std::move(member));
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
                 {"precision", text_or_null(engine.precision)},
                 {"weights", text_or_null(engine.weights)},
                 {"kv_precision", text_or_null(engine.kv_precision)},
                 {"device", text_or_null(engine.device)},
                 {"uptime_s", number(engine.uptime_s)}};
  append(members, report::statistics_members(engine.statistics));
  append(members, {{"memory", report::memory_parts_json(engine.memory)},
                   {"device_memory", report::device_memory_json(engine)},
                   {"resident_bytes", count(engine.resident_bytes)},
                   {"http", connections_of(transport)}});
  append(members, batching_of(engine));
  return {std::move(members)};
}

}  // namespace shoal::server
