#include "server/statistics_sum.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

std::string summed(std::initializer_list<std::string_view> servers) {
  std::vector<Value> all;
  for (const std::string_view one : servers) all.push_back(read_json(one));
  return write_json(sum_statistics(all));
}

TEST(StatisticsSum, CountsAreAdded) {
  EXPECT_EQ(summed({R"({"steps":2,"queue":{"running":1},"audio_s":1.5})",
                    R"({"steps":3,"queue":{"running":4,"paused":1},"audio_s":2.0})"}),
            R"({"steps":5,"queue":{"running":5,"paused":1},"audio_s":3.5})");
}

TEST(StatisticsSum, OfOneItIsTheSame) {
  const std::string_view one =
      R"({"id":0,"state":"ready","uptime_s":2.5,"first_audio_s":{"count":2,"mean":0.5,"p50":0.1,"p95":null},)"
      R"("kv":{"page_size":32,"hit_columns":1,"missed_columns":3,"hit_rate":0.25},"device_memory":null,)"
      R"("models":[{"id":0,"name":"a","steps":1}]})";
  EXPECT_EQ(summed({one}), one);
}

TEST(StatisticsSum, MeansQuantilesAndSharesAreThoseOfAll) {
  EXPECT_EQ(summed({R"({"step_s":{"count":3,"mean":1.0,"p95":2.0}})",
                    R"({"step_s":{"count":1,"mean":5.0,"p95":7.0}})",
                    R"({"step_s":{"count":0,"mean":null,"p95":null}})"}),
            R"({"step_s":{"count":4,"mean":2.0,"p95":7.0}})");
  EXPECT_EQ(summed({R"({"hit_columns":1,"missed_columns":1,"hit_rate":0.5})",
                    R"({"hit_columns":0,"missed_columns":2,"hit_rate":0.0})"}),
            R"({"hit_columns":1,"missed_columns":3,"hit_rate":0.25})");
  EXPECT_EQ(summed({R"({"uptime_s":1.5,"avg_batch_size":1.0})", R"({"uptime_s":9.5,"avg_batch_size":2.0})"}),
            R"({"uptime_s":9.5,"avg_batch_size":1.5})");
}

TEST(StatisticsSum, WordsStayIfAllSayTheSame) {
  EXPECT_EQ(summed({R"({"device":"cpu","model":"a","page_size":32,"worker_running":false})",
                    R"({"device":"cpu","model":"b","page_size":32,"worker_running":true})"}),
            R"({"device":"cpu","model":null,"page_size":32,"worker_running":true})");
}

TEST(StatisticsSum, ModelsAreToldApartByTheirNames) {
  EXPECT_EQ(summed({R"({"models":[{"name":"a","steps":1},{"name":"b","steps":2}]})",
                    R"({"models":[{"name":"b","steps":3},{"name":"c","steps":4}]})"}),
            R"({"models":[{"name":"a","steps":1},{"name":"b","steps":5},{"name":"c","steps":4}]})");
}

}  // namespace
}  // namespace shoal::server
