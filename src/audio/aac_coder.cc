// AAC-LC in ADTS frames by vo-aacenc: mono, constant bitrate.
#include <algorithm>
#include <array>

// Its headers include each other as neighbours.
extern "C" {
#include <vo-aacenc/cmnMemory.h>
#include <vo-aacenc/voAAC.h>
}

#include "audio/coder.h"
#include "base/error.h"

namespace shoal::audio {
namespace {

constexpr std::array<int, 12> kRatesHz = {8000,  11025, 12000, 16000, 22050, 24000,
                                          32000, 44100, 48000, 64000, 88200, 96000};
constexpr int kDefaultAacBitrate = 64000;
constexpr int kMinAacBitrate = 8000, kMaxAacBitrate = 160000;
constexpr size_t kFrameSamples = 1024;
constexpr size_t kFrameBytes = 768 + 7;  // 6144 bits of one channel, and the ADTS header
// The decoder's delay before the first sample: the overlap of the first block, and the encoder's look-ahead
// for transients.
constexpr size_t kDelaySamples = 1024 + 576;

int bitrate_bps(const EncoderOptions& options) {
  if (std::find(kRatesHz.begin(), kRatesHz.end(), options.sample_rate_hz) == kRatesHz.end())
    fail(ErrorCode::invalid_argument,
         "aac sample rate: expected 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, "
         "88200 or 96000 Hz, got ",
         options.sample_rate_hz);
  // A frame holds at most 6144 bits.
  const int most = std::min(kMaxAacBitrate, options.sample_rate_hz * 6);
  if (options.bitrate_bps == 0) return std::min(kDefaultAacBitrate, options.sample_rate_hz * 4);
  if (options.bitrate_bps < kMinAacBitrate || options.bitrate_bps > most)
    fail(ErrorCode::invalid_argument, "aac bitrate at ", options.sample_rate_hz, " Hz: expected ",
         kMinAacBitrate, " to ", most, " bit/s, got ", options.bitrate_bps);
  return options.bitrate_bps;
}

class AacCoder final : public Coder {
 public:
  explicit AacCoder(const EncoderOptions& options) {
    AACENC_PARAM settings{
        .sampleRate = options.sample_rate_hz, .bitRate = bitrate_bps(options), .nChannels = 1, .adtsUsed = 1};
    if (voGetAACEncAPI(&library_) != VO_ERR_NONE)
      fail(ErrorCode::internal, "aac: the library has no encoder");
    VO_CODEC_INIT_USERDATA user{.memflag = VO_IMF_USERMEMOPERATOR, .memData = &memory_};
    if (library_.Init(&encoder_, VO_AUDIO_CodingAAC, &user) != VO_ERR_NONE)
      fail(ErrorCode::resource_exhausted, "aac: no memory for an encoder");
    if (library_.SetParam(encoder_, VO_PID_AAC_ENCPARAM, &settings) != VO_ERR_NONE) {
      library_.Uninit(encoder_);
      fail(ErrorCode::internal, "aac: the library refused its settings");
    }
  }
  ~AacCoder() override { library_.Uninit(encoder_); }

  void push(std::span<const int16_t> samples, Bytes& out) override {
    pushed_ += samples.size();
    take(samples, out);
  }

  // Silence pushes the last samples through the encoder's delay.
  void finish(Bytes& out) override {
    const size_t frames = (pushed_ + kDelaySamples + kFrameSamples - 1) / kFrameSamples;
    const std::array<int16_t, kFrameSamples> silence{};
    while (encoded_frames_ < frames) take(std::span(silence).first(kFrameSamples - filled_), out);
  }

 private:
  void take(std::span<const int16_t> samples, Bytes& out) {
    while (!samples.empty()) {
      const size_t count = std::min(samples.size(), kFrameSamples - filled_);
      std::copy_n(samples.begin(), count, frame_.begin() + static_cast<std::ptrdiff_t>(filled_));
      filled_ += count;
      samples = samples.subspan(count);
      if (filled_ == kFrameSamples) encode_frame(out);
    }
  }

  void encode_frame(Bytes& out) {
    VO_CODECBUFFER input{.Buffer = reinterpret_cast<VO_PBYTE>(frame_.data()),
                         .Length = kFrameSamples * sizeof(int16_t)};
    std::array<std::byte, 2 * kFrameBytes> coded;
    VO_CODECBUFFER output{.Buffer = reinterpret_cast<VO_PBYTE>(coded.data()), .Length = coded.size()};
    VO_AUDIO_OUTPUTINFO told{};
    VO_U32 status = library_.SetInputData(encoder_, &input);
    if (status == VO_ERR_NONE) status = library_.GetOutputData(encoder_, &output, &told);
    if (status != VO_ERR_NONE) fail(ErrorCode::internal, "aac: the library failed with code ", status);
    CHECK(output.Length <= coded.size(), "frame of ", output.Length, " bytes");
    append(out, std::span(coded).first(output.Length));
    filled_ = 0;
    ++encoded_frames_;
  }

  VO_AUDIO_CODECAPI library_{};
  VO_MEM_OPERATOR memory_{.Alloc = cmnMemAlloc,
                          .Free = cmnMemFree,
                          .Set = cmnMemSet,
                          .Copy = cmnMemCopy,
                          .Check = cmnMemCheck,
                          .Compare = cmnMemCompare,
                          .Move = cmnMemMove};  // the library keeps a pointer to it
  VO_HANDLE encoder_ = nullptr;
  std::array<int16_t, kFrameSamples> frame_{};
  size_t filled_ = 0, pushed_ = 0, encoded_frames_ = 0;
};

}  // namespace

std::unique_ptr<Coder> make_aac_coder(const EncoderOptions& options) {
  return std::make_unique<AacCoder>(options);
}

}  // namespace shoal::audio
