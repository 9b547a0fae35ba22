// What the codec's passes take of their workspace is what is planned, to the byte.
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "models/dac/codec.h"
#include "models/dac/decoder.h"
#include "models/dac/encoder.h"
#include "models/dac/small_config_testing.h"
#include "ops/device_state.h"
#include "ops/device_testing.h"
#include "ops/planning_context.h"

namespace shoal::dac {
namespace {

// Wide enough that the matrices of its stages are not all folded; transformers on both sides.
Config wide_config() {
  Config config = small_config();
  config.encoder_dim = 32;
  config.encoder_rates = {2, 4};
  config.encoder_transformer_layers = {0, 1};
  config.decoder_dim = 64;
  config.decoder_rates = {4, 2};
  config.latent_dim = 64;
  config.q_dim = 48;
  config.downsample_factor = {2, 2};
  config.q_heads = 2;
  config.q_head_dim = 32;
  config.q_inter = 96;
  config.q_window = config.enc_window = 20;
  return config;
}

struct Planned {
  const char* name;
  Config config;
  MatrixFormat format;
  int threads;
};

void PrintTo(const Planned& planned, std::ostream* out) { *out << planned.name; }

class CodecPlan : public testing::TestWithParam<Planned> {
 protected:
  void SetUp() override {
    if (!ops::multiplies(loading_.device, GetParam().format)) GTEST_SKIP() << "needs a GPU";
  }

  // Its workspace has what is planned, in one block, so that its peak is exact.
  struct Reserved : ops::TestMachine {
    Reserved(int of_threads, int64_t bytes) : TestMachine(of_threads) { workspace.reserve(bytes); }
  };

  // New frames of each of the streams.
  void decode(ops::TestMachine& machine, const Codec& codec, std::vector<CodecStream>& streams,
              std::vector<int32_t> counts) {
    std::vector<CodecStream*> together;
    for (CodecStream& stream : streams) together.push_back(&stream);
    std::vector<int32_t> offsets(counts.size() + 1);
    std::inclusive_scan(counts.begin(), counts.end(), offsets.begin() + 1);
    const auto frames = static_cast<size_t>(offsets.back());
    const std::vector<int32_t> codes(frames * static_cast<size_t>(config_.num_codebooks()), 3);
    std::vector<float> pcm(frames * static_cast<size_t>(config_.samples_per_frame()));
    codec.decode_streams(machine.context, together, {offsets}, codes, pcm);
  }

  // Clips of so many frames.
  void encode(ops::TestMachine& machine, const Codec& codec, const std::vector<int32_t>& counts) {
    std::vector<int32_t> offsets(counts.size() + 1);
    for (size_t i = 0; i < counts.size(); ++i)
      offsets[i + 1] = offsets[i] + counts[i] * static_cast<int32_t>(config_.samples_per_frame());
    const std::vector<float> samples(static_cast<size_t>(offsets.back()), 0.25f);
    std::vector<int32_t> codes(samples.size() / static_cast<size_t>(config_.samples_per_frame()) *
                               static_cast<size_t>(config_.num_codebooks()));
    codec.encode_batch(machine.context, {offsets}, samples, codes);
  }

  const Config& config_ = GetParam().config;
  ops::TestMachine loading_;
};

TEST_P(CodecPlan, IsWhatDecodingTakes) {
  const int threads = GetParam().threads;
  const Codec codec = Codec::random(config_, loading_.context, GetParam().format, Parts::decode, 1);
  for (const int count : {1, 5, 70}) {
    const int64_t planned = Codec::sized(config_, loading_.device, GetParam().format, Parts::decode)
                                .decode_workspace_bytes(count, threads);
    CodecStatePool pool(codec, loading_.context, count);
    std::vector<CodecStream> streams;
    const int64_t most = Decoder::frames_per_pass(loading_.device);
    for (int s = 0; s < std::min<int64_t>(count, most); ++s) streams.emplace_back(pool);
    decode(loading_, codec, streams, std::vector(streams.size(), static_cast<int32_t>(config_.q_window)));
    Reserved machine(threads, planned);
    std::vector<int32_t> counts(streams.size(), 1);
    // A full pass spread over all streams; then one frame of the last stream more each time.
    std::vector<int32_t> even;
    for (int64_t s = 0; s < std::ssize(streams); ++s)
      even.push_back(
          static_cast<int32_t>(most * (s + 1) / std::ssize(streams) - most * s / std::ssize(streams)));
    decode(machine, codec, streams, even);
    for (int64_t frames = std::ssize(streams); frames <= most; ++frames) {
      decode(machine, codec, streams, counts);
      ++counts.back();
    }
    EXPECT_LE(machine.workspace.peak_bytes(), planned) << count << " streams";
    EXPECT_GE(machine.workspace.peak_bytes(), planned) << count << " streams";
    // Whatever else is decoded takes no more.
    std::minstd_rand dice(static_cast<unsigned>(count));
    for (int pass = 0; pass < 10; ++pass) {
      for (int32_t& frames : counts) frames = static_cast<int32_t>(dice() % (1u << dice() % 6));
      decode(machine, codec, streams, counts);
    }
    EXPECT_LE(machine.workspace.peak_bytes(), planned) << count << " streams";
    EXPECT_EQ(machine.workspace.growths(), 1);
  }
}

TEST_P(CodecPlan, IsWhatEncodingTakes) {
  const int threads = GetParam().threads;
  const Codec codec = Codec::random(config_, loading_.context, GetParam().format, Parts::encode, 1);
  for (const int clips : {1, 4}) {
    const auto full = static_cast<int32_t>(Encoder::frames_per_pass(loading_.device));
    const int64_t planned = Codec::sized(config_, loading_.device, GetParam().format, Parts::encode)
                                .encode_workspace_bytes(clips, threads, 2 * full);
    Reserved machine(threads, planned);
    // The first pass is full of the first clip's frames, the second one has as few or as many as it may have.
    for (int32_t frames = full + clips; frames <= 2 * full; ++frames) {
      std::vector<int32_t> counts(static_cast<size_t>(clips), 1);
      counts[0] += full;
      counts.back() += frames - full - clips;
      encode(machine, codec, counts);
    }
    EXPECT_LE(machine.workspace.peak_bytes(), planned) << clips << " clips";
    EXPECT_GE(machine.workspace.peak_bytes(), planned) << clips << " clips";
    std::minstd_rand dice(static_cast<unsigned>(clips));
    for (int pass = 0; pass < 10; ++pass) {
      std::vector<int32_t> counts(static_cast<size_t>(clips));
      for (int32_t& frames : counts) frames = static_cast<int32_t>(dice() % (1u << dice() % 7));
      encode(machine, codec, counts);
    }
    EXPECT_LE(machine.workspace.peak_bytes(), planned) << clips << " clips";
    EXPECT_EQ(machine.workspace.growths(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodecPlan,
                         testing::Values(Planned{"Small", small_config(), DType::f32, 1},
                                         Planned{"SmallBf16", small_config(), DType::bf16, 3},
                                         Planned{"Wide", wide_config(), DType::f32, 2},
                                         Planned{"WideBf16", wide_config(), DType::bf16, 1},
                                         Planned{"SmallInt8", small_config(), {DType::i8, DType::bf16}, 1},
                                         Planned{"WideInt8", wide_config(), {DType::i8, DType::bf16}, 1}),
                         [](const auto& tested) { return std::string(tested.param.name); });

// With the kernels that a GPU has for the published widths alone.
class CodecPlanOfPublishedSizes : public testing::TestWithParam<MatrixFormat> {};
INSTANTIATE_TEST_SUITE_P(All, CodecPlanOfPublishedSizes,
                         testing::Values(DType::bf16, MatrixFormat(DType::i8, DType::bf16)),
                         [](const auto& tested) { return std::string(name_of(tested.param.weights)); });

TEST_P(CodecPlanOfPublishedSizes, IsWhatIsNeeded) {
  if (ops::testing_on_cpu()) GTEST_SKIP() << "needs a GPU";
  const ops::TestMachine loading(2);
  const Codec codec = Codec::random(Config::published(), loading.context, GetParam(), Parts::both, 1);
  const int64_t frames = 2 * Encoder::frames_per_pass(loading.device);
  const std::vector<float> sound(static_cast<size_t>(frames * codec.config().samples_per_frame()), 0.25f);
  const std::vector<int32_t> codes(
      static_cast<size_t>(Decoder::frames_per_pass(loading.device) * codec.config().num_codebooks()), 3);
  ops::TestMachine encoding(2), decoding(2);
  const int64_t planned = codec.encode_workspace_bytes(1, 2, frames);
  encoding.workspace.reserve(planned);
  codec.encode(encoding.context, sound);
  EXPECT_EQ(encoding.workspace.peak_bytes(), planned);
  decoding.workspace.reserve(codec.decode_workspace_bytes(1, 2));
  codec.decode(decoding.context, codes);
  EXPECT_EQ(decoding.workspace.peak_bytes(), codec.decode_workspace_bytes(1, 2));
}

// The largest matrix in 16 bits beside the rows that are there then.
TEST(CodecPlanOfAGpu, CountsTheMatrixThatIsWidened) {
  SKIP_WITHOUT_CUDA();
  constexpr Device kDevice{DeviceKind::cuda, 0};
  const auto planned = [&](MatrixFormat format) {
    return Codec::sized(Config::published(), kDevice, format, Parts::both);
  };
  const Codec wide = planned(DType::bf16), narrow = planned({DType::i8, DType::bf16});
  const Config config = Config::published();
  const int64_t transposed = 2 * config.decoder_rates[0] * config.decoder_dim * config.decoder_dim / 2 * 2;
  const int64_t more = narrow.decode_workspace_bytes(1, 1) - wide.decode_workspace_bytes(1, 1);
  EXPECT_GT(narrow.decode_workspace_bytes(1, 1), transposed);
  EXPECT_LE(more, transposed);
  EXPECT_GE(narrow.encode_workspace_bytes(1, 1), wide.encode_workspace_bytes(1, 1));
  const auto share = [&](int64_t CodecMemory::* part) {
    return static_cast<double>(narrow.memory().*part) / static_cast<double>(wide.memory().*part);
  };
  EXPECT_NEAR(share(&CodecMemory::encoder), 0.5, 0.01);
  EXPECT_NEAR(share(&CodecMemory::decoder), 0.5, 0.01);
  EXPECT_LT(narrow.memory().total(), 425e6);
}

// What kernels of an H200 take.
TEST(CodecPlanOfAGpu, IsMadeWithoutOne) {
  SKIP_WITHOUT_CUDA();
  if (!ops::testing_on_cpu()) GTEST_SKIP() << "another GPU has other kernels";
  const Codec codec = Codec::sized(Config::published(), {DeviceKind::cuda, 0}, DType::bf16, Parts::both);
  EXPECT_NEAR(static_cast<double>(codec.decode_workspace_bytes(64, 1)), 386.4e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(codec.encode_workspace_bytes(4, 1)), 91.9e6, 0.1e6);
}

}  // namespace
}  // namespace shoal::dac
