// Models that come and go by requests: the contract of SageMaker's multi-model endpoints.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "server/routes/model_folder.h"
#include "server/routes/request_body.h"
#include "server/routes/route_pattern.h"
#include "server/routes/signal.h"
#include "shoal/model.h"

namespace shoal::server {
namespace {

constexpr std::chrono::milliseconds kLookAgain{20};
constexpr size_t kPageOfModels = 100;      // models of a page of GET /models
constexpr int kInsufficientStorage = 507;  // what makes the platform unload others
constexpr const char* kPageToken = "next_page_token";

struct LoadBody {
  std::string model_name, url;
};

const Schema<LoadBody>& load_schema() {
  static const Schema<LoadBody> schema = {
      text("model_name", &LoadBody::model_name, "its name from then on, as in /v1/models").required(),
      text("url", &LoadBody::url, "its folder, below models_root").required()};
  return schema;
}

// Who loads or unloads what: a name has one at a time, and loads, each planned by what is free, follow each
// other.
struct UnderWay {
  std::mutex mutex;
  std::set<std::string> names;
  bool loading = false;
};
using SharedUnderWay = std::shared_ptr<UnderWay>;

class ModelTurn {
 public:
  ModelTurn(SharedUnderWay all, std::string name, bool loads)
      : all_(std::move(all)), name_(std::move(name)), loads_(loads) {}
  ~ModelTurn() {
    if (!taken_) return;
    const std::lock_guard lock(all_->mutex);
    all_->names.erase(name_);
    if (loads_) all_->loading = false;
  }
  ModelTurn(const ModelTurn&) = delete;
  ModelTurn& operator=(const ModelTurn&) = delete;

  bool take() {
    const std::lock_guard lock(all_->mutex);
    if (all_->names.contains(name_) || (loads_ && all_->loading)) return false;
    all_->names.insert(name_);
    if (loads_) all_->loading = true;
    taken_ = true;
    return true;
  }

 private:
  const SharedUnderWay all_;
  const std::string name_;
  const bool loads_;
  bool taken_ = false;
};

// Counted while it lives: a server that is told to end does not wait for a load.
class CountedLoad {
 public:
  explicit CountedLoad(std::atomic<int>& loads) : loads_(loads) { ++loads_; }
  ~CountedLoad() { --loads_; }
  CountedLoad(const CountedLoad&) = delete;
  CountedLoad& operator=(const CountedLoad&) = delete;

 private:
  std::atomic<int>& loads_;
};

void check_not_draining(const Services& services) {
  if (services.draining) fail(ErrorCode::unavailable, "the server is shutting down");
}

Task<> until_its_turn(const Services& services, Executor executor, ModelTurn& turn) {
  Signal pause(executor);
  while (!turn.take()) {
    check_not_draining(services);
    co_await pause.wait(kLookAgain);
  }
}

Response answer_of_models(const Value& value) {
  return {.status = 200,
          .content_type = "application/json",
          .body = write_json(value),
          .headers = {{"cache-control", "no-store"}}};
}

Value entry_of(const ServedModel& model) {
  return {Value::Object{{"modelName", {model.name}}, {"modelUrl", {model.url}}}};
}

// Fields that the contract does not have yet are no reason to refuse a model.
LoadBody read_load(const Request& request) {
  Value body = read_json(request.body);
  if (auto* members = std::get_if<Value::Object>(&body.data))
    std::erase_if(*members,
                  [](const auto& member) { return member.first != "model_name" && member.first != "url"; });
  LoadBody read = load_schema().read_onto({}, body);
  check_new_name(read.model_name);
  return read;
}

// What loaded models have been promised of the memory that CPU threads compute in, and have not touched yet.
int64_t untouched_bytes(const Models& models) {
  int64_t promised = 0, resident = 0;
  for (const ServedModel& model : models.all()) {
    const Health health = model.engine->health();
    for (const MemoryPart& part : health.memory) promised += part.bytes;
    resident = health.resident_bytes;
  }
  return std::max<int64_t>(0, promised - resident);
}

// Before a byte of the weights is read. Throws Error(resource_exhausted) with the plan.
void check_memory(const Models& models, const EngineConfig& config) {
  MemoryEstimate estimate = estimate_memory(config);
  if (resolve_device(config.device) == "cpu") estimate.available_bytes -= untouched_bytes(models);
  estimate.check();
}

ServedModel loaded_model(Services& services, const LoadBody& asked) {
  const CountedLoad counted(services.loads);
  EngineConfig config = services.models.first().engine->config();
  config.model = folder_below(services.config.models_root, asked.url);
  check_memory(services.models, config);
  auto engine = std::make_shared<Engine>(std::move(config));
  engine->start();
  return {.name = asked.model_name, .engine = engine.get(), .owner = engine, .url = asked.url};
}

Task<> load_model(Services& services, Exchange& exchange, const SharedUnderWay& all) {
  require_body_type(exchange.request(), json_type());
  const LoadBody asked = read_load(exchange.request());
  ModelTurn turn(all, asked.model_name, true);
  co_await until_its_turn(services, exchange.executor(), turn);
  if (services.models.find_exact(asked.model_name))
    fail(ErrorCode::already_exists, "model_name: \"", asked.model_name, "\" is loaded already");
  const auto work = [&services, &asked] { return loaded_model(services, asked); };
  ServedModel model = co_await services.workers.run(exchange.executor(), work);
  check_not_draining(services);
  const Health health = model.engine->health();
  Response response = answer_of_models(entry_of(model));
  CHECK(services.models.add(std::move(model)), "two models called ", asked.model_name);
  log(LogLevel::info, "loaded: ", asked.model_name, ", ", in_words(health.formats), " on ", health.device,
      ", ", health.last_load_s, " s");
  co_await exchange.respond(std::move(response));
}

Task<> load_or_507(Services& services, Exchange& exchange, SharedUnderWay all) {
  std::optional<Error> lacking;
  try {
    co_await load_model(services, exchange, all);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::resource_exhausted || exchange.begun()) throw;
    lacking = error;
  }
  if (!lacking) co_return;
  services.metrics.count_error(name_of(lacking->code()));
  HttpError told = http_error(*lacking);
  told.status = kInsufficientStorage;
  Response response = error_response(ErrorStyle::plain, told, exchange.request().id);
  co_await exchange.respond(std::move(response));
}

std::string name_in_path(const Request& request) {
  return std::string(match_path(request.route, request.path).value_or(""));
}

[[noreturn]] void fail_not_loaded(const std::string& name) {
  throw BodyError(
      ErrorCode::not_found, "",
      concat("\"", printable(name), "\" is no model that POST /models has loaded; GET /models lists them"));
}

// Whether nobody is inside and its memory is free.
bool leave(Engine& engine) {
  if (engine.unload(std::chrono::milliseconds(0))) return true;
  const EngineState state = engine.health().state;
  return state == EngineState::unloaded || state == EngineState::stopped;
}

Task<> unload_model(Services& services, Exchange& exchange, SharedUnderWay all) {
  const std::string name = name_in_path(exchange.request());
  ModelTurn turn(all, name, false);
  co_await until_its_turn(services, exchange.executor(), turn);
  const std::shared_ptr<Engine> engine = services.models.remove(name);
  if (!engine) fail_not_loaded(name);
  Signal pause(exchange.executor());
  const auto try_to = [engine] { return leave(*engine); };
  while (true) {
    const bool has_left = co_await services.workers.run(exchange.executor(), try_to);
    if (has_left) break;
    check_not_draining(services);
    co_await pause.wait(kLookAgain);
  }
  // Or it might be loaded again for a request that had found it.
  const auto end = [engine] { engine->stop(); };
  co_await services.workers.run(exchange.executor(), end);
  log(LogLevel::info, "unloaded: ", name);
  Response response = answer_of_models({Value::Object{{"modelName", {name}}}});
  co_await exchange.respond(std::move(response));
}

Task<> tell_loaded(Services& services, Exchange& exchange) {
  const std::string name = name_in_path(exchange.request());
  const ServedModel* model = services.models.find_exact(name);
  if (!model || !model->owner) fail_not_loaded(name);
  Response response = answer_of_models(entry_of(*model));
  co_await exchange.respond(std::move(response));
}

// In the order of their names: a page goes on behind the last name of the one before, whatever came or went.
Value page_behind(const Models& models, std::string_view token) {
  std::vector<const ServedModel*> behind;
  for (const ServedModel& model : models.all())
    if (model.owner && model.name > token) behind.push_back(&model);
  std::ranges::sort(behind, {}, &ServedModel::name);
  const size_t count = std::min(behind.size(), kPageOfModels);
  Value::Array page;
  for (size_t i = 0; i < count; ++i) page.push_back(entry_of(*behind[i]));
  Value::Object members{{"models", {std::move(page)}}};
  if (count < behind.size()) members.emplace_back("nextPageToken", Value{behind[count - 1]->name});
  return {std::move(members)};
}

Task<> list_loaded(Services& services, Exchange& exchange) {
  Response response =
      answer_of_models(page_behind(services.models, exchange.request().parameter(kPageToken).value_or("")));
  co_await exchange.respond(std::move(response));
}

Route load_route(const SharedUnderWay& all) {
  Route route{
      .method = "POST",
      .path = "/models",
      .body = BodySize::small,
      .doc = {.summary = "Loads a model from a folder below models_root (SageMaker's multi-model endpoints). "
                         "409: one of that name is loaded; 507: there is no memory for it.",
              .body = load_schema().docs(),
              .body_types = json_type(),
              .answer_types = {"application/json"}},
      .changes = true};
  route.handle = [all](Services& services, Exchange& exchange) {
    return load_or_507(services, exchange, all);
  };
  return route;
}

Route unload_route(const SharedUnderWay& all) {
  Route route{
      .method = "DELETE",
      .path = "/models/{name}",
      .doc = {.summary = "Unloads a model that POST /models has loaded, once requests inside have ended.",
              .answer_types = {"application/json"}},
      .changes = true};
  route.handle = [all](Services& services, Exchange& exchange) {
    return unload_model(services, exchange, all);
  };
  return route;
}

}  // namespace

std::vector<Route> multi_model_routes(const ServerConfig& config) {
  if (config.models_root.empty()) return {};
  const auto all = std::make_shared<UnderWay>();
  FieldDoc token{.name = kPageToken, .type = "string", .help = "the nextPageToken of the page before"};
  return {load_route(all),
          unload_route(all),
          {.method = "GET",
           .path = "/models",
           .doc = {.summary = "The models that POST /models has loaded, 100 a page.",
                   .query = {std::move(token)},
                   .answer_types = {"application/json"}},
           .handle = list_loaded},
          {.method = "GET",
           .path = "/models/{name}",
           .doc = {.summary = "A model that POST /models has loaded.", .answer_types = {"application/json"}},
           .handle = tell_loaded}};
}

}  // namespace shoal::server
