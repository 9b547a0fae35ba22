#include "audio/stream_resampler.h"

#include <cmath>
#include <soxr.h>

#include "audio/rates.h"
#include "base/error.h"

namespace shoal::audio {
namespace {

constexpr size_t kPiece = 4096;  // input samples per call

void check(soxr_error_t error) {
  if (error) fail(ErrorCode::internal, "resampling: ", soxr_strerror(error));
}

}  // namespace

void StreamResampler::Delete::operator()(soxr* state) const { soxr_delete(state); }

StreamResampler::StreamResampler(int from_hz, int to_hz) : ratio_(static_cast<double>(to_hz) / from_hz) {
  for (const int rate : {from_hz, to_hz}) check_rate(rate);
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  soxr_runtime_spec_t runtime = soxr_runtime_spec(/*num_threads=*/1);
  runtime.log2_min_dft_size = 8;  // short blocks: less delay
  soxr_error_t error = nullptr;
  state_.reset(soxr_create(from_hz, to_hz, 1, &error, &io, &quality, &runtime));
  check(error);
}

void StreamResampler::push(std::span<const float> in, std::vector<float>& out) {
  while (!in.empty()) {
    const size_t count = std::min(in.size(), kPiece), start = out.size();
    // Room for more than one call can give, so that it takes all of its input.
    out.resize(start + static_cast<size_t>(std::ceil(static_cast<double>(count) * ratio_)) + kPiece);
    size_t taken = 0, made = 0;
    check(
        soxr_process(state_.get(), in.data(), count, &taken, out.data() + start, out.size() - start, &made));
    out.resize(start + made);
    in = in.subspan(taken);
  }
}

void StreamResampler::finish(std::vector<float>& out) {
  for (size_t made = kPiece; made == kPiece;) {
    const size_t start = out.size();
    out.resize(start + kPiece);
    check(soxr_process(state_.get(), nullptr, 0, nullptr, out.data() + start, kPiece, &made));
    out.resize(start + made);
  }
}

}  // namespace shoal::audio
