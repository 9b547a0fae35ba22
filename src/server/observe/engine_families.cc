#include "server/observe/engine_families.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "server/observe/log_sink.h"

namespace shoal::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct Sample {
  std::string label;  // value of the family's label
  double value = 0;
};

template <typename Number>
double as_double(Number number) {
  return static_cast<double>(number);
}

// "KV pages" -> "kv_pages"
std::string label_of(std::string_view name) {
  std::string label(name);
  for (char& c : label) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == ' ') c = '_';
  }
  return label;
}

// Several models share a metric family; a label distinguishes them.
class FamilyList {
 public:
  // The model of the metrics added from here on; empty: of the process.
  void begin_model(std::string name) { model_ = std::move(name); }
  void counter(std::string name, std::string help, double value) {
    add(std::move(name), std::move(help), MetricType::Counter, "", {{"", value}});
  }
  void counters(std::string name, std::string help, const std::string& label,
                const std::vector<Sample>& samples) {
    add(std::move(name), std::move(help), MetricType::Counter, label, samples);
  }
  void gauge(std::string name, std::string help, double value) {
    add(std::move(name), std::move(help), MetricType::Gauge, "", {{"", value}});
  }
  void gauges(std::string name, std::string help, const std::string& label,
              const std::vector<Sample>& samples) {
    add(std::move(name), std::move(help), MetricType::Gauge, label, samples);
  }

  // The engine counts each bucket by itself; in the exposition a bucket includes all lower ones.
  void histogram(std::string name, std::string help, const Histogram& from) {
    ClientMetric metric = labelled();
    metric.histogram.sample_count = from.count;
    metric.histogram.sample_sum = from.sum;
    uint64_t below = 0;
    for (size_t i = 0; i < from.counts.size(); ++i) {
      below += from.counts[i];
      const double bound = i < from.bounds.size() ? from.bounds[i] : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({.cumulative_count = below, .upper_bound = bound});
    }
    family(std::move(name), std::move(help), MetricType::Histogram).metric.push_back(std::move(metric));
  }

  // Always 1: the labels carry the information.
  void info(std::string name, std::string help,
            const std::vector<std::pair<std::string, std::string>>& labels) {
    ClientMetric metric = labelled();
    for (const auto& [label, value] : labels) metric.label.push_back({label, value});
    metric.gauge.value = 1;
    family(std::move(name), std::move(help), MetricType::Gauge).metric.push_back(std::move(metric));
  }
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  ClientMetric labelled() const {
    ClientMetric metric;
    if (!model_.empty()) metric.label.push_back({"model", model_});
    return metric;
  }
  MetricFamily& family(std::string name, std::string help, MetricType type) {
    const auto found = std::ranges::find(families_, name, &MetricFamily::name);
    if (found != families_.end()) return *found;
    return families_.emplace_back(MetricFamily{std::move(name), std::move(help), type, {}});
  }
  void add(std::string name, std::string help, MetricType type, const std::string& label,
           const std::vector<Sample>& samples) {
    MetricFamily& to = family(std::move(name), std::move(help), type);
    for (const Sample& sample : samples) {
      ClientMetric metric = labelled();
      if (!label.empty()) metric.label.push_back({label, sample.label});
      metric.counter.value = sample.value;
      metric.gauge.value = sample.value;
      to.metric.push_back(std::move(metric));
    }
  }

  std::string model_;
  std::vector<MetricFamily> families_;
};

void add_transport(FamilyList& list, const TransportStatistics& transport) {
  list.gauge("shoal_http_connections", "Connections that are open.", as_double(transport.connections));
  list.gauge("shoal_http_websockets", "Of the open connections, those that are WebSockets.",
             as_double(transport.websockets));
  list.gauge("shoal_http_body_bytes", "Bytes of request bodies held in memory.",
             as_double(transport.body_bytes));
  list.counter("shoal_http_connections_accepted_total", "Connections that were taken.",
               as_double(transport.accepted));
  list.counter("shoal_http_connections_refused_total",
               "Connections that were turned away because there were too many.",
               as_double(transport.refused));
}

void add_log(FamilyList& list) {
  list.counter("shoal_log_lines_lost_total",
               "Lines of the log that were lost because its reader did not keep up.",
               as_double(lost_log_lines()));
}

void add_requests(FamilyList& list, const Statistics& of) {
  list.counter("shoal_engine_submitted_total", "Requests to speak that reached the engine.",
               as_double(of.submitted));
  list.counters("shoal_engine_requests_total", "Requests to speak by how they ended.", "outcome",
                {{"completed", as_double(of.completed)},
                 {"cancelled", as_double(of.cancelled)},
                 {"expired", as_double(of.expired)},
                 {"refused", as_double(of.refused)},
                 {"failed", as_double(of.failed)}});
  list.gauges("shoal_engine_requests", "Requests in the engine by what they do.", "stage",
              {{"preparing", as_double(of.preparing)},
               {"waiting", as_double(of.waiting)},
               {"running", as_double(of.running)},
               {"paused", as_double(of.paused)},
               {"finishing", as_double(of.finishing)}});
  list.histogram("shoal_queue_wait_seconds", "From a prepared request to its admission into the batch.",
                 of.queue_wait_s);
  list.histogram("shoal_first_audio_seconds", "From a request's submission to its first samples.",
                 of.first_audio_s);
  list.histogram("shoal_chunk_gap_seconds", "Between two deliveries of sound to one reader.", of.chunk_gap_s);
  list.histogram("shoal_real_time_factor", "Seconds of work for a second of sound, by request.",
                 of.real_time_factor);
}

void add_work(FamilyList& list, const Statistics& of) {
  list.counter("shoal_frames_total", "Frames of codes that were generated.", as_double(of.frames));
  list.counter("shoal_audio_seconds_total", "Seconds of sound that were made.", of.audio_s);
  list.counter("shoal_steps_total", "Steps of the language model.", as_double(of.steps));
  list.counter("shoal_codec_passes_total", "Passes of the codec's decoder.", as_double(of.codec_passes));
  list.counter("shoal_preemptions_total", "Sequences that gave their KV pages to an older one.",
               as_double(of.preemptions));
  list.counter("shoal_underruns_total", "Deliveries that came after a real-time listener had run dry.",
               as_double(of.underruns));
  list.counter("shoal_retried_steps_total", "Steps that failed and were run again in smaller batches.",
               as_double(of.retried_steps));
  list.histogram("shoal_batch_size", "Sequences that a step advanced.", of.batch_size);
  list.histogram("shoal_step_seconds", "Time of a step of the language model.", of.step_s);
  list.histogram("shoal_codec_pass_seconds", "Time of a pass of the codec's decoder.", of.codec_pass_s);
}

void add_caches(FamilyList& list, const Statistics& of) {
  const KvStatistics& kv = of.kv;
  list.gauges("shoal_kv_pages", "Pages of the KV pool: held by sequences, kept for prompts to come, free.",
              "state",
              {{"used", as_double(kv.pages_used)},
               {"cached", as_double(kv.pages_cached)},
               {"free", as_double(kv.pages_free)}});
  list.gauge("shoal_prefix_cache_voices", "Voices whose prompts are kept.", as_double(kv.voices_cached));
  list.gauge("shoal_prefix_cache_hit_ratio", "Prompt columns found in the prefix cache, of those looked up.",
             kv.hit_rate());
  list.counter("shoal_prefix_cache_lookups_total", "Prompts looked up in the prefix cache.",
               as_double(kv.lookups));
  list.counter("shoal_prefix_cache_hits_total", "Prompts of which at least one column was found.",
               as_double(kv.hits));
  list.counters("shoal_prefix_cache_columns_total", "Prompt columns looked up, by whether they were found.",
                "result", {{"hit", as_double(kv.hit_columns)}, {"miss", as_double(kv.missed_columns)}});
  list.counter("shoal_prefix_cache_evictions_total", "Kept pages that were given to somebody else.",
               as_double(kv.evictions));
  list.counter("shoal_prefix_cache_tail_copies_total", "Partly shared pages that were copied.",
               as_double(kv.tail_copies));
  const VoiceStatistics& voices = of.voices;
  list.gauge("shoal_reference_clips", "Encoded reference clips in memory.", as_double(voices.in_memory));
  list.counters("shoal_reference_clips_total", "Reference clips asked for, by where their codes came from.",
                "source",
                {{"memory", as_double(voices.memory_hits)},
                 {"disk", as_double(voices.disk_hits)},
                 {"encoded", as_double(voices.encoded)}});
  list.counter("shoal_reference_files_dropped_total",
               "Damaged or foreign files of the disk cache that were dropped.",
               as_double(voices.dropped_files));
}

void add_memory(FamilyList& list, const Health& engine) {
  std::vector<Sample> parts;
  for (const MemoryPart& part : engine.memory) parts.push_back({label_of(part.name), as_double(part.bytes)});
  if (!parts.empty())
    list.gauges("shoal_memory_bytes", "Memory that the engine holds, by part.", "part", parts);
  if (engine.device_total_bytes == 0) return;
  list.gauges("shoal_device_memory_bytes", "Memory of the GPU, whoever uses it.", "state",
              {{"used", as_double(engine.device_used_bytes)},
               {"free", as_double(engine.device_total_bytes - engine.device_used_bytes)}});
}

void add_model(FamilyList& list, const Health& engine, bool draining) {
  list.gauge("shoal_ready", "Whether the engine takes requests.", takes_requests(engine) && !draining);
  if (!is_loaded(engine)) return;
  list.info("shoal_model_info", "Always 1; the labels say what speaks.",
            {{"precision", engine.formats.precision},
             {"weights", engine.formats.weights},
             {"kv_precision", engine.formats.kv_precision},
             {"codec_weights", engine.formats.codec_weights},
             {"device", engine.device}});
  list.gauge("shoal_uptime_seconds", "Since the engine was started.", engine.uptime_s);
  add_requests(list, engine.statistics);
  add_work(list, engine.statistics);
  add_caches(list, engine.statistics);
  add_memory(list, engine);
}

}  // namespace

std::vector<MetricFamily> key_families(std::span<const KeyFigures> keys) {
  std::vector<Sample> requests, characters, sound;
  for (const KeyFigures& of : keys) {
    requests.push_back({of.key, as_double(of.requests)});
    characters.push_back({of.key, as_double(of.characters)});
    sound.push_back({of.key, of.sound_s});
  }
  FamilyList list;
  if (keys.empty()) return list.take();
  list.counters("shoal_key_requests_total", "Requests that kept a model busy, by the name of the API key.",
                "key", requests);
  list.counters("shoal_key_characters_total", "Characters that were to be spoken.", "key", characters);
  list.counters("shoal_key_audio_seconds_total", "Seconds of sound that were made.", "key", sound);
  return list.take();
}

std::vector<MetricFamily> EngineFamilies::Collect() const {
  FamilyList list;
  add_transport(list, transport_);
  add_log(list);
  if (!models_.empty())
    list.gauge("process_resident_memory_bytes", "Memory of the process that lies in RAM.",
               as_double(models_.front().health.resident_bytes));
  for (const ModelHealth& model : models_) {
    list.begin_model(model.name);
    add_model(list, model.health, draining_);
  }
  return list.take();
}

}  // namespace shoal::server
