// Arbitrary bytes as a reference clip: an Error of the caller's kind, or a clip within its limits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "audio/clip.h"
#include "base/error.h"

// libsndfile 1.2.0 forgets one structure (6 KB) when the headers of an Ogg Vorbis file are damaged.
extern "C" const char* __lsan_default_suppressions() { return "leak:libvorbis.so"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using shoal::audio::Clip;
  const shoal::audio::ClipLimits limits{
      .max_seconds = 0.5, .max_file_bytes = 1 << 16, .max_sample_rate_hz = 48000};
  try {
    const Clip clip = shoal::audio::decode_clip(std::as_bytes(std::span(data, size)), "reference", limits);
    if (clip.samples.empty() || clip.seconds() > limits.max_seconds) std::abort();
    for (const float x : clip.samples)
      if (!(std::abs(x) <= 16.0f)) std::abort();
  } catch (const shoal::Error& error) {
    if (!shoal::is_callers_fault(error.code())) std::abort();
  }
  return 0;
}
