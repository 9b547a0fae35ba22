// What the engine counts, in the exporter's own terms.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <span>
#include <string>
#include <vector>

#include "server/http/transport.h"
#include "shoal/statistics.h"

namespace shoal::server {

// A model that the server speaks with.
struct ModelHealth {
  std::string name;  // the label `model` of its numbers
  Health health;
};

// A picture of one moment: the engines and the transport count for themselves. `models` and `transport` must
// outlive it.
class EngineFamilies : public prometheus::Collectable {
 public:
  EngineFamilies(std::span<const ModelHealth> models, const TransportStatistics& transport)
      : models_(models), transport_(transport) {}
  // Before a model is loaded its engine's numbers are absent rather than zero; shoal_ready says so.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::span<const ModelHealth> models_;
  const TransportStatistics& transport_;
};

}  // namespace shoal::server
