#include "runtime/families/language/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "models/dac/small_config_testing.h"
#include "ops/device_testing.h"
#include "ops/execution.h"
#include "ops/residual.h"
#include "runtime/engine/engine_testing.h"
#include "runtime/families/language/pipeline.h"
#include "shoal/model.h"

namespace shoal::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kPageSize = 16;
constexpr int kThreads = 2;
constexpr ThreadSplit kSplit{.decode = kThreads};

ModelSizes even_sizes(DType dtype) {
  ModelSizes sizes{.formats = dtype == DType::i8 ? Formats(dtype, DType::bf16, DType::bf16) : dtype};
  dual_ar::Config& c = sizes.language_model;
  c.vocab_size = 2048;
  c.num_codebooks = 4;
  c.codebook_size = 64;
  c.max_positions = 512;
  c.slow = {.dim = 128, .heads = 4, .kv_heads = 2, .head_dim = 64, .hidden = 384, .qk_norm = true};
  c.fast = {.dim = 96,
            .heads = 2,
            .kv_heads = 1,
            .head_dim = 32,
            .hidden = 192,
            .qkv_bias = true,
            .out_bias = true};
  c.slow_layers = 3;
  c.fast_layers = 2;
  c.semantic_begin = 1900;
  c.semantic_end = 1900 + 63;
  c.im_end = 7;
  dac::Config& codec = sizes.codec;
  codec = dac::small_config();
  codec.encoder_dim = 64;
  codec.encoder_rates = {2, 4};
  codec.encoder_transformer_layers = {0, 1};
  codec.decoder_dim = 256;
  codec.decoder_rates = {4, 2};
  codec.latent_dim = codec.q_dim = 256;
  codec.downsample_factor = {2, 2};
  codec.codebook_size = 64;
  codec.codebook_dim = 16;
  codec.q_heads = 4;
  codec.q_head_dim = 32;
  codec.q_inter = 384;
  codec.q_window = 20;
  return sizes;
}

// The same with the quantiser's transformers narrower than its latents.
ModelSizes narrow_sizes(DType dtype) {
  ModelSizes sizes = even_sizes(dtype);
  sizes.codec.q_dim = 192;
  return sizes;
}

class Machine {
 public:
  explicit Machine(int threads = kThreads) : team_(threads) {}
  ops::Context& ctx() { return execution_.context(); }
  int64_t peak() { return ctx().workspace->peak_bytes(); }

 private:
  ThreadTeam team_;
  ops::Execution execution_{Device(), team_};
};

class PerDType : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(ModelSizes, PerDType, ::testing::Values(DType::f32, DType::bf16));
class PerWeights : public PerDType {};
INSTANTIATE_TEST_SUITE_P(ModelSizes, PerWeights, ::testing::Values(DType::f32, DType::bf16, DType::i8));

TEST_P(PerWeights, OfTheLanguageModelAreThoseThatAreLoaded) {
  for (const bool semantic : {false, true}) {
    Machine machine;
    ModelSizes sizes = even_sizes(GetParam());
    sizes.semantic_head = semantic;
    if (semantic) sizes.language_model.semantic_end -= 1;  // 64 rows with <|im_end|>
    const dual_ar::LoadOptions options{
        .formats = sizes.formats,
        .head_rows = semantic ? dual_ar::HeadRows::semantic : dual_ar::HeadRows::all};
    const auto loaded = dual_ar::DualAr::random(sizes.language_model, machine.ctx(), options, 1).memory();
    const auto planned = sizes.sized_language_model().memory();
    EXPECT_EQ(planned.embeddings, loaded.embeddings);
    EXPECT_EQ(planned.slow_layers, loaded.slow_layers);
    EXPECT_EQ(planned.head, loaded.head);
    EXPECT_EQ(planned.fast_layers, loaded.fast_layers);
    EXPECT_EQ(planned.fast_head, loaded.fast_head);
    EXPECT_EQ(planned.rope, loaded.rope);
  }
}

TEST_P(PerDType, WeightsOfTheCodecAreThoseThatAreLoaded) {
  Machine machine;
  ModelSizes sizes = even_sizes(GetParam());
  const auto loaded =
      dac::Codec::random(sizes.codec, machine.ctx(), sizes.formats.operands, dac::Parts::both, 1).memory();
  const auto planned = sizes.sized_codec().memory();
  EXPECT_EQ(planned.quantiser, loaded.quantiser);
  EXPECT_EQ(planned.decoder, loaded.decoder);
  EXPECT_EQ(planned.encoder, loaded.encoder);
  sizes.with_encoder = false;
  EXPECT_EQ(sizes.sized_codec().memory().encoder, 0);
  EXPECT_LT(sizes.sized_codec().memory().quantiser, loaded.quantiser);

  const ModelSizes narrow = narrow_sizes(GetParam());
  EXPECT_EQ(narrow.sized_codec().memory().quantiser,
            dac::Codec::random(narrow.codec, machine.ctx(), narrow.formats.operands, dac::Parts::both, 1)
                .memory()
                .quantiser);
}

TEST_P(PerDType, StreamsOfTheCodecTakeWhatIsPlanned) {
  ModelSizes small = even_sizes(GetParam());
  small.codec = dac::small_config();
  for (const ModelSizes& sizes : {even_sizes(GetParam()), small}) {
    Machine machine;
    const auto codec =
        dac::Codec::random(sizes.codec, machine.ctx(), sizes.formats.operands, dac::Parts::decode, 1);
    for (const int streams : {1, 3, 100}) {
      const dac::CodecStatePool pool(codec, machine.ctx(), streams);
      EXPECT_EQ(pool.bytes_per_stream(), sizes.sized_codec().stream_bytes());
      const int64_t passes = pool.bytes() - streams * pool.bytes_per_stream();
      EXPECT_EQ(sizes.sized_codec().pass_bytes(streams), passes);
    }
  }
}

TEST_P(PerDType, StepsTakeWhatIsPlanned) {
  Machine machine;
  const ModelSizes sizes = even_sizes(GetParam());
  for (const int64_t rows : {1, 5, 64}) {
    const dual_ar::StepMemory memory(machine.ctx(), sizes.language_model, rows, 33);
    EXPECT_EQ(dual_ar::StepMemory::bytes_of(sizes.language_model, rows, 33), memory.bytes());
  }
}

// Steps of a language model, in a workspace that is one block, so that its peak is exact.
class Steps {
 public:
  Steps(const ModelSizes& sizes, int threads)
      : config_(sizes.language_model),
        machine_(threads),
        model_(dual_ar::DualAr::random(config_, machine_.ctx(), {.formats = sizes.formats}, 1)),
        cache_(config_, kPages, kPageSize, sizes.formats.kv) {
    machine_.ctx().workspace->reserve(1 << 25);
  }

  // Of one sequence.
  int64_t peak_of_prompts(int64_t most) {
    const Tensor hidden(DType::f32, {1, config_.slow.dim});
    for (int64_t columns = most; columns > 0; columns /= 2) {
      const std::vector<int32_t> offsets = {0, static_cast<int32_t>(columns)}, positions = counting(columns),
                                 table = counting(kPages);
      const std::vector<int32_t> ids(static_cast<size_t>(columns * config_.columns()), 1);
      model_.forward_slow(machine_.ctx(), plan(offsets, positions, table, kPages), ids, cache_, hidden);
    }
    return machine_.peak();
  }

  // Every sequence at its start, on a page of its own.
  int64_t peak_of_frames(int64_t rows) {
    const dual_ar::StepMemory memory(machine_.ctx(), config_, rows, 1);
    for (int64_t count = rows; count > 0; count /= 2) {
      const std::vector<int32_t> offsets = counting(count + 1), own = counting(count);
      const std::vector<int32_t> starts(own.size(), 0);
      std::vector<int32_t> ids(static_cast<size_t>(count * config_.columns()), 1), frames = ids;
      const std::vector<dual_ar::FrameRequest> requests(own.size());
      model_.decode_frames(machine_.ctx(), memory, plan(offsets, starts, own, 1), ids, requests, cache_,
                           frames);
    }
    return machine_.peak();
  }

 private:
  static constexpr int64_t kPages = 64;
  static std::vector<int32_t> counting(int64_t count) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    return values;
  }
  static ops::BatchPlan plan(std::span<const int32_t> offsets, std::span<const int32_t> positions,
                             std::span<const int32_t> table, int64_t pages) {
    return {.rows = {offsets},
            .positions = positions,
            .page_table = table,
            .pages_per_sequence = pages,
            .page_size = kPageSize};
  }

  const dual_ar::Config& config_;
  Machine machine_;
  dual_ar::DualAr model_;
  dual_ar::KvCache cache_;
};

// To the byte, with the ops' scratch. (On a CPU.)
TEST_P(PerWeights, WorkspacesOfStepsAreWhatIsPlanned) {
  const ModelSizes sizes = even_sizes(GetParam());
  const dual_ar::DualAr model = sizes.sized_language_model();
  for (const int threads : {1, 5})
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>(64, 16), {3, 480}, {32, 256}}) {
      const dual_ar::DualAr::PlannedStep step{.threads = threads, .sequences = rows, .pages = 1};
      EXPECT_EQ(Steps(sizes, threads).peak_of_frames(rows), model.decode_workspace_bytes(step)) << rows;
      EXPECT_EQ(Steps(sizes, threads).peak_of_prompts(columns),
                model.prefill_workspace_bytes({.threads = threads, .columns = columns}))
          << columns;
    }
}

EngineConfig small_engine() {
  EngineConfig config;
  config.max_batch_size = 8;
  config.kv_page_size = kPageSize;
  return config;
}

TEST(MemoryPlan, KvPagesTakeTheirShareOfWhatTheRestLeaves) {
  const ModelSizes sizes = even_sizes(DType::bf16);
  EngineConfig config = small_engine();
  const int64_t rest = [&] {
    const MemoryPlan plan = plan_memory(config, sizes, kSplit, int64_t{1} << 40);
    return plan.total() - plan.kv_pages * plan.kv_page_bytes;
  }();
  const int64_t left = 64 * 24576;
  config.kv_memory_fraction = 0.5;
  const MemoryPlan plan = plan_memory(config, sizes, kSplit, rest + left);
  EXPECT_EQ(plan.kv_page_bytes, 3 * 2 * 2 * 64 * 2 * kPageSize);
  EXPECT_EQ(plan.kv_pages, plan_kv_pages(config, sizes.language_model, sizes.formats.kv, left));
  EXPECT_EQ(plan.kv_pages, 32);
  EXPECT_LE(plan.total(), plan.available);
  EXPECT_NO_THROW(plan.check());
}

TEST(MemoryPlan, NeverTakesMoreKvPagesThanSequencesCanUse) {
  const ModelSizes sizes = even_sizes(DType::bf16);
  const MemoryPlan plan = plan_memory(small_engine(), sizes, kSplit, int64_t{1} << 40);
  EXPECT_EQ(plan.kv_pages, 8 * 512 / kPageSize);
}

TEST(MemoryPlan, WhatDoesNotFitIsSaidWithFigures) {
  const ModelSizes sizes = even_sizes(DType::f32);
  const MemoryPlan plan = plan_memory(small_engine(), sizes, kSplit, 1 << 20);
  EXPECT_EQ(plan.kv_pages, 1);
  try {
    plan.check();
    FAIL() << "a plan of " << plan.total() << " bytes fitted into a mebibyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("1.0 MB are free"), HasSubstr("codec, decoder"), HasSubstr("KV pages")));
  }
  EngineConfig config = small_engine();
  config.kv_memory_mb = 1000;
  EXPECT_THROW(plan_memory(config, sizes, kSplit, 1 << 20), Error);
}

TEST(MemoryPlan, PartsAddUpToTheTotal) {
  ModelSizes sizes = even_sizes(DType::bf16);
  std::vector<int64_t> of_clips;
  for (const bool with_encoder : {true, false}) {
    sizes.with_encoder = with_encoder;
    const MemoryPlan plan = plan_memory(small_engine(), sizes, kSplit, int64_t{1} << 32);
    int64_t sum = 0;
    for (const MemoryPart& part : plan.parts()) {
      EXPECT_GT(part.bytes, 0) << part.name;
      sum += part.bytes;
    }
    EXPECT_EQ(sum, plan.total());
    of_clips.push_back(plan.clip_states + plan.clip_workspace);
    EXPECT_EQ(plan.recordings, 0);  // a CPU records nothing
  }
  EXPECT_GT(of_clips[0], of_clips[1]);
  EXPECT_GT(of_clips[1], 0);  // a caller's codes may be decoded all the same
}

int64_t sum_of(std::span<const MemoryPart> parts, std::string_view beginning) {
  int64_t sum = 0;
  for (const MemoryPart& part : parts)
    if (part.name.starts_with(beginning)) sum += part.bytes;
  return sum;
}

// Planned from the headers of the files. A GPU pads its weights, which the plan leaves out.
TEST(MemoryPlan, APipelineTakesThePlannedWeightsStreamsAndPages) {
  for (const bool built_in_voice : {false, true}) {
    EngineConfig config = testing::tiny_config();
    if (built_in_voice) config.model.clear();
    config.kv_memory_mb = 1;
    const std::vector<MemoryPart> planned = estimate_memory(config).parts;
    const Pipeline pipeline(config);
    const std::vector<MemoryPart> taken = pipeline.memory();
    if (ops::testing_on_cpu()) {
      EXPECT_EQ(sum_of(planned, "language model,"), sum_of(taken, "language model"));
      EXPECT_EQ(sum_of(planned, "codec, "), taken.at(1).bytes);
    } else {
      EXPECT_LE(sum_of(planned, "language model,"), sum_of(taken, "language model"));
      EXPECT_LE(sum_of(planned, "codec, "), taken.at(1).bytes);
    }
    EXPECT_EQ(sum_of(planned, "codec streams"), sum_of(taken, "codec streams"));
    EXPECT_EQ(sum_of(planned, "KV pages"), sum_of(taken, "KV pages"));
  }
}

// What the published sizes come to on a GPU of 80 GB.
TEST(MemoryPlan, TwoHundredAndFiftySixStreamsOfS1MiniFitAGpu) {
  SKIP_WITHOUT_CUDA();
  EngineConfig config;
  config.max_batch_size = config.max_streams = 256;
  config.kv_memory_fraction = 0.9;
  const ModelSizes sizes{.language_model = dual_ar::Config::s1_mini(),
                         .codec = dac::Config::published(),
                         .formats = DType::bf16,
                         .device = {DeviceKind::cuda, 0}};
  const MemoryPlan plan = plan_memory(config, sizes, kSplit, int64_t{78} << 30);
  EXPECT_NO_THROW(plan.check());
  EXPECT_NEAR(static_cast<double>(plan.language_model.total()), 1.72e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(plan.codec.total()), 0.81e9, 0.01e9);
  EXPECT_GT(plan.recordings, 0);
  EXPECT_LT(plan.recordings, int64_t{1} << 28);
  EXPECT_GE(plan.kv_pages * config.kv_page_size, 256 * 900);  // columns of a typical request
  config.cuda_graphs = false;
  EXPECT_EQ(plan_memory(config, sizes, kSplit, int64_t{78} << 30).recordings, 0);
}

// The chunks of a row's keys, shared by blocks; some stay in their shared memory.
TEST(MemoryPlan, CountsWhatAttentionParksOfLongSequencesOnAGpu) {
  SKIP_WITHOUT_CUDA();
  EngineConfig config;
  config.max_batch_size = 16;
  ModelSizes sizes = even_sizes(DType::bf16);
  sizes.language_model = dual_ar::Config::s1_mini();
  sizes.device = {DeviceKind::cuda, 0};
  const auto workspace = [&](int64_t positions) {
    sizes.language_model.max_positions = positions;
    return plan_memory(config, sizes, kSplit, int64_t{1} << 40).decode_workspace;
  };
  constexpr int64_t kOfChunk = 130 * 4, kChunks = 32768 / 64;
  EXPECT_GE(workspace(65536) - workspace(32768), 16 * 16 * kChunks * kOfChunk * 9 / 10);
}

TEST(MemoryPlan, CountsTheSumsThatWaitOnAGpu) {
  SKIP_WITHOUT_CUDA();
  constexpr int64_t kRows = 256;
  ModelSizes sizes = even_sizes(DType::bf16);
  sizes.language_model = dual_ar::Config::s1_mini();
  sizes.device = {DeviceKind::cuda, 0};
  const dual_ar::BlockConfig& slow = sizes.language_model.slow;
  // Beside the rows, and the projection of a block.
  const int64_t others = kRows * (slow.dim + slow.qkv_width()) * 4;
  EXPECT_GE(sizes.sized_language_model().prefill_workspace_bytes({.device = sizes.device, .columns = kRows}),
            others + 8 * kRows * slow.dim * 4);
  sizes.formats = DType::f32;  // waits for nothing
  EXPECT_EQ(ops::pending_bytes(kRows, slow.dim, sizes.formats.operands), 0);
}

// Those of the last layer are as many as sequences, and beyond a number of these none wait.
TEST(MemoryPlan, ManySequencesNeedAtLeastTheMemoryOfThoseWhoseSumsWait) {
  SKIP_WITHOUT_CUDA();
  ModelSizes sizes = even_sizes(DType::bf16);
  sizes.language_model = dual_ar::Config::s1_mini();
  sizes.device = {DeviceKind::cuda, 0};
  const auto workspace = [&](int64_t sequences) {
    return sizes.sized_language_model().prefill_workspace_bytes(
        {.device = sizes.device, .sequences = sequences, .columns = 2048});
  };
  EXPECT_GE(workspace(1024), workspace(ops::kMostPendingRows));
}

TEST(MemoryPlan, GrowsWithWhatIsServed) {
  const ModelSizes sizes = even_sizes(DType::bf16);
  EngineConfig config = small_engine();
  const MemoryPlan small = plan_memory(config, sizes, kSplit, int64_t{1} << 32);
  config.max_batch_size = 64;
  const MemoryPlan large = plan_memory(config, sizes, kSplit, int64_t{1} << 32);
  EXPECT_GT(large.codec_streams, 4 * small.codec_streams);
  EXPECT_GT(large.decode_workspace, small.decode_workspace);
  EXPECT_EQ(large.language_model.total(), small.language_model.total());
}

}  // namespace
}  // namespace shoal::runtime
