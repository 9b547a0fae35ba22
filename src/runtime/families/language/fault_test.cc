// Calls of the model that throw, after writing any part of their outputs. Once: no request is affected.
// Always for one request: only that one ends with an error. And requests that are cancelled in the middle of
// any call.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <latch>
#include <new>
#include <stdexcept>
#include <thread>

#include "runtime/engine/engine_testing.h"
#include "runtime/families/language/faulty_calls_testing.h"

namespace shoal::runtime {
namespace {

using testing::Answer;
using testing::answer_of;
using testing::Fault;
using testing::Faults;
using testing::kOps;
using testing::Op;
using testing::OpCall;

constexpr size_t kRequestsOfAFault = 6;
constexpr int32_t kMark = 31;  // a code that only the victim's voice has

EngineConfig small_batches(int codec_threads) {
  EngineConfig config = testing::tiny_config();
  config.codec_threads = codec_threads;
  config.threads = 1 + codec_threads;
  config.max_batch_size = 4;
  config.max_streams = 5;
  config.kv_page_size = 8;
  config.prefill_columns = 40;
  return config;
}

std::vector<Answer> answers_of(std::vector<Speech>& speeches) {
  std::vector<Answer> answers;
  for (Speech& speech : speeches) answers.push_back(answer_of(speech));
  return answers;
}

std::vector<Speech> submit_all(Pipeline& pipeline, const std::vector<SpeechRequest>& requests) {
  std::vector<Speech> speeches;
  for (const SpeechRequest& request : requests) speeches.push_back(pipeline.submit(request));
  return speeches;
}

// Requests that share voices, so that prefixes are found and pages copied; number 0 is the victim of tests.
struct Company {
  std::vector<SpeechRequest> requests;
  std::vector<Answer> alone;
};

const Company& company() {
  static const Company made = [] {
    Company c;
    std::mt19937_64 random(21);
    ReferenceCodes marked = testing::random_voice(random, 5);
    std::fill(marked.codes.begin(), marked.codes.end(), kMark);
    const ReferenceCodes shared = testing::random_voice(random, 9);
    for (size_t i = 0; i < kRequestsOfAFault; ++i) {
      c.requests.push_back(testing::random_request(random, {i == 0 ? marked : shared}, 9));
      if (i < 3) c.requests[i].encoded_references = {i == 0 ? marked : shared};
    }
    Pipeline pipeline(small_batches(0));
    for (const SpeechRequest& request : c.requests) {
      Speech speech = pipeline.submit(request);
      c.alone.push_back(answer_of(speech));
    }
    return c;
  }();
  return made;
}

std::exception_ptr error_number(size_t i) {
  switch (i % 4) {
    case 0:
      return std::make_exception_ptr(Error(ErrorCode::internal, "an op failed"));
    case 1:
      return std::make_exception_ptr(std::bad_alloc());
    case 2:
      return std::make_exception_ptr(Error(ErrorCode::resource_exhausted, "no memory for an op"));
    default:
      return std::make_exception_ptr(std::runtime_error("something else"));
  }
}

ErrorCode code_of_number(size_t i) {
  return i % 4 == 1 || i % 4 == 2 ? ErrorCode::resource_exhausted : ErrorCode::internal;
}

// Each loop on a thread of its own, or both on one.
class FailingCalls : public ::testing::TestWithParam<int> {
 protected:
  FailingCalls() : pipeline_(small_batches(GetParam()), testing::faulty(faults_)) {}

  void expect_all_as_alone() {
    faults_.set({});
    std::vector<Speech> speeches = submit_all(pipeline_, company().requests);
    EXPECT_EQ(answers_of(speeches), company().alone);
    expect_nothing_left();
  }
  void expect_nothing_left() {
    pipeline_.wait_until_empty(0);
    EXPECT_NO_THROW(pipeline_.check_idle());
  }
  // All but the victim get the same answer as alone; the victim ends with this error.
  void expect_only_the_victim_ends_with(ErrorCode code) {
    std::vector<Speech> speeches = submit_all(pipeline_, company().requests);
    for (size_t i = 1; i < speeches.size(); ++i)
      EXPECT_EQ(answer_of(speeches[i]), company().alone[i]) << "request " << i;
    try {
      speeches[0].read_all();
      ADD_FAILURE() << "the victim succeeded";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
    }
    expect_nothing_left();
  }

  Faults faults_;
  Pipeline pipeline_;
};

INSTANTIATE_TEST_SUITE_P(CodecThreads, FailingCalls, ::testing::Values(0, 1));

TEST_P(FailingCalls, ASingleFailureIsRetriedUnnoticed) {
  for (const Op op : kOps) {
    int64_t failed = 0;
    for (const size_t number : {1, 2, 6}) {
      for (const bool half_way : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "op " << static_cast<int>(op) << ", call " << number);
        const uint64_t retried = pipeline_.statistics().retried_steps;
        faults_.set([&, calls = size_t{0}](const OpCall& call) mutable {
          const bool fails = call.op == op && ++calls == number;
          return fails ? Fault{error_number(number), half_way} : Fault{};
        });
        std::vector<Speech> speeches = submit_all(pipeline_, company().requests);
        EXPECT_EQ(answers_of(speeches), company().alone);
        EXPECT_EQ(pipeline_.statistics().retried_steps - retried, static_cast<uint64_t>(faults_.failed()));
        failed += faults_.failed();
      }
    }
    EXPECT_GE(failed, op == Op::copy_page ? 1 : 2) << "op " << static_cast<int>(op);
  }
  expect_nothing_left();
}

TEST_P(FailingCalls, ASequenceWhosePromptAlwaysFailsEndsAlone) {
  for (size_t i = 0; i < 4; ++i) {
    faults_.set([&](const OpCall& call) {
      const std::vector<int32_t> mark(10, kMark);
      const bool marked = call.op == Op::forward && std::search(call.ids.begin(), call.ids.end(),
                                                                mark.begin(), mark.end()) != call.ids.end();
      return marked ? Fault{error_number(i), i % 2 == 0} : Fault{};
    });
    expect_only_the_victim_ends_with(code_of_number(i));
    EXPECT_GT(faults_.failed(), 1);
  }
  expect_all_as_alone();
}

TEST_P(FailingCalls, ASequenceWhoseFramesAlwaysFailEndsAlone) {
  for (size_t i = 0; i < 4; ++i) {
    const uint32_t first_frame = i < 2 ? 0 : 1;
    faults_.set([&](const OpCall& call) {
      const bool fails = std::any_of(call.requests.begin(), call.requests.end(), [&](const auto& request) {
        return request.seed == company().requests[0].seed && request.frame >= first_frame;
      });
      return fails ? Fault{error_number(i), i % 2 == 0} : Fault{};
    });
    expect_only_the_victim_ends_with(code_of_number(i));
    EXPECT_GT(faults_.failed(), 1);
  }
  expect_all_as_alone();
}

TEST_P(FailingCalls, ASequenceWhoseSoundAlwaysFailsEndsAlone) {
  const std::vector<int32_t>& codes = company().alone[0].codes;
  ASSERT_GE(codes.size(), 20u);
  for (size_t i = 0; i < 4; ++i) {
    const auto frame = codes.begin() + (i < 2 ? 0 : 10);
    faults_.set([&](const OpCall& call) {
      const bool fails = call.op == Op::decode_streams &&
                         std::search(call.ids.begin(), call.ids.end(), frame, frame + 10) != call.ids.end();
      return fails ? Fault{error_number(i), i % 2 == 0} : Fault{};
    });
    expect_only_the_victim_ends_with(code_of_number(i));
    EXPECT_GT(faults_.failed(), 1);
  }
  expect_all_as_alone();
}

// The codec fails long before the text has been spoken: the language model stops too.
TEST_P(FailingCalls, GenerationEndsWhenItsSoundCannotBeDecoded) {
  SpeechRequest request = company().requests[0];
  request.max_new_tokens = 4000;
  request.text = "A long one.";
  faults_.set([](const OpCall& call) {
    return call.op == Op::decode_streams ? Fault{error_number(0), false} : Fault{};
  });
  Speech speech = pipeline_.submit(request);
  EXPECT_THROW(speech.read_all(), Error);
  EXPECT_LT(speech.progress().frames, 4000);
  expect_nothing_left();
  expect_all_as_alone();
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Nobody reads, so the language model waits when the codec fails.
TEST(FailingCodec, EndsAPausedRequest) {
  EngineConfig config = small_batches(1);
  config.prefetch_s = 0;
  Faults faults;
  std::atomic<int> frames = 0;
  Pipeline pipeline(config, testing::faulty(faults));
  faults.set([&, calls = 0](const OpCall& call) mutable {
    if (call.op == Op::generate_frames) ++frames;
    if (call.op != Op::decode_streams) return Fault{};
    if (++calls > 1) return Fault{.error = error_number(0), .before = [] { sleep_ms(200); }};
    // Until there are frames that the second call is for.
    return Fault{.before = [&, enough = frames + 3] {
      for (int ms = 0; frames < enough && ms < 20'000; ++ms) sleep_ms(1);
    }};
  });
  SpeechRequest request = company().requests[0];
  request.text = "A long one.";
  for (int i = 0; i < 200; ++i) request.text += " And another one of them.";
  request.max_new_tokens = 0;
  request.delivery = Delivery::streaming;
  const Speech speech = pipeline.submit(request);
  EXPECT_TRUE(pipeline.wait_until_empty(now_us() + 30'000'000));
  EXPECT_TRUE(speech.error().has_value());
  EXPECT_GT(faults.failed(), 0);
}

TEST_P(FailingCalls, WhenEverythingFailsEveryRequestGetsAnError) {
  for (const Op op : {Op::forward, Op::generate_frames, Op::decode_streams}) {
    faults_.set([&](const OpCall& call) { return call.op == op ? Fault{error_number(1), true} : Fault{}; });
    std::vector<Speech> speeches = submit_all(pipeline_, company().requests);
    for (Speech& speech : speeches) EXPECT_THROW(speech.read_all(), Error);
    expect_nothing_left();
  }
  expect_all_as_alone();
}

// The victim is cancelled, or its handle dropped, from within each of the calls of a run.
TEST_P(FailingCalls, AClientThatLeavesAtAnyMomentDisturbsNobody) {
  for (const bool drop : {false, true}) {
    for (size_t moment = 1; moment < 40; moment += 6) {
      SCOPED_TRACE(moment);
      std::vector<Speech> speeches;
      std::latch submitted(1);
      faults_.set([&, calls = size_t{0}](const OpCall&) mutable {
        if (++calls == 1) submitted.wait();
        if (calls != moment) return Fault{};
        speeches[0].cancel();
        if (drop) Speech dropped(std::move(speeches[0]));
        return Fault{};
      });
      speeches.reserve(kRequestsOfAFault);
      for (const SpeechRequest& request : company().requests) speeches.push_back(pipeline_.submit(request));
      submitted.count_down();
      for (size_t i = 1; i < speeches.size(); ++i)
        EXPECT_EQ(answer_of(speeches[i]), company().alone[i]) << "request " << i;
      expect_nothing_left();
      faults_.set({});
      if (drop) continue;
      EXPECT_TRUE(speeches[0].ended());
      if (const auto error = speeches[0].error()) {
        EXPECT_EQ(error->code(), ErrorCode::cancelled);
      } else {
        EXPECT_EQ(answer_of(speeches[0]), company().alone[0]);
      }
    }
  }
  expect_all_as_alone();
}

}  // namespace
}  // namespace shoal::runtime
