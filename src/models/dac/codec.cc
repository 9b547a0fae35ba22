#include "models/dac/codec.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "models/dac/batch.h"
#include "models/dac/decoder.h"
#include "models/dac/encode_memory.h"
#include "models/dac/encoder.h"
#include "models/dac/loader.h"
#include "ops/device_state.h"
#include "ops/planning_context.h"

namespace shoal::dac {
namespace {

void check_format(MatrixFormat format, Device device) {
  if (ops::multiplies(device, format) && format.operand != DType::i8) return;
  if (format.weights != format.operand || format.weights == DType::i8)
    fail(ErrorCode::unsupported, "codec: weights in ", name_of(format.weights), " times operands in ",
         name_of(format.operand), ": expected I8 times BF16 or F16, on a GPU");
  fail(ErrorCode::unsupported, "codec: dtype: expected F32, BF16 or, on a GPU, F16, got ",
       name_of(format.weights));
}

void check_offsets(const ops::RaggedRows& rows, std::string_view what) {
  const auto& offsets = rows.offsets;
  if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()))
    fail(ErrorCode::invalid_argument, "codec: ", what, ": expected offsets that start at 0 and never fall");
}

void check_count(std::string_view what, size_t found, int64_t expected) {
  if (found != static_cast<size_t>(expected))
    fail(ErrorCode::invalid_argument, "codec: ", what, ": expected ", expected, " values, got ", found);
}

void check_codes(std::span<const int32_t> codes, int64_t width) {
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] >= 0) continue;
    fail(ErrorCode::invalid_argument, "codec: code of frame ", static_cast<int64_t>(i) / width, ", codebook ",
         static_cast<int64_t>(i) % width, ": expected 0 or more, got ", codes[i]);
  }
}

void check_clip_length(int64_t frames) {
  if (frames > kMaxPositions)
    fail(ErrorCode::too_large, "codec: a clip may have ", kMaxPositions, " frames, this one has ", frames);
}

// Clips [first, last) of `clips`, counted from the first one's rows.
std::vector<int32_t> offsets_of(const ops::RaggedRows& clips, int first, int last) {
  std::vector<int32_t> offsets;
  for (int s = first; s <= last; ++s)
    offsets.push_back(clips.offsets[static_cast<size_t>(s)] - clips.offsets[static_cast<size_t>(first)]);
  return offsets;
}

// Takes samples to where they belong, one piece after the other.
class Into {
 public:
  explicit Into(std::span<float> pcm) : left_(pcm) {}
  void operator()(std::span<const float> samples) {
    std::ranges::copy(samples, left_.begin());
    left_ = left_.subspan(samples.size());
  }

 private:
  std::span<float> left_;
};

// For clips of any length: passes of the same sizes seldom come again.
ops::Context unrecorded(const ops::Context& ctx) {
  ops::Context once = ctx;
  once.graphs = nullptr;
  return once;
}

}  // namespace

struct Codec::Idle {
  std::mutex mutex;
  std::unique_ptr<CodecStatePool> pool;  // of one stream
  std::unique_ptr<EncodeMemory> encoding;
};

Codec::Codec(const Config& config, MatrixFormat format, Device device)
    : config_(config), format_(format), device_(device), idle_(std::make_unique<Idle>()) {
  config_.validate("codec configuration");
  check_format(format, device);
}

Codec::Codec(Codec&&) noexcept = default;
Codec& Codec::operator=(Codec&&) noexcept = default;
Codec::~Codec() = default;

void Codec::bind(weights::TensorSource& source, ops::Context& ctx, Parts parts) {
  if (parts != Parts::encode) decoder_ = std::make_unique<Decoder>(source, ctx, config_, format_);
  if (parts != Parts::decode) encoder_ = std::make_unique<Encoder>(source, ctx, config_, format_);
}

Codec Codec::of(weights::TensorSource& source, const Config& config, ops::Context& ctx, MatrixFormat format,
                Parts parts) {
  Codec codec(config, format, ctx.device);
  codec.bind(source, ctx, parts);
  return codec;
}

Codec Codec::load(const weights::Checkpoint& checkpoint, const Config& config, ops::Context& ctx,
                  MatrixFormat format, Parts parts) {
  return of(*weights::read_weights(checkpoint, *ctx.team), config, ctx, format, parts);
}

Codec Codec::random(const Config& config, ops::Context& ctx, MatrixFormat format, Parts parts,
                    uint64_t seed) {
  return of(*random_weights(seed, *ctx.team), config, ctx, format, parts);
}

Codec Codec::sized(const Config& config, Device device, MatrixFormat format, Parts parts) {
  Codec codec(config, format, device);
  weights::NamesOnly names;
  ops::PlanningContext planning(device);
  codec.bind(names, planning.context(), parts);
  return codec;
}

CodecMemory Codec::memory() const {
  CodecMemory memory;
  if (encoder_)
    memory.encoder = encoder_->convolution_bytes(), memory.quantiser = encoder_->quantiser_bytes();
  if (decoder_)
    memory.decoder = decoder_->convolution_bytes(), memory.quantiser += decoder_->quantiser_bytes();
  return memory;
}

int64_t Codec::frames_for(int64_t samples) const {
  const int64_t hop = config_.samples_per_frame();
  return samples / hop + (samples % hop != 0);
}

void Codec::decode_streams(ops::Context& ctx, std::span<CodecStream* const> streams,
                           ops::RaggedRows new_frames, std::span<const int32_t> codes,
                           std::span<float> pcm) const {
  check_streams(streams, new_frames);
  check_count("codes", codes.size(), new_frames.rows() * config_.num_codebooks());
  check_count("pcm", pcm.size(), new_frames.rows() * config_.samples_per_frame());
  check_codes(codes, config_.num_codebooks());
  decode_checked(ctx, streams, new_frames, codes, Into(pcm), nullptr);
}

void Codec::check_streams(std::span<CodecStream* const> streams, const ops::RaggedRows& frames) const {
  if (!decoder_) fail(ErrorCode::invalid_argument, "codec: it was loaded without its decoder");
  check_offsets(frames, "new_frames");
  check_count("streams", streams.size(), frames.sequences());
  for (size_t s = 0; s < streams.size(); ++s) {
    const CodecStream& stream = *streams[s];
    if (stream.pool_ == nullptr || stream.pool_->codec_ != this || stream.pool_ != streams[0]->pool_)
      fail(ErrorCode::invalid_argument, "codec: stream ", s,
           ": expected all streams to be of one pool of this codec");
    for (size_t other = 0; other < s; ++other) {
      if (streams[other]->slot_ == stream.slot_)
        fail(ErrorCode::invalid_argument, "codec: streams ", other, " and ", s, " are the same");
    }
    check_clip_length(stream.frames_done_ + frames.count(static_cast<int>(s)));
  }
}

void Codec::decode_checked(ops::Context& ctx, std::span<CodecStream* const> streams,
                           const ops::RaggedRows& new_frames, std::span<const int32_t> codes,
                           FunctionRef<void(std::span<const float>)> take, const Tap* tap) const {
  if (new_frames.rows() == 0) return;
  CodecStatePool& pool = *streams[0]->pool_;
  const Workspace::Scope scope(ctx.host_memory());
  const auto offsets = host_array<int32_t>(ctx, new_frames.sequences() + 1);
  const auto starts = host_array<int64_t>(ctx, new_frames.sequences());
  const auto slots = host_array<int32_t>(ctx, new_frames.sequences());
  size_t active = 0;  // streams that have frames
  offsets[0] = 0;
  for (size_t s = 0; s < streams.size(); ++s) {
    const CodecStream& stream = *streams[s];
    if (new_frames.count(static_cast<int>(s)) == 0) continue;
    starts[active] = stream.frames_done_;
    slots[active] = stream.slot_;
    offsets[++active] = new_frames.offsets[s + 1];
    if (stream.frames_done_ == 0) pool.state_.clear(ctx, stream.slot_);
  }
  const Batch batch{.ctx = &ctx,
                    .state = &pool.state_,
                    .tap = tap,
                    .rows = {offsets.first(active + 1)},
                    .starts = starts.first(active),
                    .slots = slots.first(active)};
  decoder_->forward(batch, pool.memory_, codes, take);
  for (size_t s = 0; s < streams.size(); ++s)
    streams[s]->frames_done_ += new_frames.count(static_cast<int>(s));
}

// Of this codec, which may have moved since.
std::unique_ptr<CodecStatePool> Codec::pool_of_one(ops::Context& ctx) const {
  {
    const std::scoped_lock lock(idle_->mutex);
    if (idle_->pool && &idle_->pool->codec() == this) return std::move(idle_->pool);
  }
  return std::make_unique<CodecStatePool>(*this, ctx, 1);
}

int64_t Codec::frames_in(std::span<const int32_t> codes) const {
  const int64_t width = config_.num_codebooks();
  if (std::ssize(codes) % width != 0)
    fail(ErrorCode::invalid_argument, "codec: codes: expected a multiple of ", width, " values, got ",
         codes.size());
  check_clip_length(std::ssize(codes) / width);
  check_codes(codes, width);
  return std::ssize(codes) / width;
}

std::vector<float> Codec::decode(ops::Context& ctx, std::span<const int32_t> codes, const Tap* tap) const {
  const int64_t frames = frames_in(codes);
  std::vector<float> pcm;
  pcm.reserve(static_cast<size_t>(frames * config_.samples_per_frame()));
  ops::Context once = unrecorded(ctx);
  std::unique_ptr<CodecStatePool> pool = pool_of_one(once);
  const int32_t offsets[] = {0, static_cast<int32_t>(frames)};
  const auto append = [&](std::span<const float> samples) {
    pcm.insert(pcm.end(), samples.begin(), samples.end());
  };
  {
    CodecStream stream(*pool);
    CodecStream* const streams[] = {&stream};
    decode_checked(once, streams, {offsets}, codes, append, tap);
  }
  const std::scoped_lock lock(idle_->mutex);
  idle_->pool = std::move(pool);
  return pcm;
}

void Codec::decode_batch(ops::Context& ctx, ops::RaggedRows frames, std::span<const int32_t> codes,
                         std::span<float> pcm) const {
  check_offsets(frames, "frames");
  check_count("codes", codes.size(), frames.rows() * config_.num_codebooks());
  check_count("pcm", pcm.size(), frames.rows() * config_.samples_per_frame());
  check_codes(codes, config_.num_codebooks());
  const int clips = frames.sequences();
  for (int s = 0; s < clips; ++s) check_clip_length(frames.count(s));
  if (clips == 0) return;
  ops::Context once = unrecorded(ctx);
  CodecStatePool pool(*this, once, std::min(clips, kClipsAtATime));
  for (int first = 0; first < clips; first += kClipsAtATime) {
    const int last = std::min(clips, first + kClipsAtATime);
    std::vector<CodecStream> opened;
    std::vector<CodecStream*> streams;
    for (int s = first; s < last; ++s) opened.emplace_back(pool);
    for (CodecStream& stream : opened) streams.push_back(&stream);
    const std::vector<int32_t> offsets = offsets_of(frames, first, last);
    check_streams(streams, {offsets});
    const auto row = static_cast<size_t>(frames.begin(first)), count = static_cast<size_t>(offsets.back());
    const auto width = static_cast<size_t>(config_.num_codebooks());
    const auto hop = static_cast<size_t>(config_.samples_per_frame());
    decode_checked(once, streams, {offsets}, codes.subspan(row * width, count * width),
                   Into(pcm.subspan(row * hop, count * hop)), nullptr);
  }
}

std::vector<int32_t> Codec::encode(ops::Context& ctx, std::span<const float> samples, const Tap* tap) const {
  if (samples.size() > size_t{INT32_MAX})
    fail(ErrorCode::too_large, "codec: a clip may have ", INT32_MAX, " samples, this one has ",
         samples.size());
  const int32_t offsets[] = {0, static_cast<int32_t>(samples.size())};
  const auto frames = static_cast<size_t>(frames_for(static_cast<int64_t>(samples.size())));
  std::vector<int32_t> codes(frames * static_cast<size_t>(config_.num_codebooks()));
  check_clips({offsets}, samples, codes);
  std::unique_ptr<EncodeMemory> memory = encode_memory(ctx, 1);
  encode_checked(ctx, *memory, {offsets}, samples, codes, tap);
  keep_encode_memory(std::move(memory));
  return codes;
}

std::unique_ptr<EncodeMemory> Codec::new_encode_memory(const ops::Context& ctx, int clips) const {
  return std::make_unique<EncodeMemory>(encoder_->layout(), clips, encoder_->most_frames(),
                                        config_.num_codebooks(), dtype(), ctx);
}

// The last batch's if that is enough; otherwise there are never both at once.
std::unique_ptr<EncodeMemory> Codec::encode_memory(const ops::Context& ctx, int clips) const {
  std::unique_ptr<EncodeMemory> memory;
  {
    const std::scoped_lock lock(idle_->mutex);
    memory = std::move(idle_->encoding);
  }
  if (memory && memory->states().slots() >= clips) return memory;
  memory.reset();
  return new_encode_memory(ctx, clips);
}

void Codec::reserve_encoding(ops::Context& ctx) const {
  if (!encoder_) fail(ErrorCode::invalid_argument, "codec: it was loaded without its encoder");
  keep_encode_memory(encode_memory(ctx, kClipsAtATime));
}

void Codec::keep_encode_memory(std::unique_ptr<EncodeMemory> memory) const {
  const std::scoped_lock lock(idle_->mutex);
  idle_->encoding.swap(memory);  // what another thread has kept is given back without the lock
}

void Codec::encode_batch(ops::Context& ctx, ops::RaggedRows clips, std::span<const float> samples,
                         std::span<int32_t> codes) const {
  check_clips(clips, samples, codes);
  if (clips.sequences() == 0) return;
  std::unique_ptr<EncodeMemory> memory = encode_memory(ctx, kClipsAtATime);
  size_t done = 0;
  for (int first = 0; first < clips.sequences(); first += kClipsAtATime) {
    const int last = std::min(clips.sequences(), first + kClipsAtATime);
    const std::vector<int32_t> offsets = offsets_of(clips, first, last);
    const auto part =
        samples.subspan(static_cast<size_t>(clips.begin(first)), static_cast<size_t>(offsets.back()));
    done += encode_checked(ctx, *memory, {offsets}, part, codes.subspan(done), nullptr);
  }
  keep_encode_memory(std::move(memory));
}

void Codec::check_clips(const ops::RaggedRows& clips, std::span<const float> samples,
                        std::span<const int32_t> codes) const {
  if (!encoder_) fail(ErrorCode::invalid_argument, "codec: it was loaded without its encoder");
  check_offsets(clips, "clips");
  check_count("samples", samples.size(), clips.rows());
  const int64_t most = encoder_->most_frames();
  int64_t frames = 0;
  for (int s = 0; s < clips.sequences(); ++s) {
    const int64_t count = frames_for(clips.count(s));
    if (count > most)
      fail(ErrorCode::too_large, "codec: a clip to encode may have ", most, " frames, clip ", s, " has ",
           count);
    frames += count;
  }
  check_count("codes", codes.size(), frames * config_.num_codebooks());
}

// Clip s uses slot s. The first clip goes on at frame `start`: as in a plan, the others' beginnings are part
// of the pass. Returns the number of codes written.
size_t Codec::encode_checked(ops::Context& ctx, EncodeMemory& memory, const ops::RaggedRows& clips,
                             std::span<const float> samples, std::span<int32_t> codes, const Tap* tap,
                             int64_t start) const {
  StateSlots& state = memory.states();
  const Workspace::Scope scope(ctx.host_memory());
  const auto offsets = host_array<int32_t>(ctx, clips.sequences() + 1);
  const auto starts = host_array<int64_t>(ctx, clips.sequences());
  const auto slots = host_array<int32_t>(ctx, clips.sequences());
  offsets[0] = 0;
  for (int s = 0; s < clips.sequences(); ++s) {
    const auto i = static_cast<size_t>(s);
    offsets[i + 1] = offsets[i] + static_cast<int32_t>(frames_for(clips.count(s)));
    starts[i] = s == 0 ? start : 0;
    slots[i] = s;
    state.clear(ctx, s);
  }
  const Batch batch{
      .ctx = &ctx, .state = &state, .tap = tap, .rows = {offsets}, .starts = starts, .slots = slots};
  const TensorView found = memory.codes(batch.rows.rows());
  const auto count = static_cast<size_t>(found.elements());
  encoder_->forward(batch, clips, samples, found, codes.first(count));
  return count;
}

}  // namespace shoal::dac
