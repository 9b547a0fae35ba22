#include "cli/load_json.h"

#include "bench/engine/promises.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const bench::Percentiles& p) {
  return {{"count", p.count}, {"mean", p.mean}, {"p50", p.p50}, {"p90", p.p90},
          {"p95", p.p95},     {"p99", p.p99},   {"max", p.max}};
}

ordered_json json_of(const bench::LevelPlan& plan) {
  ordered_json json = {{"loop", plan.open_loop() ? "open" : "closed"}};
  if (plan.open_loop()) {
    json["rate_per_s"] = plan.rate_per_s;
  } else {
    json["users"] = plan.users;
  }
  json["requests"] = plan.requests;
  json["duration_s"] = plan.duration_s;
  json["listening"] = plan.listening == bench::Listening::fast ? "fast" : "real-time";
  return json;
}

ordered_json json_of(const bench::RequestCounts& counts) {
  return {{"submitted", counts.submitted}, {"completed", counts.completed}, {"refused", counts.refused},
          {"failed", counts.failed},       {"expired", counts.expired},     {"cancelled", counts.cancelled},
          {"errors", counts.errors}};
}

ordered_json json_of(const bench::EngineFigures& f) {
  return {{"seconds", f.seconds},
          {"frames_per_s", f.frames_per_s},
          {"audio_s_per_s", f.audio_s_per_s},
          {"mean_batch", f.mean_batch},
          {"mean_step_ms", f.mean_step_ms},
          {"mean_codec_pass_ms", f.mean_codec_pass_ms},
          {"prefix_hit_rate", f.prefix_hit_rate},
          {"prefix_hits", f.prefix_hits},
          {"prefix_lookups", f.prefix_lookups},
          {"evictions", f.evictions},
          {"preemptions", f.preemptions},
          {"retried_steps", f.retried_steps},
          {"underruns", f.underruns}};
}

ordered_json json_of(const std::vector<MemoryPart>& parts) {
  ordered_json json = ordered_json::object();
  for (const MemoryPart& part : parts) json[part.name] = part.bytes;
  return json;
}

ordered_json json_of(const bench::LevelFigures& f, const bench::Scaling& scaling) {
  ordered_json json = {
      {"plan", json_of(f.plan)},
      {"interrupted", f.interrupted},
      {"elapsed_s", f.elapsed_s},
      {"requests", json_of(f.requests)},
      {"audio_s", f.audio_s},
      {"frames", f.frames},
      {"busy", json_of(f.busy)},
      {"whole", json_of(f.whole)},
      {"throughput_vs_first", scaling.throughput},
      {"added_latency_s", scaling.added_latency_s},
      {"first_audio_s", json_of(f.first_audio_s)},
      {"chunk_gap_s", json_of(f.chunk_gap_s)},
      {"request_latency_s", json_of(f.latency_s)},
      {"real_time_factor", json_of(f.real_time_factor)},
      {"queue_wait_s", json_of(f.queue_wait_s)},
      {"listeners",
       {{"never_dry", f.never_dry()},
        {"ran_dry", f.streams_with_underruns},
        {"underruns", f.underruns},
        {"dry_s", f.dry_s}}},
      {"columns",
       {{"prompt", f.prompt_columns}, {"cached", f.cached_columns}, {"computed", f.computed_columns}}},
      {"kv",
       {{"pages", f.kv.pages},
        {"page_size", f.kv.page_size},
        {"used_peak", f.kv_pages_peak},
        {"used", f.kv.pages_used},
        {"cached", f.kv.pages_cached},
        {"free", f.kv.pages_free},
        {"voices_cached", f.kv.voices_cached}}},
      {"memory_bytes", json_of(f.memory)},
      {"resident_bytes", f.resident_bytes},
      {"resident_peak_bytes", f.resident_peak_bytes},
      {"submit_lag_max_s", f.submit_lag_max_s},
  };
  if (f.kv.pages == 0) json.erase("kv"), json.erase("columns");  // a model without a KV cache
  if (f.first_error) json["first_error"] = f.first_error->message();
  return json;
}

}  // namespace

ordered_json load_json(std::span<const bench::LevelFigures> levels) {
  ordered_json json = {{"levels", ordered_json::array()}, {"promises", ordered_json::array()}};
  const std::vector<bench::Scaling> scaling = bench::scaling_of(levels);
  for (size_t i = 0; i < levels.size(); ++i) json["levels"].push_back(json_of(levels[i], scaling[i]));
  for (const bench::Promise& promise : bench::promises_of(levels)) {
    json["promises"].push_back({{"what", promise.what},
                                {"unit", promise.unit},
                                {promise.at_least ? "at_least" : "at_most", promise.goal},
                                {"measured", promise.measured},
                                {"kept", promise.kept()}});
  }
  return json;
}

}  // namespace shoal::cli
