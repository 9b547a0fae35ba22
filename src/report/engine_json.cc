#include "report/engine_json.h"

#include <utility>

#include "report/json_parts.h"

namespace shoal::report {
namespace {

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

Value codec_json(const CodecShape& shape) {
  if (shape.codebooks == 0) return {};
  return {Object{{"codebooks", count(shape.codebooks)},
                 {"semantic_entries", count(shape.semantic_entries)},
                 {"residual_entries", count(shape.residual_entries)},
                 {"samples_per_frame", count(shape.samples_per_frame)}}};
}

Value chunk_json(const PhonemeChunk& chunk) {
  return {Object{{"phonemes", {chunk.phonemes}},
                 {"ids", counts(chunk.ids)},
                 {"pause_after_s", number(chunk.pause_after_s)}}};
}

}  // namespace

Value memory_parts_json(const std::vector<MemoryPart>& parts) {
  Object members;
  for (const MemoryPart& part : parts) members.emplace_back(part.name, count(part.bytes));
  return {std::move(members)};
}

Value device_memory_json(const Health& health) {
  if (health.device_total_bytes == 0) return {};
  return {Object{{"used_bytes", count(health.device_used_bytes)},
                 {"total_bytes", count(health.device_total_bytes)}}};
}

Object statistics_members(const Statistics& of) {
  return {{"queue", queue_of(of)},
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
          {"clip_cache", clips_of(of.voices)}};
}

Object format_members(const FormatNames& of) {
  return {{"precision", text_or_null(of.precision)},
          {"weights", text_or_null(of.weights)},
          {"kv_precision", text_or_null(of.kv_precision)},
          {"codec_weights", text_or_null(of.codec_weights)}};
}

Object health_members(const Health& of) {
  Object members{{"state", {std::string(name_of(of.state))}}, {"model", text_or_null(of.model)}};
  append(members, format_members(of.formats));
  append(members, {{"device", text_or_null(of.device)},
                   {"uptime_s", number(of.uptime_s)},
                   {"gpu_available", {of.gpu_available}},
                   {"memory", memory_parts_json(of.memory)},
                   {"device_memory", device_memory_json(of)},
                   {"resident_bytes", count(of.resident_bytes)}});
  return members;
}

Value understood_json(const ModelTraits& traits) {
  return {Object{{"phonemes", {traits.phonemes}},
                 {"own_voices", {traits.own_voices}},
                 {"references", {traits.references}},
                 {"speakers", {traits.speakers}},
                 {"tags", text_or_null(traits.tags)}}};
}

Value traits_json(const Engine& engine) {
  const ModelTraits traits = engine.traits();
  Object members{{"family", {traits.family}}};
  const Value understood = understood_json(traits);
  for (const auto& member : *understood.as<Object>()) members.push_back(member);
  members.emplace_back("sample_rate_hz", count(engine.sample_rate_hz()));
  // Models without clips have no codec to ask.
  members.emplace_back("codec", traits.references ? codec_json(engine.codec_shape()) : Value{});
  return {std::move(members)};
}

Value self_test_json(const SelfTest& test) {
  return {Object{{"device", {test.device}},
                 {"gpu_available", {test.gpu_available}},
                 {"gpu_memory_bytes", count(test.gpu_memory_bytes)},
                 {"error", text_or_null(test.error)}}};
}

Value phonemized_json(const Phonemized& all) {
  Value::Array chunks;
  for (const PhonemeChunk& chunk : all.chunks) chunks.push_back(chunk_json(chunk));
  return {Object{{"chunks", {std::move(chunks)}}, {"warnings", texts(all.warnings)}}};
}

}  // namespace shoal::report
