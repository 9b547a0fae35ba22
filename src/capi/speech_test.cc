#include "capi/speech.h"

#include <atomic>
#include <condition_variable>
#include <gmock/gmock.h>
#include <mutex>
#include <poll.h>
#include <set>
#include <thread>

#include "capi/capi_testing.h"
#include "capi/config.h"
#include "capi/request.h"
#include "shoal/engine.h"

namespace shoal::capi {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// What the callbacks of a speech were told.
struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<float> samples;
  int ends = 0;
  shoal_code code = SHOAL_OK;
  std::string message;
  int64_t counted = 0;

  static void on_audio(void* user, const float* samples, size_t count) {
    auto& heard = *static_cast<Heard*>(user);
    const std::lock_guard lock(heard.mutex);
    heard.samples.insert(heard.samples.end(), samples, samples + count);
  }
  static void on_end(void* user, const shoal_summary* summary, const shoal_error* error) {
    auto& heard = *static_cast<Heard*>(user);
    const std::lock_guard lock(heard.mutex);
    ++heard.ends;
    heard.counted = summary->samples;
    if (error) heard.code = error->code, heard.message = error->message;
    heard.changed.notify_all();
  }
  shoal_callbacks callbacks() {
    return {.size = sizeof(shoal_callbacks), .user = this, .on_audio = on_audio, .on_end = on_end};
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return ends > 0; });
  }
};

TEST(CSpeech, HasTheSamplesOfTheCppInterface) {
  Engine theirs(tiny_config()->values.engine);
  theirs.start();
  const CEngine engine = started_engine();
  for (const char* seed : {"3", "18446744073709551615"}) {
    const Request request = short_request(seed);
    Speech expected = theirs.submit(request->value);
    const std::vector<float> samples = expected.read_all();
    ASSERT_FALSE(samples.empty());
    const CSpeech speech = submitted(engine, request);
    EXPECT_EQ(all_samples(speech), samples);
    EXPECT_EQ(values_of<int32_t>(made<Buffer>(shoal_speech_codes, speech.get())), expected.codes());
    shoal_summary summary = SHOAL_SUMMARY_INIT;
    ASSERT_EQ(shoal_speech_summary(speech.get(), &summary, nullptr), SHOAL_OK);
    EXPECT_EQ(summary.seed, expected.summary().seed);
    EXPECT_EQ(summary.samples, static_cast<int64_t>(samples.size()));
    EXPECT_EQ(summary.frames, expected.summary().frames);
    EXPECT_EQ(summary.sample_rate_hz, expected.sample_rate_hz());
    EXPECT_DOUBLE_EQ(summary.audio_s, expected.summary().audio_s());
    EXPECT_GT(summary.first_audio_s, 0);
    EXPECT_GE(summary.total_s, summary.first_audio_s);
  }
}

TEST(CSpeech, ComesInPiecesThenEnds) {
  const CEngine engine = started_engine();
  const CSpeech speech = submitted(engine, short_request());
  std::vector<float> samples;
  shoal_error error = SHOAL_ERROR_INIT;
  while (true) {
    shoal_buffer* piece = nullptr;
    const shoal_code code = shoal_speech_next(speech.get(), 5, &piece, &error);
    EXPECT_STREQ(error.message, "");
    if (code == SHOAL_END) break;
    if (code == SHOAL_NOT_YET) {
      EXPECT_EQ(piece, nullptr);
      continue;
    }
    ASSERT_EQ(code, SHOAL_OK);
    const std::vector<float> values = values_of<float>(Buffer(piece));
    EXPECT_FALSE(values.empty());
    samples.insert(samples.end(), values.begin(), values.end());
  }
  shoal_buffer* piece = nullptr;
  EXPECT_EQ(shoal_speech_next(speech.get(), -1, &piece, nullptr), SHOAL_END) << "again";
  EXPECT_EQ(shoal_speech_status(speech.get(), nullptr), SHOAL_OK);
  EXPECT_EQ(samples, all_samples(submitted(engine, short_request())));
  shoal_progress progress = SHOAL_PROGRESS_INIT;
  EXPECT_EQ(shoal_speech_progress(speech.get(), &progress, nullptr), SHOAL_OK);
  EXPECT_EQ(progress.fraction, 1);
  EXPECT_EQ(text_of(made<Buffer>(shoal_speech_words, speech.get(), size_t{0})), "[]");
  EXPECT_EQ(text_of(made<Buffer>(shoal_speech_warnings, speech.get())), "[]");
}

TEST(CSpeech, AnOlderCallersSummaryIsFilledAsFarAsItGoes) {
  const CEngine engine = started_engine();
  const CSpeech speech = submitted(engine, short_request("12"));
  all_samples(speech);
  shoal_summary summary = SHOAL_SUMMARY_INIT;
  summary.size = offsetof(shoal_summary, samples);
  summary.samples = -1;
  EXPECT_EQ(shoal_speech_summary(speech.get(), &summary, nullptr), SHOAL_OK);
  EXPECT_EQ(summary.seed, 12U);
  EXPECT_EQ(summary.samples, -1);
}

TEST(CSpeech, CancelEndsItWithItsCode) {
  const CEngine engine = started_engine();
  const CSpeech speech = submitted(engine, endless_request());
  EXPECT_EQ(shoal_speech_status(speech.get(), nullptr), SHOAL_NOT_YET);
  EXPECT_EQ(shoal_speech_cancel(speech.get(), nullptr), SHOAL_OK);
  shoal_error error = SHOAL_ERROR_INIT;
  shoal_buffer* samples = nullptr;
  EXPECT_EQ(shoal_speech_read_all(speech.get(), &samples, &error), SHOAL_CANCELLED);
  EXPECT_EQ(samples, nullptr);
  EXPECT_STREQ(error.message, "the request was cancelled");
  EXPECT_EQ(shoal_speech_status(speech.get(), &error), SHOAL_CANCELLED);
  EXPECT_EQ(shoal_speech_cancel(speech.get(), nullptr), SHOAL_OK) << "once more, to no effect";
}

TEST(CSpeech, ADeadlineEndsItWithItsCode) {
  const CEngine engine = started_engine();
  const Request request = short_request("3", "0");
  shoal_request_set(request.get(), "timeout_ms", "1", nullptr);
  shoal_buffer* samples = nullptr;
  EXPECT_EQ(shoal_speech_read_all(submitted(engine, request).get(), &samples, nullptr),
            SHOAL_DEADLINE_EXCEEDED);
}

TEST(CSpeech, CallbacksHearEverythingAndTheEndOnce) {
  const CEngine engine = started_engine();
  Heard heard;
  const shoal_callbacks callbacks = heard.callbacks();
  const CSpeech speech = made<CSpeech>(shoal_engine_submit, engine.get(), short_request().get(), &callbacks);
  heard.wait();
  EXPECT_EQ(heard.ends, 1);
  EXPECT_EQ(heard.code, SHOAL_OK);
  EXPECT_EQ(heard.counted, static_cast<int64_t>(heard.samples.size()));
  EXPECT_EQ(heard.samples, all_samples(submitted(engine, short_request())));
  // Nobody else may take its sound.
  shoal_buffer* samples = nullptr;
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_speech_next(speech.get(), 0, &samples, &error), SHOAL_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("its callbacks receive the sound"));
  EXPECT_EQ(shoal_speech_watch(speech.get(), nullptr, 0, nullptr), SHOAL_INVALID_ARGUMENT);
}

TEST(CSpeech, CallbacksAreToldWhyItEnded) {
  const CEngine engine = started_engine();
  Heard heard;
  const shoal_callbacks callbacks = heard.callbacks();
  const CSpeech speech =
      made<CSpeech>(shoal_engine_submit, engine.get(), endless_request().get(), &callbacks);
  shoal_speech_cancel(speech.get(), nullptr);
  heard.wait();
  EXPECT_EQ(heard.code, SHOAL_CANCELLED);
  EXPECT_EQ(heard.message, "the request was cancelled");
}

TEST(CSpeech, WithoutCallbacksInItsStructItSpeaksUnheard) {
  const CEngine engine = started_engine();
  shoal_callbacks callbacks = SHOAL_CALLBACKS_INIT;
  const CSpeech speech = made<CSpeech>(shoal_engine_submit, engine.get(), short_request().get(), &callbacks);
  while (shoal_speech_status(speech.get(), nullptr) == SHOAL_NOT_YET) std::this_thread::yield();
  EXPECT_EQ(shoal_speech_status(speech.get(), nullptr), SHOAL_OK);
  callbacks.size = 3;
  shoal_speech* refused = nullptr;
  EXPECT_EQ(shoal_engine_submit(engine.get(), short_request().get(), &callbacks, &refused, nullptr),
            SHOAL_INVALID_ARGUMENT);
}

TEST(CSpeech, OutlivesItsEngineWithWhatItHad) {
  CEngine engine = started_engine();
  const CSpeech whole = submitted(engine, short_request());
  while (shoal_speech_status(whole.get(), nullptr) == SHOAL_NOT_YET) std::this_thread::yield();
  const CSpeech cut = submitted(engine, endless_request());
  engine.reset();
  EXPECT_FALSE(all_samples(whole).empty());
  shoal_buffer* samples = nullptr;
  const shoal_code code = shoal_speech_read_all(cut.get(), &samples, nullptr);
  EXPECT_TRUE(code == SHOAL_CANCELLED || code == SHOAL_UNAVAILABLE) << shoal_code_name(code);
}

TEST(CMailbox, TellsWhichSpeechesHaveSomethingToRead) {
  const CEngine engine = started_engine();
  const Mail mailbox = made<Mail>(shoal_mailbox_new);
  const int fd = shoal_mailbox_fd(mailbox.get());
  pollfd asked{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&asked, 1, 0), 0) << "nothing yet";
  constexpr size_t kSpeeches = 12;
  std::vector<CSpeech> speeches;
  for (size_t i = 0; i < kSpeeches; ++i) {
    speeches.push_back(submitted(engine, short_request("3", "6")));
    EXPECT_EQ(shoal_speech_watch(speeches[i].get(), mailbox.get(), 100 + i, nullptr), SHOAL_OK);
  }
  std::vector<size_t> counted(kSpeeches);
  // By index: the end of a speech may be told once more after it was read.
  std::set<size_t> ended;
  while (ended.size() < kSpeeches) {
    ASSERT_EQ(poll(&asked, 1, 60'000), 1);
    uint64_t tokens[5];
    size_t count = 0;
    if (shoal_mailbox_take(mailbox.get(), 0, tokens, 5, &count, nullptr) != SHOAL_OK) continue;
    EXPECT_EQ(std::set<uint64_t>(tokens, tokens + count).size(), count) << "each once";
    for (size_t i = 0; i < count; ++i) {
      const size_t index = tokens[i] - 100;
      shoal_buffer* piece = nullptr;
      shoal_code code = SHOAL_OK;
      while ((code = shoal_speech_next(speeches[index].get(), 0, &piece, nullptr)) == SHOAL_OK)
        counted[index] += values_of<float>(Buffer(piece)).size();
      if (code == SHOAL_END) ended.insert(index);
    }
  }
  for (const size_t samples : counted) EXPECT_EQ(samples, counted[0]);
  EXPECT_GT(counted[0], 0U);
}

TEST(CMailbox, WaitsNoLongerThanAsked) {
  const Mail mailbox = made<Mail>(shoal_mailbox_new);
  uint64_t token = 0;
  size_t count = 7;
  EXPECT_EQ(shoal_mailbox_take(mailbox.get(), 5, &token, 1, &count, nullptr), SHOAL_NOT_YET);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(shoal_mailbox_take(mailbox.get(), 5, &token, 0, &count, nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_mailbox_take(mailbox.get(), 5, nullptr, 1, &count, nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_mailbox_fd(nullptr), -1);
}

TEST(CMailbox, ASpeechMayBeWatchedNoLongerAndTheMailboxFreedFirst) {
  const CEngine engine = started_engine();
  Mail mailbox = made<Mail>(shoal_mailbox_new);
  const CSpeech ended = submitted(engine, short_request());
  while (shoal_speech_status(ended.get(), nullptr) == SHOAL_NOT_YET) std::this_thread::yield();
  EXPECT_EQ(shoal_speech_watch(ended.get(), mailbox.get(), 8, nullptr), SHOAL_OK);
  uint64_t token = 0;
  size_t count = 0;
  EXPECT_EQ(shoal_mailbox_take(mailbox.get(), 0, &token, 1, &count, nullptr), SHOAL_OK)
      << "what is there already is told at once";
  EXPECT_EQ(token, 8U);
  EXPECT_EQ(shoal_speech_watch(ended.get(), nullptr, 0, nullptr), SHOAL_OK);
  const CSpeech running = submitted(engine, endless_request());
  EXPECT_EQ(shoal_speech_watch(running.get(), mailbox.get(), 9, nullptr), SHOAL_OK);
  mailbox.reset();
  shoal_speech_cancel(running.get(), nullptr);
  while (shoal_speech_status(running.get(), nullptr) == SHOAL_NOT_YET) std::this_thread::yield();
}

// Speaks, cancels, watches and frees, as programs in a hurry do.
void use_in_a_hurry(const CEngine& engine, shoal_mailbox* mailbox, int turn) {
  CSpeech speech = submitted(engine, turn % 3 == 0 ? endless_request() : short_request("3", "6"));
  if (turn % 2 == 0) shoal_speech_watch(speech.get(), mailbox, static_cast<uint64_t>(turn), nullptr);
  shoal_buffer* piece = nullptr;
  if (shoal_speech_next(speech.get(), turn % 4, &piece, nullptr) == SHOAL_OK) shoal_buffer_free(piece);
  if (turn % 3 == 0) {
    std::thread other([&] { shoal_speech_cancel(speech.get(), nullptr); });
    shoal_buffer* rest = nullptr;
    EXPECT_NE(shoal_speech_read_all(speech.get(), &rest, nullptr), SHOAL_OK);
    other.join();
  }
}

TEST(CSpeech, ManyThreadsSpeakCancelAndFreeAtOnce) {
  const CEngine engine = started_engine();
  const Mail mailbox = made<Mail>(shoal_mailbox_new);
  std::atomic<bool> over{false};
  std::thread postman([&] {
    uint64_t tokens[16];
    size_t count = 0;
    while (!over) shoal_mailbox_take(mailbox.get(), 10, tokens, 16, &count, nullptr);
  });
  std::vector<std::thread> users;
  for (int user = 0; user < 6; ++user)
    users.emplace_back([&, user] {
      for (int turn = 0; turn < 6; ++turn) use_in_a_hurry(engine, mailbox.get(), user + turn);
    });
  for (std::thread& user : users) user.join();
  over = true;
  postman.join();
  EXPECT_EQ(all_samples(submitted(engine, short_request())), all_samples(submitted(engine, short_request())));
}

}  // namespace
}  // namespace shoal::capi
