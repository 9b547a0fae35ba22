// What Vertex AI asks of a container, at the paths that it chooses: a health check, and predictions.
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "server/routes/batch_answer.h"
#include "server/routes/batch_request.h"
#include "server/routes/readiness.h"
#include "server/routes/request_body.h"

namespace shoal::server {
namespace {

constexpr const char* kInstances = "instances";
constexpr const char* kParameters = "parameters";

Task<> vertex_health(Services& services, Exchange& exchange) {
  if (!is_ready(services)) fail(ErrorCode::unavailable, "the model is not ready");
  Response response{.content_type = "application/json", .body = "{\"ready\":true}"};
  co_await exchange.respond(std::move(response));
}

// {"instances": [...], "parameters": {...}} with the parameters beside the instances.
Value prediction_body(const Request& request) {
  require_body_type(request, json_type());
  Value body = read_json(request.body);
  auto* fields = std::get_if<Value::Object>(&body.data);
  if (!fields) return body;  // the schema says what is wrong
  Value::Object flat;
  for (auto& [name, value] : *fields) {
    if (name == kInstances) {
      flat.emplace_back(name, std::move(value));
      continue;
    }
    if (name != kParameters)
      throw BodyError(ErrorCode::invalid_argument, name, "expected instances and parameters alone");
    if (value.is_null()) continue;
    auto* parameters = std::get_if<Value::Object>(&value.data);
    if (!parameters) throw BodyError(ErrorCode::invalid_argument, kParameters, "expected an object");
    if (value.find(kInstances))
      throw BodyError(ErrorCode::invalid_argument, "parameters.instances", "is no parameter");
    std::ranges::move(*parameters, std::back_inserter(flat));
  }
  return {std::move(flat)};
}

Task<> predict(Services& services, Exchange& exchange) {
  return answer_batch(services, exchange,
                      {.items = kInstances, .results = "predictions", .body_of = prediction_body});
}

RouteDoc prediction_doc(const ServerConfig& config) {
  std::vector<FieldDoc> fields = batch_docs(config, kInstances);
  FieldDoc parameters{.name = kParameters, .type = "object", .help = "Of all instances."};
  for (const FieldDoc& field : fields)
    if (field.name != kInstances) parameters.items.push_back(field);
  std::erase_if(fields, [](const FieldDoc& field) { return field.name != kInstances; });
  fields.push_back(std::move(parameters));
  return {.summary = "Vertex AI's prediction: each instance is a text, each prediction its sound in base64.",
          .body = std::move(fields),
          .body_types = json_type(),
          .answer_types = {"application/json"}};
}

}  // namespace

std::vector<Route> vertex_routes(const ServerConfig& config) {
  std::vector<Route> routes;
  if (!config.health_route.empty())
    routes.push_back(
        {.method = "GET",
         .path = config.health_route,
         .access = Access::open,
         .doc = {.summary = "200 when requests are taken (Vertex AI)", .answer_types = {"application/json"}},
         .handle = vertex_health,
         .for_operators = true});
  if (!config.predict_route.empty())
    routes.push_back({.method = "POST",
                      .path = config.predict_route,
                      .body = BodySize::large,
                      .doc = prediction_doc(config),
                      .handle = predict,
                      .takes_slot = true});
  return routes;
}

}  // namespace shoal::server
