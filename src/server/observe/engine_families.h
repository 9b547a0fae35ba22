// What the engine counts, in the exporter's own terms.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <vector>

#include "server/http/transport.h"
#include "shoal/statistics.h"

namespace shoal::server {

// A picture of one moment: the engine and the transport count for themselves. `engine` and `transport` must
// outlive it.
class EngineFamilies : public prometheus::Collectable {
 public:
  EngineFamilies(const Health& engine, const TransportStatistics& transport)
      : engine_(engine), transport_(transport) {}
  // Without a model the engine's numbers are absent rather than zero; shoal_ready says so.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Health& engine_;
  const TransportStatistics& transport_;
};

}  // namespace shoal::server
