#include "server/routes/statistics_json.h"

#include <cmath>
#include <utility>

#include "server/observe/model_health.h"

namespace shoal::server {
namespace {

using Object = Value::Object;

template <typename Number>
Value count(Number number) {
  return {static_cast<int64_t>(number)};
}

Value number(double value) { return std::isfinite(value) ? Value{value} : Value{}; }

// The bound of the bucket that contains the quantile; null: no measurements, or above all bounds.
Value quantile(const Histogram& of, double share) {
  const double wanted = share * static_cast<double>(of.count);
  uint64_t below = 0;
  for (size_t i = 0; i < of.bounds.size() && of.count > 0; ++i) {
    below += of.counts[i];
    if (static_cast<double>(below) >= wanted) return {of.bounds[i]};
  }
  return {};
}

Value distribution(const Histogram& of) {
  return {Object{{"count", count(of.count)},
                 {"mean", of.count > 0 ? number(of.mean()) : Value{}},
                 {"p50", quantile(of, 0.5)},
                 {"p95", quantile(of, 0.95)},
                 {"p99", quantile(of, 0.99)}}};
}

Value queue_of(const Statistics& of) {
  return {Object{{"preparing", count(of.preparing)},
                 {"waiting", count(of.waiting)},
                 {"running", count(of.running)},
                 {"paused", count(of.paused)},
                 {"finishing", count(of.finishing)}}};
}

Value requests_of(const Statistics& of) {
  return {Object{{"submitted", count(of.submitted)},
                 {"completed", count(of.completed)},
                 {"cancelled", count(of.cancelled)},
                 {"expired", count(of.expired)},
                 {"refused", count(of.refused)},
                 {"failed", count(of.failed)}}};
}

Value cache_of(const KvStatistics& of) {
  return {Object{{"pages", count(of.pages)},
                 {"pages_used", count(of.pages_used)},
                 {"pages_cached", count(of.pages_cached)},
                 {"pages_free", count(of.pages_free)},
                 {"page_size", count(of.page_size)},
                 {"voices_cached", count(of.voices_cached)},
                 {"lookups", count(of.lookups)},
                 {"hits", count(of.hits)},
                 {"hit_columns", count(of.hit_columns)},
                 {"missed_columns", count(of.missed_columns)},
                 {"hit_rate", number(of.hit_rate())},
                 {"evictions", count(of.evictions)},
                 {"tail_copies", count(of.tail_copies)}}};
}

Value clips_of(const VoiceStatistics& of) {
  return {Object{{"in_memory", count(of.in_memory)},
                 {"memory_hits", count(of.memory_hits)},
                 {"disk_hits", count(of.disk_hits)},
                 {"encoded", count(of.encoded)},
                 {"dropped_files", count(of.dropped_files)}}};
}

Value memory_of(const Health& engine) {
  Object parts;
  for (const MemoryPart& part : engine.memory) parts.emplace_back(part.name, count(part.bytes));
  return {std::move(parts)};
}

Value device_memory_of(const Health& engine) {
  if (engine.device_total_bytes == 0) return {};
  return {Object{{"used_bytes", count(engine.device_used_bytes)},
                 {"total_bytes", count(engine.device_total_bytes)}}};
}

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
  const Statistics& of = engine.statistics;
  Object members{{"state", {state_of(engine, draining)}},
                 {"model", text_or_null(engine.model)},
                 {"precision", text_or_null(engine.precision)},
                 {"device", text_or_null(engine.device)},
                 {"uptime_s", number(engine.uptime_s)},
                 {"queue", queue_of(of)},
                 {"requests", requests_of(of)},
                 {"frames", count(of.frames)},
                 {"audio_s", number(of.audio_s)},
                 {"steps", count(of.steps)},
                 {"codec_passes", count(of.codec_passes)},
                 {"preemptions", count(of.preemptions)},
                 {"underruns", count(of.underruns)},
                 {"retried_steps", count(of.retried_steps)},
                 {"batch_size", distribution(of.batch_size)},
                 {"queue_wait_s", distribution(of.queue_wait_s)},
                 {"first_audio_s", distribution(of.first_audio_s)},
                 {"chunk_gap_s", distribution(of.chunk_gap_s)},
                 {"real_time_factor", distribution(of.real_time_factor)},
                 {"step_s", distribution(of.step_s)},
                 {"codec_pass_s", distribution(of.codec_pass_s)},
                 {"kv", cache_of(of.kv)},
                 {"clip_cache", clips_of(of.voices)},
                 {"memory", memory_of(engine)},
                 {"device_memory", device_memory_of(engine)},
                 {"resident_bytes", count(engine.resident_bytes)},
                 {"http", connections_of(transport)}};
  for (auto& member : batching_of(engine)) members.push_back(std::move(member));
  return {std::move(members)};
}

}  // namespace shoal::server
