// One request from its beginning to its end, over a connection.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/load/generator.h"
#include "bench/load/listener.h"
#include "bench/load/wire.h"

namespace shoal::load {

constexpr int64_t kPatience_us = 100'000;  // an interrupted run ends so soon

struct Visit {
  RequestRecord record;
  Turn turn;
  std::unique_ptr<Wire> wire;
  bool is_new = true;  // the wire is not connected
  int64_t deadline_us = 0;
  bool timed_out = false;  // set from outside, which also closes the wire
  double pace = 0;         // seconds of sound that its reader takes in a second; 0: all there is
};

// What all visits of a level share; outlives them.
struct VisitPlace {
  const GeneratorOptions& options;
  const Endpoints& endpoints;
  const bool& stopped;  // the level ends: nobody reads on
};

// Each returns whether the wire can carry another request.
Task<bool> visit_by_http(Visit& visit, const VisitPlace& place, const Hearing& hearing);
Task<bool> visit_live(Visit& visit, const VisitPlace& place, const Hearing& hearing);

// For both.
// Connects the wire if it is new.
Task<std::optional<Failure>> connect(Visit& visit, const VisitPlace& place);
// Plays what has been heard before it reads on.
Task<> listen(const Visit& visit, const VisitPlace& place, double heard_s);
std::string reason_of(const boost::system::error_code& error);
// Instead of `failure`, if the time is over.
Failure blame(const Visit& visit, const VisitPlace& place, Failure failure);

}  // namespace shoal::load
