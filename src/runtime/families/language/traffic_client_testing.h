// For the traffic test: a client that asks for speech in every possible way and checks the answers.
#pragma once

#include <atomic>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/engine/engine_testing.h"
#include "runtime/engine/push_reader.h"
#include "runtime/families/language/pipeline.h"

namespace shoal::runtime::testing {

// A request, and its result when it runs alone.
struct Kind {
  SpeechRequest request;
  Answer alone;
};

// What became of all requests, as their clients saw it.
struct Tally {
  std::atomic<uint64_t> answered{0}, cancelled{0}, late{0}, failed{0}, refused{0}, thrown{0}, dropped{0};
};

// Not thread-safe; several share a pipeline and a tally.
class Client {
 public:
  Client(Pipeline& pipeline, const std::vector<Kind>& kinds, Tally& tally, uint64_t seed)
      : pipeline_(pipeline), kinds_(kinds), tally_(tally), random_(seed) {}

  void run(int requests) {
    for (int i = 0; i < requests; ++i) {
      request();
      while (unread_.size() > kMostUnread) read_one();
      while (pushed_.size() > kMostPushed) settle_pushed();
    }
    while (!unread_.empty()) read_one();
    while (!pushed_.empty()) settle_pushed();
  }

 private:
  static constexpr size_t kMostUnread = 13, kMostPushed = 10;  // speeches left to themselves meanwhile

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
    const Kind& kind = kinds_[static_cast<size_t>(between(random_, 0, static_cast<int>(kinds_.size()) - 1))];
    SpeechRequest request = kind.request;
    request.delivery = between(random_, 0, 2) == 0 ? Delivery::whole : Delivery::streaming;
    const int way = between(random_, 0, 99);
    const bool hurried = way < 10;
    if (hurried) request.timeout = std::chrono::milliseconds(between(random_, 1, 40));
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
      nap(4000);
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

  void nap(int most_us) {
    std::this_thread::sleep_for(std::chrono::microseconds(between(random_, 0, most_us)));
  }

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
  void read_when_told(Speech given, const Kind& kind) {
    std::atomic<int> told{0};
    Speech speech = std::move(given);  // leaves before `told`: the end may be told after it was read
    speech.on_ready([&] { ++told; });
    while (told == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
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
    while (pushed.ends == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
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

}  // namespace shoal::runtime::testing
