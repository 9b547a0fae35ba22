// Thousands of random requests from several threads: short and long, of all kinds of voices, read at once,
// late, slowly, by callbacks, cancelled, dropped, late for their deadline, refused, with calls of the model
// that fail now and then, in less KV memory than they want. Every one ends exactly once; who gets an answer
// gets the very one it gets alone; nothing stays behind.
//
// SHOAL_TRAFFIC_REQUESTS and SHOAL_TRAFFIC_SEED change how many requests there are and which.
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <malloc.h>
#include <thread>

#include "runtime/engine/faulty_calls.h"
#include "runtime/engine/push_reader.h"
#include "runtime/engine/system_memory.h"
#include "runtime/engine/testing.h"

namespace shoal::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::Answer;
using testing::answer_of;
using testing::between;
using testing::Fault;
using testing::Faults;
using testing::OpCall;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRequests = 1000;  // ten times slower
constexpr bool kMemoryTells = false;
#else
constexpr int kRequests = 10'000;
constexpr bool kMemoryTells = true;
#endif
constexpr int kClients = 4;
constexpr size_t kKinds = 48;                                   // of requests
constexpr size_t kUnreadOfAClient = 13, kPushedToAClient = 10;  // speeches
// What the allocator may keep of the second half of the traffic more than of the first, fragments included:
// less than 1 KiB for each request.
constexpr int64_t kMemoryBound = int64_t{4} << 20;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

class VoicesFolder {
 public:
  VoicesFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "shoal_traffic_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
    for (const char* voice : {"anna", "ben"}) {
      std::filesystem::create_directory(path_ / voice);
      std::ofstream(path_ / voice / "clip.wav", std::ios::binary) << testing::noise_wav(0.5, *voice);
      std::ofstream(path_ / voice / "clip.lab") << "the words of " << voice;
    }
  }
  ~VoicesFolder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct Kind {
  SpeechRequest request;
  Answer alone;
};

EngineConfig roomy(const std::string& voices) {
  EngineConfig config = testing::tiny_config();
  config.references_dir = voices;
  return config;
}

EngineConfig tight(const std::string& voices) {
  EngineConfig config = roomy(voices);
  config.threads = 1;
  config.kv_memory_mb = 1;  // about 680 columns, in which 8 requests have room
  config.kv_page_size = 4;
  config.kv_cache_size = 3;
  config.max_batch_size = 16;
  config.max_streams = 64;  // more than clients leave unread, or those that they read would wait for these
  config.max_queue = 8;
  config.prefill_columns = 64;
  config.prefetch_s = 0.1;
  return config;
}

std::vector<Kind> make_kinds(std::mt19937_64& random, const std::string& voices_folder) {
  std::vector<ReferenceCodes> voices;
  for (const int frames : {8, 20, 45}) voices.push_back(testing::random_voice(random, frames));
  Pipeline pipeline(roomy(voices_folder));
  std::vector<Kind> kinds;
  while (kinds.size() < kKinds) {
    SpeechRequest request = testing::random_request(random, voices, between(random, 0, 3) == 0 ? 12 : 3);
    const int source = between(random, 0, 9);
    if (source < 4) request.encoded_references.clear();
    if (source < 2)
      request.references = {{.audio = testing::noise_wav(0.3, static_cast<uint32_t>(between(random, 0, 3))),
                             .text = "what the clip says"}};
    else if (source < 4)
      request.voice = source == 2 ? "anna" : "ben";
    Speech speech = pipeline.submit(request);
    try {
      kinds.push_back({request, answer_of(speech)});
    } catch (const Error&) {  // one that is silent even alone
    }
  }
  return kinds;
}

// Now and then a call fails, seldom a dozen in a row, so that requests fail for good.
Faults::Plan random_faults(uint64_t seed) {
  return [random = std::mt19937_64(seed), in_a_row = 0](const OpCall&) mutable {
    if (in_a_row > 0)
      --in_a_row;
    else if (between(random, 0, 149) > 0)
      return Fault{};
    else if (between(random, 0, 9) == 0)
      in_a_row = 12;
    const bool half_way = between(random, 0, 1) == 1;
    if (between(random, 0, 1) == 0) return Fault{std::make_exception_ptr(std::bad_alloc()), half_way};
    return Fault{std::make_exception_ptr(Error(ErrorCode::internal, "an op failed")), half_way};
  };
}

struct Tally {
  std::atomic<uint64_t> answered{0}, cancelled{0}, late{0}, failed{0}, refused{0}, thrown{0}, dropped{0};
};

class Client {
 public:
  Client(Pipeline& pipeline, const std::vector<Kind>& kinds, Tally& tally, uint64_t seed)
      : pipeline_(pipeline), kinds_(kinds), tally_(tally), random_(seed) {}

  void run(int requests) {
    for (int i = 0; i < requests; ++i) {
      request();
      while (unread_.size() > kUnreadOfAClient) read_one();
      while (pushed_.size() > kPushedToAClient) settle_pushed();
    }
    while (!unread_.empty()) read_one();
    while (!pushed_.empty()) settle_pushed();
  }

 private:
  struct Unread {
    Speech speech;
    const Kind* kind;
    bool may_be_late = false;
  };
  struct Pushed {
    explicit Pushed(const Kind& k) : kind(&k) {}
    const Kind* kind;
    std::vector<float> sound;
    std::optional<ErrorCode> error;
    std::atomic<int> ends{0};
    std::optional<Speech> speech;
  };

  void request() {
    const Kind& kind = kinds_[static_cast<size_t>(between(random_, 0, static_cast<int>(kKinds) - 1))];
    SpeechRequest request = kind.request;
    request.delivery = between(random_, 0, 2) == 0 ? Delivery::whole : Delivery::streaming;
    const int way = between(random_, 0, 99);
    const bool hurried = way < 10;
    if (hurried) request.timeout = milliseconds(between(random_, 1, 40));
    if (way == 10) request = broken(request);
    try {
      Speech speech = pipeline_.submit(request);
      if (way == 10) return expect_corrupt(speech);
      if (way < 30) return unread_.push_back({std::move(speech), &kind, hurried});
      if (way < 45) return cancel(std::move(speech), kind);
      if (way < 55) return drop(std::move(speech));
      if (way < 70) return push(std::move(speech), kind);
      if (way < 75) return read_when_told(std::move(speech), kind);
      if (way < 80) return read_slowly(std::move(speech), kind);
      unread_.push_back({std::move(speech), &kind});
    } catch (const Error& error) {
      ++(error.code() == ErrorCode::resource_exhausted ? tally_.refused : tally_.thrown);
      EXPECT_TRUE(error.code() == ErrorCode::resource_exhausted || way == 10) << error.message();
      if (!unread_.empty()) read_one();
    }
  }

  SpeechRequest broken(SpeechRequest request) {
    request.encoded_references.clear();
    request.references.clear();
    request.voice.clear();
    if (between(random_, 0, 1) == 0)
      request.voice = "nobody";
    else
      request.references = {{.audio = "RIFFnot really", .text = "words"}};
    return request;
  }
  void expect_corrupt(Speech& speech) {
    try {
      speech.read_all();
      ADD_FAILURE() << "a broken clip was spoken";
    } catch (const Error& error) {
      ++tally_.failed;
      EXPECT_EQ(error.code(), ErrorCode::corrupt_file) << error.message();
    }
  }

  void nap(int most_us) { std::this_thread::sleep_for(microseconds(between(random_, 0, most_us))); }

  void settle(Speech& speech, const Kind& kind, const std::vector<float>& head = {},
              bool may_be_cancelled = false, bool may_be_late = false) {
    try {
      std::vector<float> sound = head;
      const std::vector<float> rest = speech.read_all();
      sound.insert(sound.end(), rest.begin(), rest.end());
      EXPECT_TRUE(sound == kind.alone.sound && speech.codes() == kind.alone.codes) << kind.request.text;
      ++tally_.answered;
    } catch (const Error& error) {
      count_error(error.code(), may_be_cancelled, may_be_late);
    }
  }
  void count_error(ErrorCode code, bool may_be_cancelled, bool may_be_late) {
    switch (code) {
      case ErrorCode::cancelled:
        EXPECT_TRUE(may_be_cancelled);
        ++tally_.cancelled;
        break;
      case ErrorCode::deadline_exceeded:
        EXPECT_TRUE(may_be_late);
        ++tally_.late;
        break;
      default:
        EXPECT_TRUE(code == ErrorCode::internal || code == ErrorCode::resource_exhausted) << name_of(code);
        ++tally_.failed;
    }
  }

  void read_one() {
    const auto i = static_cast<size_t>(between(random_, 0, static_cast<int>(unread_.size()) - 1));
    std::swap(unread_[i], unread_.back());
    settle(unread_.back().speech, *unread_.back().kind, {}, false, unread_.back().may_be_late);
    unread_.pop_back();
  }
  void cancel(Speech speech, const Kind& kind) {
    nap(20'000);
    speech.cancel();
    settle(speech, kind, {}, true);
  }
  void drop(Speech) {
    nap(between(random_, 0, 1) * 10'000);
    ++tally_.dropped;
  }
  void read_slowly(Speech speech, const Kind& kind) {
    std::vector<float> head;
    try {
      for (int i = 0; i < 5; ++i) {
        nap(3000);
        const auto samples = speech.try_next();
        if (samples && samples->empty()) break;
        if (samples) head.insert(head.end(), samples->begin(), samples->end());
      }
    } catch (const Error&) {  // is thrown again
    }
    settle(speech, kind, head);
  }
  void read_when_told(Speech speech, const Kind& kind) {
    std::atomic<int> told{0};
    speech.on_ready([&] { ++told; });
    while (told == 0) std::this_thread::sleep_for(microseconds(50));
    settle(speech, kind);
  }
  void push(Speech speech, const Kind& kind) {
    pushed_.push_back(std::make_unique<Pushed>(kind));
    Pushed& pushed = *pushed_.back();
    SpeechCallbacks callbacks{.on_audio =
                                  [&pushed](std::span<const float> samples) {
                                    pushed.sound.insert(pushed.sound.end(), samples.begin(), samples.end());
                                  },
                              .on_end =
                                  [&pushed](const SpeechSummary&, const Error* error) {
                                    if (error) pushed.error = error->code();
                                    ++pushed.ends;
                                  }};
    pushed.speech = push_to(std::move(speech), std::move(callbacks));
  }
  void settle_pushed() {
    const std::unique_ptr<Pushed> oldest = std::move(pushed_.front());
    pushed_.pop_front();
    Pushed& pushed = *oldest;
    while (pushed.ends == 0) std::this_thread::sleep_for(microseconds(100));
    pushed.speech.reset();
    EXPECT_EQ(pushed.ends, 1);
    if (pushed.error) return count_error(*pushed.error, false, false);
    EXPECT_TRUE(pushed.sound == pushed.kind->alone.sound) << pushed.kind->request.text;
    ++tally_.answered;
  }

  Pipeline& pipeline_;
  const std::vector<Kind>& kinds_;
  Tally& tally_;
  std::mt19937_64 random_;
  std::vector<Unread> unread_;
  std::deque<std::unique_ptr<Pushed>> pushed_;
};

struct Footprint {
  std::vector<MemoryPart> parts;
  int64_t resident = 0;
};

// When all is quiet: every voice spoken once more without failures, so that the caches hold the same.
Footprint footprint(Pipeline& pipeline, Faults& faults, const std::vector<Kind>& kinds) {
  faults.set({});
  for (const Kind& kind : kinds) {
    Speech speech = pipeline.submit(kind.request);
    EXPECT_TRUE(answer_of(speech) == kind.alone);
  }
  pipeline.wait_until_empty(0);
  EXPECT_NO_THROW(pipeline.check_idle());
  malloc_trim(0);
  return {pipeline.memory(), resident_memory()};
}

void expect_all_ended(const Statistics& s, const Tally& tally) {
  EXPECT_EQ(s.submitted, s.completed + s.cancelled + s.expired + s.refused + s.failed);
  EXPECT_EQ(s.preparing + s.waiting, 0);
  EXPECT_EQ(s.refused, tally.refused);
  const uint64_t ended = tally.answered + tally.cancelled + tally.late + tally.failed + tally.thrown;
  EXPECT_EQ(s.submitted, ended + tally.refused + tally.dropped);
}

TEST(Traffic, EveryRequestEndsOnceAndNothingStaysBehind) {
  const auto requests = static_cast<int>(setting("SHOAL_TRAFFIC_REQUESTS", kRequests));
  const uint64_t seed = setting("SHOAL_TRAFFIC_SEED", std::random_device()());
  std::cout << requests << " requests, SHOAL_TRAFFIC_SEED=" << seed << std::endl;
  std::mt19937_64 random(seed);
  const VoicesFolder voices;
  const std::vector<Kind> kinds = make_kinds(random, voices.path());
  Faults faults;
  Pipeline pipeline(tight(voices.path()), testing::faulty(faults));
  Tally tally;
  std::array<Footprint, 2> half;
  for (Footprint& after : half) {
    faults.set(random_faults(random()));
    std::vector<std::thread> threads;
    for (int i = 0; i < kClients; ++i) {
      threads.emplace_back([&, client_seed = random()] {
        Client(pipeline, kinds, tally, client_seed).run(requests / 2 / kClients);
      });
    }
    for (std::thread& thread : threads) thread.join();
    pipeline.wait_until_empty(0);
    expect_all_ended(pipeline.statistics(), tally);
    after = footprint(pipeline, faults, kinds);
    tally.answered += kinds.size();
  }

  const Statistics s = pipeline.statistics();
  std::cout << s.completed << " completed, " << s.cancelled << " cancelled, " << s.expired << " late, "
            << s.refused << " refused, " << s.failed << " failed; " << s.retried_steps << " retries, "
            << s.preemptions << " preemptions, " << s.steps << " steps of " << s.batch_size.mean()
            << " rows, " << s.step_s.sum << " s, codec " << s.codec_pass_s.sum << " s in " << s.codec_passes
            << " passes; resident " << half[0].resident / 1024 << " KiB, then " << half[1].resident / 1024
            << " KiB" << std::endl;
  for (size_t i = 0; i < half[0].parts.size(); ++i)
    EXPECT_EQ(half[0].parts[i].bytes, half[1].parts[i].bytes) << half[0].parts[i].name;
  if (kMemoryTells) {
    EXPECT_LT(half[1].resident, half[0].resident + kMemoryBound);
  }
  if (requests < kRequests) return;
  for (const uint64_t count : {s.completed, s.cancelled, s.refused, s.failed, s.retried_steps, s.preemptions})
    EXPECT_GT(count, 0u);
}

}  // namespace
}  // namespace shoal::runtime
