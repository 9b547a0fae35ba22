// The HTTP server around an engine for each model.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "shoal/engine_config.h"
#include "shoal/server_config.h"

namespace shoal::server {

class Server {
 public:
  // Checks both configurations and reads keys and certificates; loads no model. The models of config.models
  // have engines like the first, except for the folder. Throws the Errors of these steps, and
  // invalid_argument for two models of one name.
  Server(EngineConfig engine, ServerConfig config);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // /health answers from now on, /ready says 503. Throws Error as Transport::start.
  void listen();
  // Loads and warms up the models, one after the other; once stop() has been called no more are begun. Throws
  // Error as Engine::start.
  void load();
  // Reloads each model from disk (Engine::reload), one after the other; none once stop() has been called.
  // Without a configuration each keeps its present one; with one, models after the first keep their folders,
  // and references_dir stays. Call after load(). Failures are logged, and the old model keeps serving.
  // Returns whether all succeeded.
  bool reload(const EngineConfig* engine = nullptr);
  // Whether a model that had been unloaded is being loaded. Once stop() has been called no more are begun;
  // the destructor waits for it.
  bool is_loading() const;
  uint16_t port() const;
  // /ready answers 503, new work is refused, running requests may end for `grace`. Then the engines end the
  // rest, each route reports it in its own form (503, an error event, 1001), and clients that do not read
  // that are cut off. Returns true when everything ended by itself. Another thread may be in load()
  // meanwhile; it does not wait for the model being loaded. It does wait for a reload().
  bool stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shoal::server
