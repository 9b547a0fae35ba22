// The routes of a fleet: how its workers are, and what an operator may ask for.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fleet/desk.h"
#include "server/access/gate.h"
#include "server/body/value.h"
#include "server/http/application.h"
#include "server/http/workers.h"

namespace shoal::fleet {

struct FleetServices {
  Desk& desk;
  server::Gate gate;
  // One answer of the answers of several workers to GET /v1/stats.
  std::function<server::Value(const std::vector<server::Value>&)> sum;
  server::Workers waiting{2};               // for the fleet to act
  std::chrono::milliseconds patience{500};  // with the answers of workers that are ready
};

struct FleetRoute {
  std::string method, path;
  server::Access access = server::Access::client;
  server::ErrorStyle errors = server::ErrorStyle::plain;
  server::Task<> (*handle)(FleetServices&, server::Exchange&) = nullptr;
};

// All of them.
const std::vector<FleetRoute>& fleet_routes();
// Their paths, for a balancer that sends their requests here.
std::vector<std::string> fleet_paths();
std::vector<FleetRoute> status_routes();  // of which reading is all
std::vector<FleetRoute> admin_routes();

class FleetServer : public server::Application {
 public:
  explicit FleetServer(FleetServices& services) : services_(services) {}

  server::Verdict judge(server::Request& head, bool upgrade) override;
  server::Task<> handle(server::Exchange& bare) override;
  server::Task<> converse(server::WebSocket& socket) override;
  server::Response refuse(server::Request& head, int status, std::string_view message) override;
  void record(const server::Request& request, const server::RequestRecord& record) override;

 private:
  const FleetRoute* find(std::string_view method, std::string_view path) const;
  server::Verdict judge_without_route(const server::Request& head) const;
  server::Response told(server::ErrorStyle style, const server::HttpError& error, const server::Request& head,
                        server::Headers more = {}) const;
  server::Headers common_headers(const server::Request& head) const;

  FleetServices& services_;
};

}  // namespace shoal::fleet
