// What SageMaker asks of a container: GET /ping and POST /invocations, POST /models/NAME/invoke.
#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "server/routes/packed_answer.h"
#include "server/routes/readiness.h"
#include "server/routes/route_pattern.h"
#include "server/routes/services.h"

namespace shoal::server {
namespace {

using Handler = std::function<Task<>(Services&, Exchange&)>;

// A route behind /invocations: it receives the bodies that have `field`.
struct Target {
  std::string field;
  std::string format_field;  // the container of its sound; empty: it answers no bare sound
  Route route;
};

using Targets = std::vector<Target>;

Route route_of(std::vector<Route> routes, std::string_view path) {
  const auto route = std::ranges::find(routes, path, &Route::path);
  CHECK(route != routes.end(), "there is no route ", path);
  return std::move(*route);
}

std::shared_ptr<const Targets> targets_of(const ServerConfig& config) {
  return std::make_shared<const Targets>(
      Targets{{"items", "", route_of(batch_routes(config), "/v1/tts/batch")},
              {"input", "response_format", route_of(openai_routes(config), "/v1/audio/speech")},
              {"text", "format", route_of(fish_routes(config), "/v1/tts")}});
}

// The format that Accept names; "" when any will do.
std::string accepted_format(const Request& request) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kFormats = {
      {{"audio/wav", "wav"},
       {"audio/x-wav", "wav"},
       {"audio/wave", "wav"},
       {"audio/mpeg", "mp3"},
       {"audio/mp3", "mp3"},
       {"audio/flac", "flac"},
       {"audio/x-flac", "flac"},
       {"audio/ogg", "opus"},
       {"audio/opus", "opus"},
       {"audio/aac", "aac"},
       {"audio/pcm", "pcm"},
       {"audio/basic", "ulaw"},
       {"audio/x-alaw-basic", "alaw"}}};
  const std::string* accept = request.headers.find("accept");
  if (!accept) return "";
  const std::string_view first = std::string_view(*accept).substr(0, accept->find_first_of(",; "));
  for (const auto& [type, format] : kFormats)
    if (equal_ignoring_case(first, type)) return std::string(format);
  return "";
}

// A request with another body, and everything else as it is.
class RewrittenExchange final : public Exchange {
 public:
  RewrittenExchange(Exchange& inner, std::string json) : inner_(inner) {
    const Request& from = inner.request();
    request_ = {.method = from.method,
                .path = from.path,
                .query = from.query,
                .headers = {{"content-type", "application/json"}},
                .body = std::move(json),
                .peer = from.peer,
                .id = from.id,
                .client = from.client,
                .route = from.route};
  }

  const Request& request() const override { return request_; }
  Executor executor() const override { return inner_.executor(); }
  Task<> respond(Response response) override { return inner_.respond(std::move(response)); }
  Task<> begin(Response head) override { return inner_.begin(std::move(head)); }
  Task<> write(std::string_view bytes) override { return inner_.write(bytes); }
  Task<> end() override { return inner_.end(); }
  bool begun() const override { return inner_.begun(); }
  void on_gone(std::function<void()> notify) override { inner_.on_gone(std::move(notify)); }

 private:
  Exchange& inner_;
  Request request_;
};

struct Invocation {
  const Target* target = nullptr;
  std::optional<std::string> body;  // JSON, which every target takes, where Accept chose the format
};

// The model that the platform's header names, as it is or without the end of its archive's name; "" without
// the header. Throws BodyError(not_found).
std::string target_model(const Services& services, const Request& request) {
  constexpr std::string_view kArchive = ".tar.gz";
  const std::string* header = request.headers.find("X-Amzn-SageMaker-Target-Model");
  if (!header || header->empty()) return "";
  std::string_view name = *header;
  const bool is_archive = name.size() > kArchive.size() && name.ends_with(kArchive);
  if (is_archive && !services.models.find_exact(name)) name.remove_suffix(kArchive.size());
  return services.models.named(name).name;
}

void set_member(Value& body, const std::string& name, const std::string& text) {
  auto& members = std::get<Value::Object>(body.data);
  const auto found = std::ranges::find(members, name, &Value::Object::value_type::first);
  if (found == members.end())
    members.emplace_back(name, Value{text});
  else
    found->second = Value{text};
}

// model: that speaks, whatever the body says; "": the body says it.
Invocation read_invocation(const Targets& targets, const Request& request, const std::string& model) {
  Value body = body_of(request);
  const auto target =
      std::ranges::find_if(targets, [&](const Target& one) { return body.find(one.field) != nullptr; });
  if (target == targets.end())
    throw BodyError(ErrorCode::invalid_argument, "",
                    "expected the body of /v1/tts/batch (items), /v1/audio/speech (input) or /v1/tts (text)");
  const std::string format = accepted_format(request);
  const bool sets_format =
      !format.empty() && !target->format_field.empty() && !body.find(target->format_field);
  if (!sets_format && model.empty()) return {.target = &*target, .body = {}};
  if (sets_format) set_member(body, target->format_field, format);
  if (!model.empty()) set_member(body, "model", model);
  return {.target = &*target, .body = write_json(body)};
}

// As the body says, with that model; "": with the body's.
Task<> speak_with(Services& services, Exchange& exchange, std::shared_ptr<const Targets> targets,
                  std::string model) {
  const Request& request = exchange.request();
  auto read = [&request, targets, model] { return read_invocation(*targets, request, model); };
  Invocation invocation = co_await services.workers.run(exchange.executor(), std::move(read));
  if (!invocation.body) {
    co_await invocation.target->route.handle(services, exchange);
    co_return;
  }
  RewrittenExchange rewritten(exchange, std::move(*invocation.body));
  co_await invocation.target->route.handle(services, rewritten);
}

Task<> invoke(Services& services, Exchange& exchange, std::shared_ptr<const Targets> targets) {
  std::string model = target_model(services, exchange.request());
  co_await speak_with(services, exchange, std::move(targets), std::move(model));
}

Task<> invoke_named(Services& services, Exchange& exchange, std::shared_ptr<const Targets> targets) {
  const Request& request = exchange.request();
  std::string model(match_path(request.route, request.path).value_or(""));
  if (!services.models.find_exact(model))
    throw BodyError(ErrorCode::not_found, "",
                    concat("there is no model \"", printable(model), "\"; POST /models loads one"));
  co_await speak_with(services, exchange, std::move(targets), std::move(model));
}

Task<> ping(Services& services, Exchange& exchange) {
  if (services.config.ping_tells_loading && is_loading(services)) {
    Response initialising{.status = 204};
    co_await exchange.respond(std::move(initialising));
    co_return;
  }
  if (!is_ready(services)) fail(ErrorCode::unavailable, "the model is not ready");
  Response response{.content_type = "application/json", .body = "{\"status\":\"ready\"}"};
  co_await exchange.respond(std::move(response));
}

// A field of two routes: what either takes.
void widen(FieldDoc& known, const FieldDoc& other) {
  const auto looser = [](auto& limit, const auto& of_other, auto choose) {
    if (limit && of_other)
      limit = choose(*limit, *of_other);
    else
      limit.reset();
  };
  const auto least = [](auto a, auto b) { return std::min(a, b); };
  const auto most = [](auto a, auto b) { return std::max(a, b); };
  looser(known.minimum, other.minimum, least);
  looser(known.maximum, other.maximum, most);
  looser(known.max_length, other.max_length, most);
  if (other.one_of.empty()) known.one_of.clear();
  for (const std::string& word : known.one_of.empty() ? known.one_of : other.one_of)
    if (std::ranges::count(known.one_of, word) == 0) known.one_of.push_back(word);
  if (known.default_value != other.default_value) known.default_value.clear();
}

RouteDoc invocation_doc(const Targets& targets) {
  RouteDoc doc{
      .summary =
          "SageMaker's call: a body of /v1/tts/batch, /v1/audio/speech or /v1/tts, told by its fields; "
          "Accept may choose the format of the sound.",
      .body_types = packed_types()};
  const auto add = [](std::vector<std::string>& to, const std::string& one) {
    if (std::ranges::find(to, one) == to.end()) to.push_back(one);
  };
  for (const Target& target : targets) {
    for (const std::string& type : target.route.doc.answer_types) add(doc.answer_types, type);
    for (FieldDoc field : target.route.doc.body) {
      const auto same = std::ranges::find(doc.body, field.name, &FieldDoc::name);
      if (same != doc.body.end()) {
        widen(*same, field);
        continue;
      }
      field.required = false;
      doc.body.push_back(std::move(field));
    }
  }
  return doc;
}

}  // namespace

std::vector<Route> sagemaker_routes(const ServerConfig& config) {
  const auto targets = targets_of(config);
  Route invocations{.method = "POST",
                    .path = "/invocations",
                    .body = BodySize::large,
                    .doc = invocation_doc(*targets),
                    .takes_slot = true};
  invocations.handle = [targets](Services& services, Exchange& exchange) {
    return invoke(services, exchange, targets);
  };
  std::vector<Route> routes;
  if (!config.models_root.empty()) {
    Route named{.method = "POST",
                .path = "/models/{name}/invoke",
                .body = BodySize::large,
                .doc = invocations.doc,
                .takes_slot = true};
    named.doc.summary = "As /invocations, with that model.";
    named.handle = [targets](Services& services, Exchange& exchange) {
      return invoke_named(services, exchange, targets);
    };
    routes.push_back(std::move(named));
  }
  routes.push_back(
      {.method = "GET",
       .path = "/ping",
       .access = Access::open,
       .doc = {.summary = "200 when requests are taken (SageMaker, RunPod); until then 503, or 204 by "
                          "ping_tells_loading.",
               .answer_types = {"application/json"}},
       .handle = ping,
       .for_operators = true});
  routes.push_back(std::move(invocations));
  return routes;
}

}  // namespace shoal::server
