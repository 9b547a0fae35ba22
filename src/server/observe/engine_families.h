// The engine's statistics as metric families of the exporter.
#pragma once

#include <cstdint>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <span>
#include <string>
#include <vector>

#include "server/http/transport.h"
#include "server/observe/model_health.h"

namespace shoal::server {

// What a client has used, by the name of its API key.
struct KeyFigures {
  std::string key;
  uint64_t requests = 0, characters = 0;
  double sound_s = 0;
};
std::vector<prometheus::MetricFamily> key_families(std::span<const KeyFigures> keys);

// A picture of one moment: the engines and the transport count for themselves. `models` and `transport` must
// outlive it.
class EngineFamilies : public prometheus::Collectable {
 public:
  // draining: the server accepts no requests any more, even if its engines would.
  EngineFamilies(std::span<const ModelHealth> models, const TransportStatistics& transport, bool draining)
      : models_(models), transport_(transport), draining_(draining) {}
  // Before a model is loaded its engine's numbers are absent rather than zero; shoal_ready tells why.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::span<const ModelHealth> models_;
  const TransportStatistics& transport_;
  const bool draining_;
};

}  // namespace shoal::server
