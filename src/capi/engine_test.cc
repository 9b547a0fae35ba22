#include <cstdlib>
#include <cstring>
#include <gmock/gmock.h>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/log.h"
#include "capi/capi_testing.h"

namespace shoal::capi {
namespace {

using namespace testing;
using ::testing::HasSubstr;

std::string state_of(const CEngine& engine) {
  return json_of(made<Buffer>(shoal_engine_health, engine.get())).at("state").as_string();
}

shoal_code submit_code(const CEngine& engine) {
  shoal_speech* speech = nullptr;
  const shoal_code code = shoal_engine_submit(engine.get(), short_request().get(), nullptr, &speech, nullptr);
  shoal_speech_free(speech);
  return code;
}

TEST(CEngine, AcceptsRequestsOnlyWhileItRuns) {
  const CEngine engine = made<CEngine>(shoal_engine_new, tiny_config().get());
  EXPECT_EQ(state_of(engine), "stopped");
  EXPECT_EQ(submit_code(engine), SHOAL_UNAVAILABLE);
  int32_t hz = 0;
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_engine_sample_rate(engine.get(), &hz, &error), SHOAL_UNAVAILABLE);
  EXPECT_STREQ(error.message, "the engine is not running");
  EXPECT_EQ(shoal_engine_start(engine.get(), nullptr), SHOAL_OK);
  EXPECT_EQ(shoal_engine_start(engine.get(), nullptr), SHOAL_INVALID_ARGUMENT) << "it runs";
  EXPECT_EQ(state_of(engine), "ready");
  EXPECT_EQ(submit_code(engine), SHOAL_OK);
  EXPECT_EQ(shoal_engine_stop(engine.get(), 0, nullptr), SHOAL_OK);
  EXPECT_EQ(submit_code(engine), SHOAL_UNAVAILABLE);
  EXPECT_EQ(shoal_engine_start(engine.get(), nullptr), SHOAL_OK) << "again";
  EXPECT_EQ(submit_code(engine), SHOAL_OK);
}

TEST(CEngine, StopWithoutLimitLetsRequestsEnd) {
  const CEngine engine = started_engine();
  const CSpeech speech = submitted(engine, short_request());
  EXPECT_EQ(shoal_engine_stop(engine.get(), -1, nullptr), SHOAL_OK);
  EXPECT_EQ(shoal_speech_status(speech.get(), nullptr), SHOAL_OK);
  EXPECT_FALSE(all_samples(speech).empty());
}

TEST(CEngine, ReloadsWhileItServes) {
  const CEngine engine = started_engine();
  const std::vector<float> before = all_samples(submitted(engine, short_request()));
  EXPECT_EQ(shoal_engine_reload(engine.get(), nullptr, nullptr), SHOAL_OK);
  const Config config = tiny_config();
  shoal_config_set(config.get(), "max_batch_size", "3", nullptr);
  EXPECT_EQ(shoal_engine_reload(engine.get(), config.get(), nullptr), SHOAL_OK);
  EXPECT_EQ(all_samples(submitted(engine, short_request())), before);
  shoal_config_set(config.get(), "model", "/nonexistent", nullptr);
  EXPECT_EQ(shoal_engine_reload(engine.get(), config.get(), nullptr), SHOAL_NOT_FOUND);
  EXPECT_EQ(submit_code(engine), SHOAL_OK) << "the old model serves on";
}

TEST(CEngine, TellsWhatItIsAndHowItDoes) {
  const CEngine engine = started_engine();
  all_samples(submitted(engine, short_request()));
  const Json traits = json_of(made<Buffer>(shoal_engine_traits, engine.get()));
  EXPECT_EQ(traits.at("family").as_string(), "s1");
  EXPECT_FALSE(traits.at("phonemes").as_bool());
  EXPECT_GT(traits.at("codec").at("codebooks").as_integer(), 1);
  int32_t hz = 0;
  EXPECT_EQ(shoal_engine_sample_rate(engine.get(), &hz, nullptr), SHOAL_OK);
  EXPECT_EQ(traits.at("sample_rate_hz").as_integer(), hz);
  const Json health = json_of(made<Buffer>(shoal_engine_health, engine.get()));
  EXPECT_EQ(health.at("precision").as_string(), "float32");
  EXPECT_EQ(health.at("weights").as_string(), "float32");
  EXPECT_EQ(health.at("kv_precision").as_string(), "float32");
  EXPECT_EQ(health.at("device").as_string(), "cpu");
  EXPECT_FALSE(health.at("memory").as_object().empty());
  EXPECT_GT(health.at("resident_bytes").as_integer(), 0);
  const Json figures = json_of(made<Buffer>(shoal_engine_statistics, engine.get()));
  EXPECT_EQ(figures.at("requests").at("completed").as_integer(), 1);
  EXPECT_GT(figures.at("frames").as_integer(), 0);
  const Json test = json_of(made<Buffer>(shoal_engine_self_test, engine.get()));
  EXPECT_TRUE(test.at("error").is_null());
}

TEST(CEngine, EncodesAndDecodesClips) {
  const CEngine engine = started_engine();
  const std::vector<float> sound = all_samples(submitted(engine, short_request("3", "24")));
  int32_t hz = 0;
  shoal_engine_sample_rate(engine.get(), &hz, nullptr);
  const Buffer clip = made<Buffer>(shoal_encode_sound, "wav", hz, 0, sound.data(), sound.size());
  shoal_buffer* codes = nullptr;
  int32_t codebooks = 0;
  shoal_error error = SHOAL_ERROR_INIT;
  ASSERT_EQ(shoal_engine_encode(engine.get(), shoal_buffer_data(clip.get()), shoal_buffer_size(clip.get()),
                                &codes, &codebooks, &error),
            SHOAL_OK)
      << error.message;
  const auto values = values_of<int32_t>(Buffer(codes));
  ASSERT_GT(codebooks, 0);
  EXPECT_EQ(values.size() % static_cast<size_t>(codebooks), 0U);
  EXPECT_FALSE(values_of<float>(made<Buffer>(shoal_engine_decode, engine.get(), values.data(), values.size()))
                   .empty());
  // The codes are a voice.
  const Request request = short_request();
  EXPECT_EQ(shoal_request_add_codes(request.get(), values.data(), values.size(), "a fish", nullptr),
            SHOAL_OK);
  const auto by_codes = all_samples(submitted(engine, request));
  const Request with_clip = short_request();
  EXPECT_EQ(shoal_request_add_reference(with_clip.get(), shoal_buffer_data(clip.get()),
                                        shoal_buffer_size(clip.get()), "a fish", nullptr),
            SHOAL_OK);
  EXPECT_EQ(all_samples(submitted(engine, with_clip)), by_codes);
  EXPECT_EQ(shoal_engine_encode(engine.get(), "noise", 5, &codes, nullptr, nullptr), SHOAL_CORRUPT_FILE);
  shoal_buffer* json = nullptr;
  EXPECT_EQ(shoal_engine_phonemize(engine.get(), "A fish.", nullptr, 1, &json, nullptr), SHOAL_UNSUPPORTED);
}

TEST(CEngine, NullAndForeignHandlesAreRefused) {
  const CEngine engine = made<CEngine>(shoal_engine_new, tiny_config().get());
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_engine_start(nullptr, &error), SHOAL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "engine: expected a handle, got NULL");
  EXPECT_EQ(shoal_engine_new(nullptr, nullptr, &error), SHOAL_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("engine: expected a place"));
  EXPECT_EQ(shoal_speech_cancel(reinterpret_cast<shoal_speech*>(engine.get()), &error),
            SHOAL_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("speech: expected a handle of this type"));
  shoal_speech* speech = nullptr;
  EXPECT_EQ(shoal_engine_submit(engine.get(), nullptr, nullptr, &speech, nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_engine_submit(nullptr, short_request().get(), nullptr, &speech, nullptr),
            SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_speech_next(nullptr, 0, nullptr, nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_request_set(nullptr, "text", "x", nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_config_set(nullptr, "model", "x", nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_buffer_data(nullptr), nullptr);
  EXPECT_EQ(shoal_buffer_size(nullptr), 0U);
  shoal_buffer_free(nullptr), shoal_config_free(nullptr), shoal_request_free(nullptr);
  shoal_engine_free(nullptr), shoal_engine_free_later(nullptr), shoal_speech_free(nullptr);
  shoal_mailbox_free(nullptr), shoal_batch_free(nullptr), shoal_item_free(nullptr);
  shoal_voices_free(nullptr), shoal_encoder_free(nullptr);
}

TEST(CEngine, FreeCancelsAndFreeLaterDoesNotWaitForIt) {
  CEngine engine = started_engine();
  const CSpeech speech = submitted(engine, endless_request());
  shoal_engine_free_later(engine.release());
  shoal_buffer* samples = nullptr;
  EXPECT_NE(shoal_speech_read_all(speech.get(), &samples, nullptr), SHOAL_OK);
}

struct Lines {
  std::mutex mutex;
  std::vector<std::string> lines;
};

TEST(CLog, GoesToTheCallersFunction) {
  Lines told;
  const auto listen = [](void* user, int32_t level, const char* message) {
    auto& into = *static_cast<Lines*>(user);
    const std::lock_guard lock(into.mutex);
    into.lines.push_back(std::to_string(level) + " " + message);
  };
  EXPECT_EQ(shoal_set_log(listen, &told, nullptr), SHOAL_OK);
  log(LogLevel::warning, "voices: ", 3, " are damaged");
  EXPECT_EQ(shoal_set_log(nullptr, nullptr, nullptr), SHOAL_OK);
  log(LogLevel::error, "nobody listens");
  EXPECT_EQ(told.lines, std::vector<std::string>{"2 voices: 3 are damaged"});
}

// The exit status of a child of a fork that does `act`.
template <typename Act>
int in_child(Act act) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);  // a hanging call ends with a signal
    _exit(act());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(CFork, TheChildOfARunningEngineIsRefusedAndNothingHangs) {
  const CEngine engine = started_engine();
  const CSpeech speech = submitted(engine, endless_request());
  const Request request = short_request();
  const int status = in_child([&] {
    shoal_error error = SHOAL_ERROR_INIT;
    shoal_speech* another = nullptr;
    shoal_engine* second = nullptr;
    shoal_buffer* piece = nullptr;
    if (shoal_engine_submit(engine.get(), request.get(), nullptr, &another, &error) != SHOAL_UNAVAILABLE)
      return 1;
    if (!strstr(error.message, "forked")) return 2;
    if (shoal_speech_next(speech.get(), -1, &piece, nullptr) != SHOAL_UNAVAILABLE) return 3;
    if (shoal_engine_stop(engine.get(), -1, nullptr) != SHOAL_UNAVAILABLE) return 4;
    if (shoal_engine_new(nullptr, &second, nullptr) != SHOAL_UNAVAILABLE) return 5;
    shoal_speech_free(speech.get());
    shoal_engine_free(engine.get());
    return 42;
  });
  EXPECT_EQ(status, 42);
  shoal_speech_cancel(speech.get(), nullptr);
  EXPECT_EQ(submit_code(engine), SHOAL_OK) << "the parent's engine goes on";
}

TEST(CProcessDeathTest, ItsEndStopsWhatRuns) {
  const auto end_while_speaking = [] {
    const CEngine engine = started_engine();
    const Request request = endless_request();
    const CSpeech speech = submitted(engine, request);
    const shoal_request* const requests[] = {request.get()};
    const shoal_batch_options* const defaults = nullptr;
    const CBatch batch = made<CBatch>(shoal_engine_batch, engine.get(), requests, size_t{1}, defaults);
    std::exit(42);
  };
  EXPECT_EXIT(end_while_speaking(), ::testing::ExitedWithCode(42), "");
}

// New threads in a child of threads are beyond what the sanitizer follows.
#if !defined(__SANITIZE_THREAD__)
TEST(CFork, TheChildOfAStoppedEngineMayStartItsOwn) {
  const CEngine stopped = started_engine();
  shoal_engine_stop(stopped.get(), 0, nullptr);
  const int status = in_child([&] {
    if (shoal_engine_start(stopped.get(), nullptr) != SHOAL_OK) return 1;
    const CEngine own = started_engine();
    return all_samples(submitted(own, short_request())).empty() ? 2 : 42;
  });
  EXPECT_EQ(status, 42);
}
#endif

}  // namespace
}  // namespace shoal::capi
