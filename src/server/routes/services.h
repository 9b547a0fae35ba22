// What handlers work with.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/access/error_style.h"
#include "server/access/gate.h"
#include "server/access/usage.h"
#include "server/body/schema.h"
#include "server/http/body_budget.h"
#include "server/http/exchange.h"
#include "server/http/workers.h"
#include "server/observe/server_metrics.h"
#include "server/routes/models.h"
#include "server/routes/voice_names.h"
#include "shoal/server_config.h"

namespace shoal::server {

struct Services {
  Models models;
  const ServerConfig& config;
  Workers& workers;
  ServerMetrics& metrics;
  const std::atomic<bool>& draining;
  std::string openapi;  // the document of /openapi.json, made of the whole table
  std::function<TransportStatistics()> transport = [] { return TransportStatistics(); };
  BodyBudget answers{int64_t{config.max_body_memory_mb} << 20};  // that are sent whole
  const VoiceNames voice_names{config};
  Usage usage{};                        // by API key
  std::atomic<bool> grace_over{false};  // engines have stopped: work that waits for its client must end too
  std::atomic<int> loads{0};            // of models that requests bring, under way
};

// The limits and features of a route's requests.
enum class BodySize {
  none,
  small,  // 1 MiB
  large,  // max_body_mb: sound may be in it
};

// How /openapi.json describes a route.
struct RouteDoc {
  std::string summary;
  std::vector<FieldDoc> body;           // fields of the request; none, with body_types: it is ignored
  std::vector<FieldDoc> body_forms;     // other forms that the body may have instead of an object
  std::vector<std::string> body_types;  // media types of the request; empty: no body
  bool body_required = true;
  std::vector<FieldDoc> query;
  std::vector<std::string> answer_types;  // media types of the 200
};

struct Route {
  std::string method, path;  // exact, or with one "{name}" (match_path)
  ErrorStyle errors = ErrorStyle::plain;
  Access access = Access::client;
  BodySize body = BodySize::none;
  RouteDoc doc;
  // One of the two. Throws Error before it has begun an answer: the router answers by `errors`.
  std::function<Task<>(Services&, Exchange&)> handle;
  std::function<Task<>(Services&, WebSocket&)> converse;
  bool takes_slot = false;              // keeps a model busy: counts against max_concurrency
  bool changes = false;                 // what others are told: asking twice is not as good as once
  bool answers_while_draining = false;  // like routes that need no key
  bool for_operators = false;           // at operator_listen too, and when there are too many connections
};

std::vector<Route> route_table(const ServerConfig& config);
// Its parts, each in its own file.
std::vector<Route> openai_routes(const ServerConfig& config);
// What Kokoro-FastAPI has besides OpenAI's API (0.8).
std::vector<Route> kokoro_routes(const ServerConfig& config);
// ElevenLabs' API: speech, voices, WebSockets.
std::vector<Route> eleven_routes(const ServerConfig& config);
// OpenAI's Realtime API: a WebSocket.
std::vector<Route> realtime_routes(const ServerConfig& config);
std::vector<Route> fish_routes(const ServerConfig& config);
// Of Fish Audio's hosted service: /model, /wallet.
std::vector<Route> fish_model_routes(const ServerConfig& config);
std::vector<Route> fish_live_routes(const ServerConfig& config);  // a WebSocket of it
std::vector<Route> reference_routes(const ServerConfig& config);
std::vector<Route> codec_routes(const ServerConfig& config);
std::vector<Route> batch_routes(const ServerConfig& config);
std::vector<Route> live_routes(const ServerConfig& config);  // WebSocket
// Health, ready, metrics, statistics, documents, admin, /test/gpu.
std::vector<Route> operator_routes(const ServerConfig& config);
std::vector<Route> sagemaker_routes(const ServerConfig& config);
// Models that come and go by requests, as SageMaker's multi-model endpoints ask; none without
// ServerConfig::models_root.
std::vector<Route> multi_model_routes(const ServerConfig& config);
// The open inference protocol: KServe's v2, Triton's extensions.
std::vector<Route> kserve_routes(const ServerConfig& config);
// At ServerConfig::health_route and predict_route.
std::vector<Route> vertex_routes(const ServerConfig& config);
std::vector<Route> page_routes(const ServerConfig& config);

}  // namespace shoal::server
