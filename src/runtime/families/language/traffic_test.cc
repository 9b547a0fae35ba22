// Thousands of random requests from several threads: short and long, of all kinds of voices, read at once,
// late, slowly, by callbacks, cancelled, dropped, late for their deadline, refused, with calls of the model
// that sometimes fail, and with less KV memory than they need. Every request ends exactly once; an answer
// equals that of the request alone; nothing leaks.
//
// SHOAL_TRAFFIC_REQUESTS and SHOAL_TRAFFIC_SEED change how many requests two parts have and which.
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>
#include <malloc.h>
#include <span>
#include <thread>

#include "base/heap_bytes_testing.h"
#include "base/temporary_folder_testing.h"
#include "runtime/engine/system_memory.h"
#include "runtime/families/language/faulty_calls_testing.h"
#include "runtime/families/language/traffic_client_testing.h"

namespace shoal::runtime {
namespace {

using testing::answer_of;
using testing::between;
using testing::Client;
using testing::Fault;
using testing::Faults;
using testing::Kind;
using testing::OpCall;
using testing::Tally;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRequestsOfTraffic = 500;  // twenty times slower
constexpr bool kSanitized = true;
#else
constexpr int kRequestsOfTraffic = 10'000;
constexpr bool kSanitized = false;
#endif
constexpr int kClients = 4;
constexpr size_t kKindsOfTraffic = 48;  // of requests
// The traffic has two parts, each with half of the requests. More follow until nothing has changed since the
// previous part: fragments of other tests' memory may be taken into use again; and on a GPU a step of new
// sizes is recorded, for which the driver keeps about 0.6 MB of the process's memory. On an H200 the last new
// one came in the ninth part. A leak shows in every part.
constexpr size_t kParts = 2, kMostPartsOfACpu = 5, kMostPartsOfAGpu = 20;
// The most that a part may leave beyond the previous one: allocated, about 100 bytes per request; and
// resident, with fragments, less than 1 KiB per request.
constexpr int64_t kAllocatedBound = int64_t{512} << 10, kResidentBound = int64_t{4} << 20;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

// Two voices, "anna" and "ben".
void write_voices(const TemporaryFolder& folder) {
  for (const std::string voice : {"anna", "ben"}) {
    folder.write(voice + "/clip.wav", testing::noise_wav(0.5, voice[0]));
    folder.write(voice + "/clip.lab", "the words of " + voice);
  }
}

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
  config.max_queue = 12;
  config.prefill_columns = 64;
  config.prefetch_s = 0.1;
  return config;
}

std::vector<Kind> make_kinds(std::mt19937_64& random, const std::string& voices_folder) {
  std::vector<ReferenceCodes> voices;
  for (const int frames : {20, 40, 60}) voices.push_back(testing::random_voice(random, frames));
  Pipeline pipeline(roomy(voices_folder));
  std::vector<Kind> kinds;
  while (kinds.size() < kKindsOfTraffic) {
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
    } catch (const Error&) {  // one that is silent even when alone
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

struct Footprint {
  std::vector<MemoryPart> parts;
  int64_t allocated = 0, resident = 0, recordings = 0;
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
  return {pipeline.memory(), static_cast<int64_t>(heap_bytes()), resident_memory(), pipeline.recordings()};
}

// The differences between the last two parts, memory of the process only if beyond its bounds.
std::vector<std::string> changed(std::span<const Footprint> parts, bool process_counts) {
  const Footprint &before = parts[parts.size() - 2], &after = parts.back();
  std::vector<std::string> names;
  for (size_t i = 0; i < after.parts.size(); ++i)
    if (after.parts[i].bytes != before.parts[i].bytes)
      names.push_back(concat(after.parts[i].name, ": ", before.parts[i].bytes, ", then ",
                             after.parts[i].bytes, " bytes"));
  if (process_counts && after.recordings != before.recordings)
    names.push_back(concat("recordings: ", before.recordings, ", then ", after.recordings));
  const auto grown = [&](const char* name, int64_t from, int64_t to, int64_t bound) {
    if (process_counts && to >= from + bound)
      names.push_back(concat(name, ": ", from / 1024, ", then ", to / 1024, " KiB"));
  };
  grown("allocated", before.allocated, after.allocated, kAllocatedBound);
  const size_t exact = names.size();
  grown("resident", before.resident, after.resident, kResidentBound);
  // A CPU is warm after one part: only fragments may settle later.
  if (ops::testing_on_cpu()) {
    EXPECT_EQ(exact, 0u) << ::testing::PrintToString(names);
  }
  return names;
}

void expect_all_ended(const Statistics& s, const Tally& tally) {
  EXPECT_EQ(s.submitted, s.completed + s.cancelled + s.expired + s.refused + s.failed);
  EXPECT_EQ(s.preparing + s.waiting, 0);
  EXPECT_EQ(s.refused, tally.refused);
  const uint64_t ended = tally.answered + tally.cancelled + tally.late + tally.failed + tally.thrown;
  EXPECT_EQ(s.submitted, ended + tally.refused + tally.dropped);
}

TEST(Traffic, EveryRequestEndsOnceAndNothingLeaks) {
  const auto requests = static_cast<int>(setting("SHOAL_TRAFFIC_REQUESTS", kRequestsOfTraffic));
  const uint64_t seed = setting("SHOAL_TRAFFIC_SEED", std::random_device()());
  std::cout << requests / 2 << " requests a part, SHOAL_TRAFFIC_SEED=" << seed << std::endl;
  std::mt19937_64 random(seed);
  const TemporaryFolder voices;
  write_voices(voices);
  const std::vector<Kind> kinds = make_kinds(random, voices.path());
  Faults faults;
  Pipeline pipeline(tight(voices.path()), testing::faulty(faults));
  Tally tally;
  // Of too few requests, memory is not warm yet; and a sanitizer keeps its own.
  const bool process_counts = !kSanitized && requests >= kRequestsOfTraffic;
  std::vector<Footprint> parts;
  const size_t most_parts = ops::testing_on_cpu() ? kMostPartsOfACpu : kMostPartsOfAGpu;
  while (parts.size() < kParts || (parts.size() < most_parts && !changed(parts, process_counts).empty())) {
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
    parts.push_back(footprint(pipeline, faults, kinds));
    tally.answered += kinds.size();
  }

  const Statistics s = pipeline.statistics();
  std::cout << s.completed << " completed, " << s.cancelled << " cancelled, " << s.expired << " late, "
            << s.refused << " refused, " << s.failed << " failed; " << s.retried_steps << " retries, "
            << s.preemptions << " preemptions, " << s.steps << " steps of " << s.batch_size.mean()
            << " rows, " << s.step_s.sum << " s, codec " << s.codec_pass_s.sum << " s in " << s.codec_passes
            << " passes; allocated / resident after each part, KiB, and recordings:";
  for (const Footprint& part : parts)
    std::cout << ' ' << part.allocated / 1024 << " / " << part.resident / 1024 << ", " << part.recordings
              << ';';
  std::cout << std::endl;
  EXPECT_THAT(changed(parts, process_counts), ::testing::IsEmpty());
  if (!process_counts) return;
  for (const uint64_t count : {s.completed, s.cancelled, s.refused, s.failed, s.retried_steps})
    EXPECT_GT(count, 0u);
}

}  // namespace
}  // namespace shoal::runtime
