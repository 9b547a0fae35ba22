#include "server/routes/statistics_json.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

const Value& member_of(const Value& object, std::string_view name) {
  static const Value kNone;
  const Value* const found = object.find(name);
  EXPECT_NE(found, nullptr) << name;
  return found ? *found : kNone;
}

TEST(StatisticsJson, HasTheFieldsOfOlderBatchingServers) {
  Health health;
  health.state = EngineState::ready;
  health.device = "cpu";
  health.statistics.steps = 12;
  health.statistics.submitted = 40;
  health.statistics.recent_batch_size = 3.25;
  health.statistics.preparing = 2;
  health.statistics.waiting = 5;
  const Value told = statistics_json(health, {}, /*draining=*/false);
  EXPECT_EQ(member_of(told, "total_batches"), Value{int64_t{12}});
  EXPECT_EQ(member_of(told, "total_requests"), Value{int64_t{40}});
  EXPECT_EQ(member_of(told, "avg_batch_size"), Value{3.25});
  EXPECT_EQ(member_of(told, "current_queue_size"), Value{int64_t{7}});
  EXPECT_EQ(member_of(told, "worker_running"), Value{true});
  EXPECT_EQ(member_of(told, "device"), Value{std::string("cpu")});
  EXPECT_EQ(member_of(told, "gpu_available"), Value{false});
  EXPECT_EQ(member_of(told, "mps_available"), Value{false});
}

TEST(StatisticsJson, AModelThatIsNotReadyIsReportedAsNotRunning) {
  Health health;
  for (const EngineState state : {EngineState::stopped, EngineState::starting, EngineState::stopping}) {
    health.state = state;
    EXPECT_EQ(member_of(statistics_json(health, {}, false), "worker_running"), Value{false})
        << name_of(state);
  }
}

}  // namespace
}  // namespace shoal::server
