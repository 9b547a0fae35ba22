// What a codec's passes take of the device's memory: the passes themselves, in a context that counts.
#include <algorithm>
#include <numeric>
#include <vector>

#include "models/dac/codec.h"
#include "models/dac/decoder.h"
#include "models/dac/encode_memory.h"
#include "models/dac/encoder.h"
#include "ops/planning_context.h"

namespace shoal::dac {
namespace {

// `rows` of `sequences`, of which all but the last have one: pieces of a pass meet as many sequences as they
// can.
std::vector<int32_t> crowded(int64_t rows, int64_t sequences) {
  std::vector<int32_t> offsets(static_cast<size_t>(sequences) + 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  offsets.back() = static_cast<int32_t>(rows);
  return offsets;
}

// As many rows of each sequence, so that attention meets as many at once as it can.
std::vector<int32_t> spread(int64_t rows, int64_t sequences) {
  std::vector<int32_t> offsets;
  for (int64_t s = 0; s <= sequences; ++s) offsets.push_back(static_cast<int32_t>(rows * s / sequences));
  return offsets;
}

// Every number of frames that a pass of so many sequences may have, one pass after the other. The most is not
// always what takes the most: a CPU stages few rows of each sequence in a form of their own, and a GPU has
// other kernels for few rows.
void for_each_pass(int64_t sequences, int64_t most_frames,
                   FunctionRef<void(const std::vector<int32_t>& offsets)> pass) {
  for (int64_t frames = sequences; frames <= most_frames; ++frames) pass(crowded(frames, sequences));
}

}  // namespace

int64_t Codec::stream_bytes() const { return decoder_->layout().bytes_per_slot(dtype()); }

int64_t Codec::clip_bytes() const {
  return EncodeMemory::bytes_per_clip(encoder_->layout(), encoder_->most_frames(), config_.num_codebooks(),
                                      dtype());
}

int64_t Codec::pass_bytes(int64_t streams) const {
  return DecodeMemory::bytes_of(decoder_->sizes(static_cast<int>(streams)));
}

int64_t Codec::decode_workspace_bytes(int streams, int threads, int64_t most_frames) const {
  ops::PlanningContext planning(device_, threads);
  CodecStatePool pool(*this, planning.context(), streams);
  DecodeSizes sizes = decoder_->sizes(streams);
  if (most_frames > 0) sizes.frames = std::min(sizes.frames, most_frames);
  std::vector<CodecStream> opened;
  std::vector<CodecStream*> together;
  for (int64_t s = 0; s < sizes.streams; ++s) opened.emplace_back(pool);
  for (CodecStream& stream : opened) together.push_back(&stream);
  const std::vector<int32_t> codes(static_cast<size_t>(sizes.frames * config_.num_codebooks()));
  const auto decode = [&](const std::vector<int32_t>& offsets) {
    for (CodecStream& stream : opened) stream.frames_done_ = config_.q_window;  // attention sees all it may
    decode_checked(planning.context(), together, {offsets}, codes, [](std::span<const float>) {}, nullptr);
  };
  for_each_pass(sizes.streams, sizes.frames, decode);
  decode(spread(sizes.frames, sizes.streams));
  return planning.peak_bytes();
}

int64_t Codec::encode_workspace_bytes(int clips, int threads, int64_t most_frames) const {
  const int64_t most = Encoder::frames_per_pass(device_);
  if (most_frames == 0) most_frames = encoder_->most_frames();
  ops::PlanningContext planning(device_, threads);
  const std::unique_ptr<EncodeMemory> memory = new_encode_memory(planning.context(), clips);
  const int64_t hop = config_.samples_per_frame();
  const std::vector<float> samples(static_cast<size_t>(most * hop));
  std::vector<int32_t> codes(static_cast<size_t>(most * config_.num_codebooks()));
  for_each_pass(std::min<int64_t>(clips, most), most, [&](std::vector<int32_t> offsets) {
    for (int32_t& offset : offsets) offset *= static_cast<int32_t>(hop);
    encode_checked(planning.context(), *memory, {offsets}, samples, codes, nullptr,
                   std::max<int64_t>(0, most_frames - most));
  });
  return planning.peak_bytes();
}

}  // namespace shoal::dac
