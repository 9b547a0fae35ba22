#include "server/observe/server_metrics.h"

#include <array>
#include <map>
#include <mutex>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <shared_mutex>
#include <sstream>

#include "server/observe/engine_families.h"
#include "shoal/error.h"

namespace shoal::server {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Registry;

// Latencies in seconds: a live check takes a millisecond, a long speech minutes.
const prometheus::Histogram::BucketBoundaries& latency_buckets() {
  static const prometheus::Histogram::BucketBoundaries seconds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};
  return seconds;
}
// Route patterns come from the table, far fewer; more would be a bug of ours, and must not fill the memory of
// every scraper.
constexpr size_t kMostRoutes = 128;
constexpr std::string_view kOther = "other";

enum Outcome { ok, client_error, refused, gone, server_error, kOutcomes };
constexpr std::array<std::string_view, kOutcomes> kOutcomeNames = {"ok", "client_error", "refused", "gone",
                                                                   "server_error"};

Outcome outcome_of(const RequestRecord& record) {
  if (record.status == 429 || record.status == 503) return refused;
  if (record.status == 499) return gone;
  if (record.status >= 500) return server_error;
  if (record.status >= 400) return client_error;
  return record.status == 0 || !record.whole ? gone : ok;
}

bool is_error_code(std::string_view name) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    if (name_of(static_cast<ErrorCode>(code)) == name) return true;
  }
  return false;
}

Counter& single_counter(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

struct RouteMetrics {
  Counter* requests = nullptr;
  prometheus::Histogram* duration = nullptr;
};

}  // namespace

struct ServerMetrics::Families {
  Registry registry;
  prometheus::Family<Counter>& requests = prometheus::BuildCounter()
                                              .Name("shoal_http_requests_total")
                                              .Help(
                                                  "HTTP requests by route and outcome; gone: the answer did "
                                                  "not reach its end; refused: 429 or 503.")
                                              .Register(registry);
  prometheus::Family<prometheus::Histogram>& duration =
      prometheus::BuildHistogram()
          .Name("shoal_http_request_duration_seconds")
          .Help("From the first byte of a request to the last of its answer, WebSockets not counted.")
          .Register(registry);
  prometheus::Family<Counter>& errors = prometheus::BuildCounter()
                                            .Name("shoal_errors_total")
                                            .Help("Requests that ended in an error, by its kind.")
                                            .Register(registry);
  Counter& received = single_counter(registry, "shoal_http_received_bytes_total", "Bytes of request bodies.");
  Counter& sent = single_counter(registry, "shoal_http_sent_bytes_total", "Bytes of answers' bodies.");
  Gauge& speaking = prometheus::BuildGauge()
                        .Name("shoal_http_speaking")
                        .Help("Requests that speak now.")
                        .Register(registry)
                        .Add({});
  prometheus::Histogram& first_audio =
      prometheus::BuildHistogram()
          .Name("shoal_http_first_audio_seconds")
          .Help("From a request that has been read to its first sound written; not of batches.")
          .Register(registry)
          .Add({}, latency_buckets());

  // Looking a series up in its family costs microseconds; here it has been found before.
  std::shared_mutex mutex;
  std::array<std::map<std::string, RouteMetrics, std::less<>>, kOutcomes> by_route;
  std::map<std::string, Counter*, std::less<>> by_code;

  // The value of a key, made at its first use. References stay good.
  template <typename Value, typename Make>
  Value& find_or_make(std::map<std::string, Value, std::less<>>& all, std::string_view key, Make make) {
    {
      const std::shared_lock lock(mutex);
      if (const auto found = all.find(key); found != all.end()) return found->second;
    }
    const std::unique_lock lock(mutex);
    const auto found = all.find(key);
    if (found != all.end()) return found->second;
    return all.emplace(std::string(key), make(std::string(key))).first->second;
  }

  RouteMetrics make_route(const std::string& route, Outcome outcome) {
    const prometheus::Labels labels = {{"route", route}, {"outcome", std::string(kOutcomeNames[outcome])}};
    return {.requests = &requests.Add(labels), .duration = &duration.Add(labels, latency_buckets())};
  }

  RouteMetrics& of_route(std::string_view route, Outcome outcome) {
    if (route.empty()) route = kOther;
    auto& routes = by_route[outcome];
    {
      const std::shared_lock lock(mutex);
      if (routes.size() >= kMostRoutes && !routes.contains(route)) route = kOther;
    }
    return find_or_make(routes, route, [&](const std::string& key) { return make_route(key, outcome); });
  }
};

ServerMetrics::ServerMetrics() : families_(std::make_unique<Families>()) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::record(std::string_view route, const RequestRecord& record) {
  const Outcome outcome = outcome_of(record);
  RouteMetrics& metrics = families_->of_route(route, outcome);
  metrics.requests->Increment();
  constexpr int kUpgraded = 101;
  if (record.status != kUpgraded)
    metrics.duration->Observe(std::chrono::duration<double>(record.duration).count());
  families_->received.Increment(static_cast<double>(record.bytes_received));
  families_->sent.Increment(static_cast<double>(record.bytes_sent));
}

void ServerMetrics::count_error(std::string_view code) {
  if (!is_error_code(code)) code = kOther;
  families_
      ->find_or_make(families_->by_code, code,
                     [this](const std::string& key) { return &families_->errors.Add({{"code", key}}); })
      ->Increment();
}

void ServerMetrics::speaking(int change) { families_->speaking.Increment(change); }
void ServerMetrics::live_first_audio(double seconds) { families_->first_audio.Observe(seconds); }

std::string ServerMetrics::exposition(std::span<const ModelHealth> models,
                                      const TransportStatistics& transport, bool draining,
                                      std::span<const KeyFigures> keys) const {
  std::vector<prometheus::MetricFamily> all = families_->registry.Collect();
  for (auto& family : EngineFamilies(models, transport, draining).Collect()) all.push_back(std::move(family));
  for (auto& family : key_families(keys)) all.push_back(std::move(family));
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, all);
  return std::move(text).str();
}

}  // namespace shoal::server
