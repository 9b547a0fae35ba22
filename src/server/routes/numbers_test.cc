// Numbers out of range are refused with the name of their field, never clamped.
#include <gmock/gmock.h>

#include "server/routes/live_messages.h"
#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::json_request;

bool is_numeric(const FieldDoc& field) {
  // These have no effect, whatever they say.
  if (field.name == "min_chunk_length" || field.name == "early_stop_threshold") return false;
  return field.type == "integer" || field.type == "number";
}

// Beyond the range of any field, and of each by a little.
std::vector<std::string> beyond(const FieldDoc& field) {
  std::vector<std::string> numbers = {"1e300", "-1e300", "1e400", "18446744073709551616",
                                      "-9223372036854775809"};
  if (field.type == "integer") numbers.insert(numbers.end(), {"9223372036854775808", "1.5"});
  const auto written = [](double number) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", number);
    return std::string(text);
  };
  if (field.minimum) numbers.push_back(written(*field.minimum - 1));
  if (field.maximum) numbers.push_back(written(*field.maximum + 1));
  return numbers;
}

struct NumberCase {
  std::vector<Route> (*table)(const ServerConfig&);
  std::string path, body;  // without the brace that closes it
};

TEST(Numbers, OutOfRangeAreRefusedByName) {
  const NumberCase cases[] = {
      {openai_routes, "/v1/audio/speech", R"({"model":"shoal","voice":"default","input":"A fish.")"},
      {fish_routes, "/v1/tts", R"({"text":"A fish.")"},
      {batch_routes, "/v1/tts/batch", R"({"items":[{"text":"A fish."}])"}};
  size_t asked = 0;
  for (const NumberCase& one : cases) {
    testing::RouteBench bench(one.table, testing::shared_engine());
    for (const Route& route : bench.routes()) {
      if (route.path != one.path || route.method != "POST") continue;
      for (const FieldDoc& field : route.doc.body) {
        if (!is_numeric(field)) continue;
        for (const std::string& number : beyond(field)) {
          const std::string member = ",\"" + field.name + "\":" + number + "}";
          const Answered answer = bench.ask(json_request(one.path, one.body + member));
          EXPECT_TRUE(answer.status == 400 || answer.status == 422) << one.path << member << answer.status;
          EXPECT_THAT(answer.body().substr(0, 500), ::testing::HasSubstr(field.name)) << one.path << member;
          ++asked;
        }
      }
    }
  }
  EXPECT_GT(asked, 150u);
}

TEST(Numbers, InFormsAreReadAsStrictly) {
  testing::RouteBench bench(fish_routes, testing::shared_engine());
  for (const Route& route : bench.routes()) {
    if (route.path != "/v1/tts") continue;
    for (const FieldDoc& field : route.doc.body) {
      if (!is_numeric(field)) continue;
      for (const std::string& number : beyond(field)) {
        Request request = json_request("/v1/tts", "");
        request.headers = {{"Content-Type", "multipart/form-data; boundary=X"}};
        for (const auto& [name, value] :
             {std::pair(std::string("text"), std::string("A fish.")), {field.name, number}})
          request.body +=
              "--X\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
        request.body += "--X--\r\n";
        const Answered answer = bench.ask(std::move(request));
        EXPECT_TRUE(answer.status == 400 || answer.status == 422) << field.name << "=" << number;
        EXPECT_THAT(answer.body().substr(0, 500), ::testing::HasSubstr(field.name));
      }
    }
  }
}

TEST(Numbers, InLiveMessagesAndBatchItemsAreReadAsStrictly) {
  const LiveReader reader(8);
  for (const char* field : {"seed", "sample_rate", "top_k", "max_new_tokens", "chunk_length", "timeout",
                            "speed", "temperature", "top_p", "repetition_penalty"}) {
    for (const char* number : {"1e300", "-1e300", "18446744073709551616"}) {
      const std::string message = R"({"type":"start",")" + std::string(field) + "\":" + number + "}";
      EXPECT_THROW(reader.read(message), BodyError) << message;
    }
  }
  testing::RouteBench bench(batch_routes, testing::shared_engine());
  for (const char* field : {"seed", "chunk_length", "max_new_tokens", "temperature", "top_p", "speed"}) {
    const Answered answer = bench.ask(json_request(
        "/v1/tts/batch", R"({"items":[{"text":"A fish.",")" + std::string(field) + R"(":1e300}]})"));
    EXPECT_THAT(answer.body(), ::testing::HasSubstr("items[0]." + std::string(field) + ": expected"))
        << field;
  }
}

}  // namespace
}  // namespace shoal::server
