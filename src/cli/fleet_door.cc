#include "cli/fleet_door.h"

#include "base/error.h"
#include "fleet/routes/fleet_server.h"
#include "server/access/keys.h"
#include "server/http/transport.h"
#include "server/statistics_sum.h"

namespace shoal::cli {
namespace {

server::TransportOptions door_options(const ServerConfig& config) {
  constexpr int kMostConnections = 256;
  constexpr int64_t kMostBodyMemory = 8 << 20;
  return {.listen = config.operator_listen.empty() ? "127.0.0.1:0" : config.operator_listen,
          .threads = 1,
          .max_connections = kMostConnections,
          .max_body_memory_bytes = kMostBodyMemory};
}

}  // namespace

class FleetDoor::Impl {
 public:
  Impl(const ServerConfig& config, const std::string& address, fleet::Desk& desk)
      : host_(config.operator_listen.empty()
                  ? "127.0.0.1"
                  : config.operator_listen.substr(0, config.operator_listen.rfind(':'))),
        services_{.desk = desk,
                  .gate = server::Gate(server::ApiKeys(config.api_key, config.api_key_file),
                                       server::ApiKeys(config.admin_key, config.admin_key_file, "admin_key"),
                                       config.cors_origins, address),
                  .sum = server::sum_statistics},
        server_(services_),
        transport_(door_options(config), server_) {
    start(config.operator_listen.empty() ? "" : "operator_");
  }
  // An exchange that waits for the fleet refers to the threads that wait: they end last.
  ~Impl() {
    services_.desk.close();
    transport_.drain(std::chrono::milliseconds(0));
    services_.waiting.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int port() const { return transport_.port(); }
  std::string address() const { return concat("http://", host_, ":", port()); }

 private:
  // A port that is taken is the operator's to change, like those of the workers.
  void start(const char* of_setting) {
    try {
      transport_.start();
    } catch (const Error& error) {
      fail(ErrorCode::invalid_argument, of_setting, error.message());
    }
  }

  const std::string host_;
  fleet::FleetServices services_;
  fleet::FleetServer server_;
  server::Transport transport_;
};

FleetDoor::FleetDoor(const ServerConfig& config, const std::string& address, fleet::Desk& desk)
    : impl_(std::make_unique<Impl>(config, address, desk)) {}
FleetDoor::~FleetDoor() = default;
int FleetDoor::port() const { return impl_->port(); }
std::string FleetDoor::address() const { return impl_->address(); }

}  // namespace shoal::cli
