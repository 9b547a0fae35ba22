#include "server/routes/reload_route.h"

#include <atomic>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "report/engine_json.h"
#include "report/json_parts.h"
#include "server/routes/request_body.h"
#include "settings/table.h"

namespace shoal::server {
namespace {

struct ReloadBody {
  std::string name;
  std::optional<std::string> model, device, precision;
  std::optional<int> max_batch_size, max_queue;
  std::optional<int64_t> kv_memory_mb;
};

// Of a setting.
Range range_of(std::string_view key) {
  const settings::Row* row = settings::find_row(key);
  CHECK(row, "there is no setting ", key);
  return {row->allowed.low, row->allowed.high};
}

const Schema<ReloadBody>& schema() {
  static const Schema<ReloadBody> schema = {
      text("name", &ReloadBody::name, "Which model, by its name in /v1/models. Absent: the first."),
      text("model", &ReloadBody::model,
           "Folder of the model; \"\": the built-in voice. Absent: the same one."),
      text("device", &ReloadBody::device, "auto, cpu, cuda or cuda:N. Absent: the same one."),
      choice("precision", &ReloadBody::precision, {"auto", "float32", "bfloat16", "float16"},
             "Of the language model. Absent: as configured."),
      integer("max_batch_size", &ReloadBody::max_batch_size, range_of("max_batch_size"),
              "Sequences that one step advances."),
      integer("max_queue", &ReloadBody::max_queue, range_of("max_queue"), "Requests that may wait."),
      integer("kv_memory_mb", &ReloadBody::kv_memory_mb, range_of("kv_memory_mb"),
              "MiB for keys and values; 0: a share of what is free.")};
  return schema;
}

EngineConfig changed(EngineConfig config, const ReloadBody& body) {
  if (body.model) config.model = *body.model;
  if (body.device) config.device = *body.device;
  if (body.precision) config.precision = parse_precision(*body.precision);
  if (body.max_batch_size) config.max_batch_size = *body.max_batch_size;
  if (body.max_queue) config.max_queue = *body.max_queue;
  if (body.kv_memory_mb) config.kv_memory_mb = *body.kv_memory_mb;
  return config;
}

// One reload at a time: each needs memory for another model.
class Turn {
 public:
  explicit Turn(std::shared_ptr<std::atomic<bool>> taken) : taken_(std::move(taken)) {
    if (taken_->exchange(true))
      fail(ErrorCode::already_exists, "reload: one is under way; ask again when it is done");
  }
  ~Turn() { *taken_ = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const std::shared_ptr<std::atomic<bool>> taken_;
};

Response done(const Health& engine) {
  Value::Object members{{"success", {true}}, {"model", {engine.model}}, {"device", {engine.device}}};
  report::append(members, report::format_members(engine.formats));
  return {.content_type = "application/json", .body = write_json({std::move(members)}), .headers = {}};
}

Task<> reload(Services& services, Exchange& exchange, std::shared_ptr<std::atomic<bool>> taken) {
  ReloadBody body;
  if (!exchange.request().body.empty())
    body = co_await read_request(services, exchange, schema(), json_type());
  const ServedModel* served = body.name.empty() ? &services.models.first() : services.models.find(body.name);
  if (!served)
    throw BodyError(ErrorCode::not_found, "name", "there is no model of that name; see /v1/models");
  const Turn turn(std::move(taken));
  const auto work = [&engine = *served->engine, &body] {
    engine.reload(changed(engine.config(), body));
    return engine.health();
  };
  // Not in turn with long encodings: a queue of them must not hold an operator up.
  const Health health = co_await services.workers.run(exchange.executor(), work);
  log(LogLevel::info, "reloaded: ", health.model, ", ", in_words(health.formats), " on ", health.device);
  Response response = done(health);
  co_await exchange.respond(std::move(response));
}

}  // namespace

Route reload_route() {
  Route route{
      .method = "POST",
      .path = "/v1/admin/reload",
      .access = Access::admin,
      .body = BodySize::small,
      .doc =
          {.summary =
               "Loads the model again, or another one, beside the one that serves, and hands over; an empty "
               "body: the same one. What the body changes stays until the next start.",
           .body = schema().docs(),
           .body_types = json_type(),
           .body_required = false,
           .answer_types = {"application/json"}},
      .changes = true};
  const auto taken = std::make_shared<std::atomic<bool>>(false);
  route.handle = [taken](Services& services, Exchange& exchange) {
    return reload(services, exchange, taken);
  };
  return route;
}

}  // namespace shoal::server
