// Streams: pieces equal the whole, neighbours do not matter, and decoding allocates nothing.
#include "models/dac/stream.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <optional>
#include <vector>

#include "base/philox.h"
#include "models/dac/codec.h"
#include "models/dac/small_config_testing.h"
#include "ops/device_state.h"
#include "ops/device_testing.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// Not inlined, or GCC takes the pair for a mismatch of new and free.
[[gnu::noinline]] void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace shoal::dac {
namespace {

template <typename Body>
ErrorCode code_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

// Deterministic draws.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  int32_t below(int32_t count) {
    return static_cast<int32_t>(philox4x32(seed_, {next_++, 3, 0, 0})[0] % static_cast<uint32_t>(count));
  }

 private:
  uint64_t seed_;
  uint32_t next_ = 0;
};

class Streams : public testing::TestWithParam<DType> {
 protected:
  static constexpr uint64_t kSeed = 5;
  Streams() { open(small_config()); }
  void open(const Config& config) {
    codec_.emplace(Codec::random(config, ctx_, GetParam(), Parts::both, kSeed));
    books_ = static_cast<size_t>(config.num_codebooks());
    hop_ = static_cast<size_t>(config.samples_per_frame());
  }
  std::vector<int32_t> random_codes(size_t frames, uint64_t seed) const {
    Dice dice(seed);
    std::vector<int32_t> codes(frames * books_);
    for (int32_t& code : codes) code = dice.below(16);
    return codes;
  }
  // Feeds frames [begin, begin + count) of a clip to one stream alone.
  std::vector<float> push(CodecStream& stream, const std::vector<int32_t>& clip, size_t begin, size_t count) {
    CodecStream* const streams[] = {&stream};
    const int32_t offsets[] = {0, static_cast<int32_t>(count)};
    std::vector<float> pcm(count * hop_);
    codec_->decode_streams(ctx_, streams, {offsets}, std::span(clip).subspan(begin * books_, count * books_),
                           pcm);
    return pcm;
  }

  ops::TestMachine machine_{/*threads=*/2, /*record=*/true};
  ops::Context& ctx_ = machine_.context;
  std::optional<Codec> codec_;
  size_t books_ = 0, hop_ = 0;
};

TEST_P(Streams, AnyChunkingGivesTheWholeBitForBit) {
  constexpr size_t kFrames = 300;  // several passes or plans, many times round the ring
  const auto clip = random_codes(kFrames, 1);
  const auto whole = codec_->decode(ctx_, clip);
  CodecStatePool pool(*codec_, ctx_, 1);
  for (const int32_t largest : {1, 3, 20, 150}) {
    CodecStream stream(pool);
    Dice dice(static_cast<uint64_t>(largest));
    std::vector<float> pieces;
    for (size_t frame = 0; frame < kFrames;) {
      const size_t count = std::min(kFrames - frame, static_cast<size_t>(1 + dice.below(largest)));
      const auto pcm = push(stream, clip, frame, count);
      pieces.insert(pieces.end(), pcm.begin(), pcm.end());
      frame += count;
      EXPECT_EQ(stream.frames_done(), static_cast<int64_t>(frame));
    }
    EXPECT_TRUE(pieces == whole) << "chunks of up to " << largest;
  }
}

TEST_P(Streams, AGrowingPageTableChangesNothing) {
  Config config = small_config();
  config.q_block_size = 1;
  config.q_window = 70;
  open(config);
  constexpr size_t kFrames = 1064, kPiece = 8;  // past the first 1024 rotations
  const auto clip = random_codes(kFrames, 3);
  const auto whole = codec_->decode(ctx_, clip);
  CodecStatePool pool(*codec_, ctx_, 1);
  CodecStream stream(pool);
  for (size_t frame = 0; frame < kFrames; frame += kPiece) {
    const auto pcm = push(stream, clip, frame, kPiece);
    ASSERT_TRUE(std::equal(pcm.begin(), pcm.end(), whole.begin() + static_cast<int64_t>(frame * hop_)))
        << "frame " << frame;
  }
}

TEST_P(Streams, StreamsOfUnequalLengthAreTheSameAloneAndInABatch) {
  constexpr size_t kStreams = 5;
  CodecStatePool pool(*codec_, ctx_, kStreams);
  std::vector<std::vector<int32_t>> clips;
  std::vector<std::vector<float>> whole, got(kStreams);
  std::vector<CodecStream> streams;
  for (size_t s = 0; s < kStreams; ++s) {
    clips.push_back(random_codes(40 + 50 * s, 100 + s));
    whole.push_back(codec_->decode(ctx_, clips.back()));
    streams.emplace_back(pool);
  }
  Dice dice(9);
  while (std::any_of(whole.begin(), whole.end(),
                     [&](const auto& w) { return got[&w - whole.data()].size() < w.size(); })) {
    std::vector<CodecStream*> batch;
    std::vector<size_t> who;
    std::vector<int32_t> offsets = {0}, codes;
    for (size_t s = kStreams; s-- > 0;) {
      if (dice.below(4) == 0) continue;  // sits this one out
      const size_t done = static_cast<size_t>(streams[s].frames_done());
      const size_t left = clips[s].size() / books_ - done;
      const size_t count = std::min(left, static_cast<size_t>(dice.below(dice.below(5) == 0 ? 90 : 7)));
      codes.insert(codes.end(), clips[s].begin() + static_cast<int64_t>(done * books_),
                   clips[s].begin() + static_cast<int64_t>((done + count) * books_));
      offsets.push_back(offsets.back() + static_cast<int32_t>(count));
      batch.push_back(&streams[s]);
      who.push_back(s);
    }
    std::vector<float> pcm(static_cast<size_t>(offsets.back()) * hop_);
    codec_->decode_streams(ctx_, batch, {offsets}, codes, pcm);
    for (size_t i = 0; i < who.size(); ++i)
      got[who[i]].insert(got[who[i]].end(), pcm.begin() + offsets[i] * static_cast<int64_t>(hop_),
                         pcm.begin() + offsets[i + 1] * static_cast<int64_t>(hop_));
  }
  for (size_t s = 0; s < kStreams; ++s) EXPECT_TRUE(got[s] == whole[s]) << "stream " << s;
}

TEST_P(Streams, ClipsAreTheSameAloneAndInABatch) {
  const std::vector<size_t> frames = {3, 0, 70, 1, 20, 9, 130};  // several passes or plans
  std::vector<int32_t> offsets = {0}, codes;
  std::vector<float> alone;
  for (const size_t count : frames) {
    const auto clip = random_codes(count, count);
    codes.insert(codes.end(), clip.begin(), clip.end());
    offsets.push_back(offsets.back() + static_cast<int32_t>(count));
    const auto wave = codec_->decode(ctx_, clip);
    alone.insert(alone.end(), wave.begin(), wave.end());
  }
  std::vector<float> pcm(alone.size());
  codec_->decode_batch(ctx_, {offsets}, codes, pcm);
  EXPECT_TRUE(pcm == alone);
}

// With heads that a GPU's tensor cores take, and windows as long as a plan's rows: plans that end within a
// clip, between clips, and before a single row.
TEST_P(Streams, PlansOfAPassGiveTheBitsOfSmallPieces) {
  Config config = small_config();
  config.q_head_dim = 64;
  config.q_window = 128;
  open(config);
  CodecStatePool pool(*codec_, ctx_, 1);
  for (const std::vector<size_t>& frames :
       std::vector<std::vector<size_t>>{{129, 1}, {1, 300, 129}, {128, 128}, {600}}) {
    std::vector<int32_t> offsets = {0}, codes;
    std::vector<float> pieces;
    for (const size_t count : frames) {
      const auto clip = random_codes(count, count);
      codes.insert(codes.end(), clip.begin(), clip.end());
      offsets.push_back(offsets.back() + static_cast<int32_t>(count));
      CodecStream stream(pool);
      for (size_t frame = 0; frame < count; frame += 7) {
        const auto pcm = push(stream, clip, frame, std::min<size_t>(7, count - frame));
        pieces.insert(pieces.end(), pcm.begin(), pcm.end());
      }
    }
    std::vector<float> pcm(pieces.size());
    codec_->decode_batch(ctx_, {offsets}, codes, pcm);
    EXPECT_TRUE(pcm == pieces) << frames.size() << " clips, " << offsets.back() << " frames";
  }
}

TEST_P(Streams, TheNumberOfThreadsDoesNotMatter) {
  const auto clip = random_codes(100, 2);
  ops::TestMachine other(/*threads=*/1);
  EXPECT_TRUE(codec_->decode(ctx_, clip) == codec_->decode(other.context, clip));
}

TEST_P(Streams, ResetRestartsAStreamAndALeasedSlotIsClean) {
  CodecStatePool pool(*codec_, ctx_, 2);
  const auto clip = random_codes(30, 8);
  const auto whole = codec_->decode(ctx_, clip);
  {
    CodecStream stream(pool);
    push(stream, clip, 5, 20);
    stream.reset();
    EXPECT_EQ(stream.frames_done(), 0);
    EXPECT_TRUE(push(stream, clip, 0, 30) == whole);
    EXPECT_EQ(pool.streams_open(), 1);
  }
  EXPECT_EQ(pool.streams_open(), 0);
  CodecStream again(pool);  // of the slot just used
  EXPECT_TRUE(push(again, clip, 0, 30) == whole);
  CodecStream second(pool);
  EXPECT_EQ(code_of([&] { CodecStream third(pool); }), ErrorCode::resource_exhausted);
  second = CodecStream(std::move(again));
  EXPECT_EQ(second.frames_done(), 30);
}

TEST_P(Streams, APoolInReusedMemoryReplaysNoOldGraph) {
  const auto clip = random_codes(12, 8);
  const auto whole = codec_->decode(ctx_, clip);
  for (int time = 0; time < 2; ++time) {
    CodecStatePool pool(*codec_, ctx_, 1);
    for (int again = 0; again < 3; ++again) {  // called, recorded, replayed
      CodecStream stream(pool);
      std::vector<float> pieces = push(stream, clip, 0, 3);
      for (const size_t frame : {3, 6, 9}) {
        const auto pcm = push(stream, clip, frame, 3);
        pieces.insert(pieces.end(), pcm.begin(), pcm.end());
      }
      EXPECT_TRUE(pieces == whole) << "pool " << time << ", clip " << again;
    }
  }
}

TEST_P(Streams, SteadyStateAllocatesNothing) {
  CodecStatePool pool(*codec_, ctx_, 3);
  std::vector<CodecStream> streams;
  for (int s = 0; s < 3; ++s) streams.emplace_back(pool);
  CodecStream* const batch[] = {&streams[0], &streams[1], &streams[2]};
  const int32_t offsets[] = {0, 2, 3, 7};
  const auto codes = random_codes(7, 6);
  std::vector<float> pcm(7 * hop_);
  for (int warm_up = 0; warm_up < 3; ++warm_up) codec_->decode_streams(ctx_, batch, {offsets}, codes, pcm);
  const int64_t before = allocations.load(), growths = machine_.workspace.growths();
  for (int step = 0; step < 20; ++step) codec_->decode_streams(ctx_, batch, {offsets}, codes, pcm);
  EXPECT_EQ(allocations.load(), before);
  EXPECT_EQ(machine_.workspace.growths(), growths);
}

TEST_P(Streams, AnyLengthRunsInABoundedWorkspace) {
  codec_->decode(ctx_, random_codes(600, 1));  // more than a pass
  const int64_t peak = machine_.workspace.peak_bytes(), host_peak = ctx_.host->peak_bytes();
  codec_->decode(ctx_, random_codes(2000, 1));
  EXPECT_EQ(machine_.workspace.peak_bytes(), peak);
  EXPECT_EQ(ctx_.host->peak_bytes(), host_peak);
}

TEST_P(Streams, CodesAboveTheRangeAreClampedAndNegativeOnesRefused) {
  auto codes = random_codes(4, 3);
  codes[0] = 39;
  codes[5] = 15;
  const auto wave = codec_->decode(ctx_, codes);
  codes[0] = INT32_MAX;
  codes[5] = 16;
  EXPECT_TRUE(codec_->decode(ctx_, codes) == wave);
  codes[7] = -1;
  EXPECT_EQ(code_of([&] { codec_->decode(ctx_, codes); }), ErrorCode::invalid_argument);
}

TEST_P(Streams, RefusesBadBatchesBeforeAnythingChanges) {
  CodecStatePool pool(*codec_, ctx_, 2), stranger(*codec_, ctx_, 1);
  CodecStream a(pool), b(pool), c(stranger);
  const auto codes = random_codes(2, 3);
  std::vector<float> pcm(2 * hop_);
  const auto decode = [&](std::vector<CodecStream*> streams, std::vector<int32_t> offsets,
                          std::vector<int32_t> given, size_t samples) {
    return code_of(
        [&] { codec_->decode_streams(ctx_, streams, {offsets}, given, std::span(pcm).first(samples)); });
  };
  EXPECT_EQ(decode({&a, &a}, {0, 1, 2}, codes, 2 * hop_), ErrorCode::invalid_argument);
  EXPECT_EQ(decode({&a, &c}, {0, 1, 2}, codes, 2 * hop_), ErrorCode::invalid_argument);
  EXPECT_EQ(decode({&a}, {0, 1, 2}, codes, 2 * hop_), ErrorCode::invalid_argument);
  EXPECT_EQ(decode({&a, &b}, {0, 3, 2}, codes, 2 * hop_), ErrorCode::invalid_argument);
  EXPECT_EQ(decode({&a, &b}, {}, codes, 2 * hop_), ErrorCode::invalid_argument);
  EXPECT_EQ(decode({&a, &b}, {0, 1, 2}, codes, 2 * hop_ - 1), ErrorCode::invalid_argument);
  EXPECT_EQ(decode({&a, &b}, {0, 1, 2}, {0, 0, 0}, 2 * hop_), ErrorCode::invalid_argument);
  EXPECT_EQ(decode({&a, &b}, {0, 1, 2}, {0, 0, 0, 0, 0, -5}, 2 * hop_), ErrorCode::invalid_argument);
  EXPECT_EQ(a.frames_done() + b.frames_done(), 0);
  EXPECT_EQ(code_of([&] { codec_->decode(ctx_, std::span(codes).first(4)); }), ErrorCode::invalid_argument);
  const std::vector<int32_t> endless(books_ * (kMaxPositions + 1));
  EXPECT_EQ(code_of([&] { codec_->decode(ctx_, endless); }), ErrorCode::too_large);
  EXPECT_EQ(code_of([&] { CodecStatePool none(*codec_, ctx_, 0); }), ErrorCode::invalid_argument);
}

TEST_P(Streams, UsingAPartThatIsNotLoadedIsAnError) {
  const Codec decoder = Codec::random(small_config(), ctx_, GetParam(), Parts::decode, 1);
  const Codec encoder = Codec::random(small_config(), ctx_, GetParam(), Parts::encode, 1);
  EXPECT_EQ(code_of([&] { decoder.encode(ctx_, std::vector<float>(5)); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { encoder.decode(ctx_, random_codes(1, 1)); }), ErrorCode::invalid_argument);
  EXPECT_EQ(decoder.memory().encoder, 0);
  EXPECT_EQ(encoder.memory().decoder, 0);
  EXPECT_EQ(codec_->memory().total(), decoder.memory().total() + encoder.memory().total());
}

TEST(StreamsOfOtherDtypes, AreRefused) {
  ops::TestMachine machine;
  const auto load = [&](DType dtype) {
    return code_of([&] { Codec::random(small_config(), machine.context, dtype, Parts::decode, 1); });
  };
  EXPECT_EQ(load(DType::f64), ErrorCode::unsupported);
  if (ops::multiplies(machine.device, DType::f16)) return;
  EXPECT_EQ(load(DType::f16), ErrorCode::unsupported);
}

TEST_P(Streams, EmptyInputsGiveEmptyOutputs) {
  EXPECT_TRUE(codec_->decode(ctx_, {}).empty());
  EXPECT_TRUE(codec_->encode(ctx_, {}).empty());
  const int32_t none[] = {0};
  codec_->decode_streams(ctx_, {}, {none}, {}, {});
  codec_->decode_batch(ctx_, {none}, {}, {});
  codec_->encode_batch(ctx_, {none}, {}, {});
}

INSTANTIATE_TEST_SUITE_P(Matrices, Streams, testing::Values(DType::f32, DType::bf16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::dac
