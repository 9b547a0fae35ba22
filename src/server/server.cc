#include "server/server.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "server/access/keys.h"
#include "server/http/loopback.h"
#include "server/keeper.h"
#include "server/router.h"
#include "server/routes/openapi.h"
#include "server/routes/services.h"
#include "server/wyoming/listener.h"
#include "shoal/engine.h"

namespace shoal::server {
namespace {

int io_threads(const ServerConfig& config) {
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  return config.http_threads > 0 ? config.http_threads : std::max(1, cpus / 8);
}

std::vector<Route> operators_part(const std::vector<Route>& table) {
  std::vector<Route> part;
  std::ranges::copy_if(table, std::back_inserter(part), &Route::for_operators);
  return part;
}

TransportOptions transport_options(const ServerConfig& config) {
  using std::chrono::seconds;
  return {.listen = config.listen,
          .threads = io_threads(config),
          .max_connections = config.max_connections,
          .max_body_memory_bytes = int64_t{config.max_body_memory_mb} << 20,
          .header_timeout = seconds(config.header_timeout_s),
          .body_timeout = seconds(config.body_timeout_s),
          .idle_timeout = seconds(config.idle_timeout_s),
          .write_timeout = seconds(config.write_timeout_s),
          .min_body_rate = config.min_body_rate,
          .tls_certificate = config.tls_certificate,
          .tls_key = config.tls_key};
}

TransportOptions operators_options(const ServerConfig& config) {
  TransportOptions options = transport_options(config);
  options.listen = config.operator_listen;
  options.threads = 1;
  options.max_connections = 64;
  options.max_body_memory_bytes = 8 << 20;
  return options;
}

std::string model_name(const EngineConfig& engine, const ServerConfig& config) {
  if (!config.model_name.empty()) return config.model_name;
  if (engine.model.empty()) return "shoal";
  return std::filesystem::weakly_canonical(engine.model).filename().string();
}

struct OwnedModel {
  std::string name;
  std::unique_ptr<Engine> engine;
};

std::vector<OwnedModel> models_of(EngineConfig engine, const ServerConfig& config) {
  std::vector<OwnedModel> models;
  models.push_back({model_name(engine, config), std::make_unique<Engine>(engine)});
  for (const NamedModel& more : parse_models(config.models)) {
    if (std::ranges::count(models, more.name, &OwnedModel::name) > 0)
      fail(ErrorCode::invalid_argument, "models: expected names of their own, got \"", printable(more.name),
           "\", which is another model's");
    engine.model = more.dir;
    models.push_back({more.name, std::make_unique<Engine>(engine)});
  }
  return models;
}

std::vector<ServedModel> served(const std::vector<OwnedModel>& models) {
  std::vector<ServedModel> all;
  for (const OwnedModel& model : models) all.push_back({model.name, model.engine.get()});
  return all;
}

}  // namespace

class Server::Impl {
 public:
  Impl(EngineConfig engine, ServerConfig config)
      : config_(std::move(config)),
        table_(route_table(config_)),
        models_(models_of(std::move(engine), config_)),
        router_(services_, table_, keys_, admin_keys_),
        transport_(transport_options(config_), router_) {
    services_.transport = [this] { return transport_.statistics(); };
    if (!config_.operator_listen.empty())
      operators_.emplace(operators_options(config_), services_, operators_part(table_), keys_, admin_keys_);
    if (!config_.wyoming.empty()) wyoming_.emplace(wyoming_host_);
  }

  // An exchange that was cut off while a worker used it is still referred to, and its lane is posted to; the
  // transports, an operator's as well, hold both until their own end.
  ~Impl() {
    transport_.drain(std::chrono::milliseconds(0));
    if (wyoming_) wyoming_->stop();
    if (operators_) operators_->transport.drain(std::chrono::milliseconds(0));
    workers_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void listen() {
    if (operators_) {
      operators_->transport.start();
      log(LogLevel::info, "operators are answered at ",
          address(config_.operator_listen, operators_->transport.port()));
    }
    if (wyoming_) {
      wyoming_->start();
      for (const std::string& where : wyoming_->addresses())
        log(LogLevel::info, "Wyoming is spoken at ", where);
    }
    transport_.start();
    log(LogLevel::info, "listening on ", address(config_.listen, port()));
    warn_of_open_doors();
  }

  void load() {
    for (const OwnedModel& model : models_) {
      if (draining_) return;
      model.engine->start();
      ++loaded_;
      const Health health = model.engine->health();
      log(LogLevel::info, "ready: ", model.name, ", ", in_words(health.formats), " on ", health.device);
    }
    if (config_.model_ttl_s > 0 && (models_.size() > 1 || !config_.models_root.empty())) keep();
  }

  bool reload(const EngineConfig* wanted) {
    bool all_well = true;
    const auto held = services_.models.held();
    for (const ServedModel& model : services_.models.all()) {
      if (draining_) return false;
      try {
        Engine& engine = *model.engine;
        const EngineConfig present = engine.config();
        EngineConfig config = wanted ? *wanted : present;
        if (&engine != models_.front().engine.get()) config.model = present.model;
        config.references_dir = present.references_dir;
        if (!wanted && engine.health().state == EngineState::unloaded) continue;  // read at its next load
        engine.reload(config);
        const Health health = engine.health();
        log(LogLevel::info, "reloaded: ", model.name, ", ", in_words(health.formats), " on ", health.device);
      } catch (const std::exception& error) {
        all_well = false;
        log(LogLevel::error, "reload: ", model.name, ": ", error.what(), "; the one before serves on");
      }
    }
    return all_well;
  }

  bool stop(std::chrono::milliseconds grace) {
    draining_ = true;
    stop_keeper();
    const auto end = std::chrono::steady_clock::now() + grace;
    if (wyoming_) wyoming_->drain();
    bool all_ended = transport_.drain(grace, [this] { stop_engines(); });
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (wyoming_) all_ended &= wyoming_->wait(std::max(left, std::chrono::milliseconds(0)));
    stop_engines();
    if (wyoming_) {
      wyoming_->wait(kForLastEvents);
      wyoming_->stop();
    }
    // Last: readiness checks are answered until then.
    if (operators_) operators_->transport.drain(kForOperators);
    return all_ended;
  }

  bool is_loading() const { return being_loaded() != nullptr || services_.loads > 0; }
  uint16_t port() const { return transport_.port(); }

 private:
  // Everything they speak ends with `unavailable`.
  void stop_engines() {
    const Engine* const loading = being_loaded();
    for (size_t i = 0; i < loaded_; ++i)
      if (models_[i].engine.get() != loading) models_[i].engine->stop();
    for (const auto& engine : services_.models.added())
      if (engine.get() != loading) engine->stop();
    services_.grace_over = true;
  }

  // From now on models come and go.
  void keep() {
    const std::lock_guard lock(keeper_mutex_);
    if (!draining_) keeper_.emplace(services_.models, std::chrono::seconds(config_.model_ttl_s));
  }

  void stop_keeper() {
    const std::lock_guard lock(keeper_mutex_);
    if (keeper_) keeper_->stop();
  }

  const Engine* being_loaded() const {
    const std::lock_guard lock(keeper_mutex_);
    return keeper_ ? keeper_->loading() : nullptr;
  }

  std::string address(const std::string& listen, uint16_t its_port) const {
    const std::string host = listen.substr(0, listen.rfind(':'));
    return concat(config_.tls_certificate.empty() ? "http://" : "https://", host, ":", its_port);
  }

  void warn_of_open_doors() const {
    if (is_loopback_host(host_of(config_.listen)) || !config_.api_key.empty() ||
        !config_.api_key_file.empty())
      return;
    log(LogLevel::warning, "everybody who can reach ", config_.listen,
        " may use this server: no API key is set");
  }

  // What answers at operator_listen.
  struct Operators {
    Operators(TransportOptions options, Services& services, std::vector<Route> routes, const ApiKeys& keys,
              const ApiKeys& admin_keys)
        : router(services, std::move(routes), keys, admin_keys), transport(std::move(options), router) {}
    Router router;
    Transport transport;
  };

  static constexpr std::chrono::milliseconds kForOperators{500};  // an answer that is on its way
  static constexpr std::chrono::milliseconds kForLastEvents{1500};
  static constexpr std::chrono::seconds kQuiet{3};
  static constexpr int kWorkers = 4;  // for clips, long encodings, folders of voices, a reload

  const ServerConfig config_;
  const std::vector<Route> table_;
  std::atomic<bool> draining_{false};
  const std::vector<OwnedModel> models_;
  std::atomic<size_t> loaded_{0};  // of the models, in their order
  ServerMetrics metrics_;
  Workers workers_{kWorkers};
  Services services_{Models(served(models_)),          config_, workers_, metrics_, draining_,
                     openapi_document(table_, config_)};
  const ApiKeys keys_{config_.api_key, config_.api_key_file};
  const ApiKeys admin_keys_{config_.admin_key, config_.admin_key_file, "admin_key"};
  Router router_;
  const WyomingHost wyoming_host_{
      .services = services_,
      .enter =
          [this](const Request& request) {
            return std::make_shared<RequestSlots::Slot>(router_.enter(request));
          },
      .record = [this](const Request& request,
                       const RequestRecord& record) { router_.record(request, record); },
      .client = router_.has_keys() ? "wyoming" : ""};
  // These stop first: their threads use all of the above.
  Transport transport_;
  std::optional<Operators> operators_;
  std::optional<WyomingListener> wyoming_;
  mutable std::mutex keeper_mutex_;
  std::optional<Keeper> keeper_;  // under it; there once load() is done
  IdleMemory idle_memory_{[this] { return router_.activity(); }, give_back_free_memory, kQuiet};
};

Server::Server(EngineConfig engine, ServerConfig config) {
  config.validate();
  impl_ = std::make_unique<Impl>(std::move(engine), std::move(config));
}

Server::~Server() = default;

void Server::listen() { impl_->listen(); }
void Server::load() { impl_->load(); }
bool Server::reload(const EngineConfig* engine) { return impl_->reload(engine); }
bool Server::is_loading() const { return impl_->is_loading(); }
uint16_t Server::port() const { return impl_->port(); }
bool Server::stop(std::chrono::milliseconds grace) { return impl_->stop(grace); }

}  // namespace shoal::server
