// The modified DAC codec: wave -> codes -> wave. Maths and steps: MODEL.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "models/dac/config.h"
#include "models/dac/stream.h"
#include "models/dac/tap.h"
#include "ops/context.h"
#include "tensor/formats.h"
#include "weights/checkpoint.h"

namespace shoal::weights {
class TensorSource;
}

namespace shoal::dac {

class Encoder;
class Decoder;
class EncodeMemory;

// The uses that a codec is loaded for: it spends memory and loading time only on these.
enum class Parts { decode, encode, both };

// Bytes of weights, by role.
struct CodecMemory {
  int64_t encoder = 0;
  int64_t quantiser = 0;  // both sides of it: downsampling to code search, code table to upsampling
  int64_t decoder = 0;
  int64_t total() const { return encoder + quantiser + decoder; }
};

// Immutable once loaded; every method is const and may run on several threads at once, each with its own
// Context. Results do not depend on batching, chunking or the number of threads: bit for bit.
class Codec {
 public:
  // Clips of a batch processed at once: a long clip fills every pass by itself, and each needs a state.
  static constexpr int kClipsAtATime = 4;

  // format, of the matrices: f32, bf16 or, where the device has such products, f16; on a GPU also i8 beside
  // 16 bits (MODEL.md, Precision). Sums, activations and the last convolution are f32 in any case. A
  // checkpoint that keeps integers loads in every format. Its names are already normalised
  // (weights::normalise_codec_names), its integers checked (weights::check_quantised_codec), and it may be
  // closed afterwards. Throws Error: invalid_argument (config), unsupported (format), not_found or
  // corrupt_file (tensors).
  static Codec load(const weights::Checkpoint& checkpoint, const Config& config, ops::Context& ctx,
                    MatrixFormat format, Parts parts);
  // Of any source.
  static Codec of(weights::TensorSource& source, const Config& config, ops::Context& ctx, MatrixFormat format,
                  Parts parts);
  // Random weights of sensible size, for benchmarks and tests: a pure function of (config, seed).
  static Codec random(const Config& config, ops::Context& ctx, MatrixFormat format, Parts parts,
                      uint64_t seed);

  // Without memory: only its sizes can be asked. The device need not exist.
  static Codec sized(const Config& config, Device device, MatrixFormat format, Parts parts);

  Codec(Codec&&) noexcept;
  Codec& operator=(Codec&&) noexcept;
  ~Codec();

  const Config& config() const { return config_; }
  MatrixFormat format() const { return format_; }
  DType dtype() const { return format_.operand; }
  bool can_decode() const { return decoder_ != nullptr; }
  bool can_encode() const { return encoder_ != nullptr; }
  CodecMemory memory() const;
  // CodecStatePool::bytes_per_stream, and the rest of its bytes(), before there is a pool.
  int64_t stream_bytes() const;
  int64_t pass_bytes(int64_t streams) const;
  // What the workspace gives to decoding passes of at most `streams` utterances, and to encoding passes of so
  // many clips, at its peak, with scratch of the ops. `threads` matters only to a CPU, which cuts its work to
  // their caches. Throws Error(unavailable) of a GPU in a build without CUDA.
  // At most so many frames are decoded at a time; 0: as many as suit the device.
  int64_t decode_workspace_bytes(int streams, int threads, int64_t most_frames = 0) const;
  // Clips have at most so many frames; 0: as many as can be encoded.
  int64_t encode_workspace_bytes(int clips, int threads, int64_t most_frames = 0) const;
  // What encoding keeps for each clip of a batch, besides.
  int64_t clip_bytes() const;
  // Takes this memory for batches now instead of with the first. Throws Error: invalid_argument (no encoder),
  // resource_exhausted.
  void reserve_encoding(ops::Context& ctx) const;
  // Frames of a clip of that many samples: rounded up.
  int64_t frames_for(int64_t samples) const;

  // Codes are int32 [frames, num_codebooks], frame-major, semantic code first. Codes above a codebook's range
  // are clamped to its last entry (MODEL.md, Decoding 1); negative ones throw Error(invalid_argument).

  // One clip: frames * samples_per_frame samples in [-1, 1] at the codec's rate. Throws Error as frames_in.
  std::vector<float> decode(ops::Context& ctx, std::span<const int32_t> codes,
                            const Tap* tap = nullptr) const;
  // Frames of a clip to decode. Throws Error: invalid_argument (not whole frames, negative codes), too_large
  // (beyond kMaxPositions frames).
  int64_t frames_in(std::span<const int32_t> codes) const;
  // Clips end to end; frames.offsets say where each one's frames are.  pcm: [frames.rows() *
  // samples_per_frame], clips end to end in the same order.
  void decode_batch(ops::Context& ctx, ops::RaggedRows frames, std::span<const int32_t> codes,
                    std::span<float> pcm) const;
  // New frames of several utterances: sequence s of new_frames (possibly without rows) belongs to
  // *streams[s]; the streams are all different and all of one pool of this codec. Their samples are written
  // end to end to pcm [new_frames.rows() * samples_per_frame] and equal those of decoding everything at once.
  // Allocates nothing once ctx.workspace has grown. Throws Error before anything changes: invalid_argument
  // (codes, sizes), too_large (a clip beyond kMaxPositions frames). If it throws later (out of memory), reset
  // the streams.
  void decode_streams(ops::Context& ctx, std::span<CodecStream* const> streams, ops::RaggedRows new_frames,
                      std::span<const int32_t> codes, std::span<float> pcm) const;

  // Mono samples at the codec's rate, zero-padded on the right to whole frames -> codes [frames_for(samples),
  // num_codebooks]. Throws Error(too_large) for a clip over kMaxPositions rows of the encoder's transformers.
  std::vector<int32_t> encode(ops::Context& ctx, std::span<const float> samples,
                              const Tap* tap = nullptr) const;
  // Clips end to end; clip s is samples [offsets[s], offsets[s + 1]). codes: frames of each clip, end to end;
  // sum of frames_for(count(s)) * num_codebooks.
  void encode_batch(ops::Context& ctx, ops::RaggedRows clips, std::span<const float> samples,
                    std::span<int32_t> codes) const;

 private:
  friend class CodecStatePool;
  Codec(const Config& config, MatrixFormat format, Device device);
  void bind(weights::TensorSource& source, ops::Context& ctx, Parts parts);
  void check_streams(std::span<CodecStream* const> streams, const ops::RaggedRows& new_frames) const;
  void decode_checked(ops::Context& ctx, std::span<CodecStream* const> streams,
                      const ops::RaggedRows& new_frames, std::span<const int32_t> codes,
                      FunctionRef<void(std::span<const float>)> take, const Tap* tap) const;
  std::unique_ptr<CodecStatePool> pool_of_one(ops::Context& ctx) const;
  void check_clips(const ops::RaggedRows& clips, std::span<const float> samples,
                   std::span<const int32_t> codes) const;
  std::unique_ptr<EncodeMemory> new_encode_memory(const ops::Context& ctx, int clips) const;
  std::unique_ptr<EncodeMemory> encode_memory(const ops::Context& ctx, int clips) const;
  void keep_encode_memory(std::unique_ptr<EncodeMemory> memory) const;
  size_t encode_checked(ops::Context& ctx, EncodeMemory& memory, const ops::RaggedRows& clips,
                        std::span<const float> samples, std::span<int32_t> codes, const Tap* tap,
                        int64_t start = 0) const;

  Config config_;
  MatrixFormat format_;
  Device device_;
  std::unique_ptr<const Encoder> encoder_;
  std::unique_ptr<const Decoder> decoder_;
  // Memory of the last clip, for the next one: taking a device's memory and giving it back makes a GPU wait.
  struct Idle;
  std::unique_ptr<Idle> idle_;
};

}  // namespace shoal::dac
