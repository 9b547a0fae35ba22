// Two hundred random calls of each adapter that has no property test of its own.
#include <memory>

#include "server/routes/kokoro_testing.h"
#include "server/routes/random_calls_testing.h"

namespace shoal::server {
namespace {

using testing::body_docs;
using testing::expect_answers;
using testing::RandomBodies;
using testing::RouteBench;

constexpr int64_t kFewFrames = 5;

// With one thread: short calls, one at a time.
std::unique_ptr<Engine> lone_engine(EngineConfig config = testing::built_in_config()) {
  config.threads = 1;
  auto engine = std::make_unique<Engine>(std::move(config));
  engine->start();
  return engine;
}

Value::Object speech_fields_of(const char* text_field) {
  return {{text_field, {std::string("A fish.")}}, {"seed", {int64_t{7}}}, {"max_new_tokens", {kFewFrames}}};
}
Value::Object openai_usual() {
  Value::Object usual = speech_fields_of("input");
  usual.emplace_back("model", Value{std::string("tts-1")});
  usual.emplace_back("voice", Value{std::string("default")});
  return usual;
}
Value::Object batch_usual(const char* items) {
  Value::Object item{{"text", {std::string("A fish.")}}};
  return {
      {items, {Value::Array{{std::move(item)}}}}, {"seed", {int64_t{7}}}, {"max_new_tokens", {kFewFrames}}};
}

TEST(RandomCalls, OfOpenAisSpeech) {
  const auto engine = lone_engine();
  RouteBench bench(openai_routes, *engine);
  const auto& docs = body_docs(bench.routes(), "/v1/audio/speech");
  expect_answers(bench, "/v1/audio/speech", RandomBodies(docs, openai_usual(), 1));
}

TEST(RandomCalls, OfFishSpeechsServer) {
  const auto engine = lone_engine();
  RouteBench bench(fish_routes, *engine);
  expect_answers(bench, "/v1/tts",
                 RandomBodies(body_docs(bench.routes(), "/v1/tts"), speech_fields_of("text"), 2));
}

TEST(RandomCalls, OfKokoroFastApi) {
  const testing::KokoroFolder folder;
  const auto engine = lone_engine(folder.config());
  RouteBench bench(kokoro_routes, *engine);
  const std::pair<const char*, Value::Object> routes[] = {
      {"/dev/captioned_speech", {{"input", {std::string("Hello there.")}}, {"seed", {int64_t{7}}}}},
      {"/dev/generate_from_phonemes",
       {{"phonemes", {std::string("həlˈO")}}, {"voice", {std::string("af_one")}}, {"seed", {int64_t{7}}}}},
      {"/dev/phonemize", {{"text", {std::string("Hello there.")}}}}};
  for (const auto& [path, usual] : routes)
    expect_answers(bench, path, RandomBodies(body_docs(bench.routes(), path), usual, 3), 70);
}

TEST(RandomCalls, OfSageMakerAndRunPod) {
  const auto engine = lone_engine();
  RouteBench bench(sagemaker_routes, *engine);
  const auto invoke = [&](const std::vector<Route>& behind, const std::string& path, Value::Object usual) {
    expect_answers(bench, "/invocations", RandomBodies(body_docs(behind, path), std::move(usual), 4), 70);
  };
  invoke(fish_routes({}), "/v1/tts", speech_fields_of("text"));
  invoke(openai_routes({}), "/v1/audio/speech", openai_usual());
  invoke(batch_routes({}), "/v1/tts/batch", batch_usual("items"));
}

TEST(RandomCalls, OfVertexAi) {
  const auto engine = lone_engine();
  RouteBench bench(vertex_routes, *engine, {.predict_route = "/predict"});
  const auto& fields = body_docs(bench.routes(), "/predict");
  const auto parameters = std::ranges::find(fields, "parameters", &FieldDoc::name)->items;
  Value::Object usual = batch_usual("instances");
  const Value instances = usual.front().second;
  usual.erase(usual.begin());
  expect_answers(bench, "/predict", RandomBodies(parameters, usual, 5), 200, [&](const Value::Object& given) {
    return Value{Value::Object{{"instances", instances}, {"parameters", {given}}}};
  });
}

}  // namespace
}  // namespace shoal::server
