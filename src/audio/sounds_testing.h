// For the tests of this folder: signals, files made by libsndfile, and comparison.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <numbers>
#include <random>
#include <sndfile.h>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/error_testing.h"

namespace shoal::audio {

using Bytes = std::vector<std::byte>;

// Something like a voice: harmonics of a gliding pitch, syllables that swell and fade, a little breath.
// Peaks near 0.8.
inline std::vector<float> voice_like(int sample_rate_hz, double seconds) {
  std::vector<float> out(static_cast<size_t>(sample_rate_hz * seconds));
  std::mt19937 random(7);
  std::normal_distribution<double> breath(0, 0.002);
  double phase = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double t = static_cast<double>(i) / sample_rate_hz;
    phase += 2 * std::numbers::pi * (140 + 30 * std::sin(3 * t)) / sample_rate_hz;
    double sum = 0;
    for (int h = 1; h <= 12; ++h) sum += std::sin(h * phase) / h;
    out[i] = static_cast<float>(0.4 * sum * (0.55 + 0.45 * std::sin(9 * t)) + breath(random));
  }
  return out;
}

struct FileInMemory {
  Bytes bytes;
  size_t position = 0;
};

// A file of `format` (SF_FORMAT_... of libsndfile) holding interleaved samples.
inline Bytes sndfile_bytes(int format, int sample_rate_hz, int channels, std::span<const float> interleaved) {
  FileInMemory memory;
  SF_VIRTUAL_IO io{
      [](void* m) { return static_cast<sf_count_t>(static_cast<FileInMemory*>(m)->bytes.size()); },
      [](sf_count_t offset, int whence, void* m) {
        FileInMemory& file = *static_cast<FileInMemory*>(m);
        const sf_count_t origin = whence == SEEK_SET   ? 0
                                  : whence == SEEK_CUR ? static_cast<sf_count_t>(file.position)
                                                       : static_cast<sf_count_t>(file.bytes.size());
        return static_cast<sf_count_t>(file.position = static_cast<size_t>(origin + offset));
      },
      [](void* to, sf_count_t count, void* m) {
        FileInMemory& file = *static_cast<FileInMemory*>(m);
        const size_t left = file.bytes.size() - std::min(file.position, file.bytes.size());
        const size_t got = std::min(static_cast<size_t>(count), left);
        if (got > 0) std::memcpy(to, file.bytes.data() + file.position, got);
        file.position += got;
        return static_cast<sf_count_t>(got);
      },
      [](const void* from, sf_count_t count, void* m) {
        FileInMemory& file = *static_cast<FileInMemory*>(m);
        const size_t end = file.position + static_cast<size_t>(count);
        if (file.bytes.size() < end) file.bytes.resize(end);
        if (count > 0) std::memcpy(file.bytes.data() + file.position, from, static_cast<size_t>(count));
        file.position = end;
        return count;
      },
      [](void* m) { return static_cast<sf_count_t>(static_cast<FileInMemory*>(m)->position); }};
  SF_INFO info{};
  info.samplerate = sample_rate_hz;
  info.channels = channels;
  info.format = format;
  SNDFILE* file = sf_open_virtual(&io, SFM_WRITE, &info, &memory);
  if (!file) throw std::runtime_error(sf_strerror(nullptr));
  sf_command(file, SFC_SET_CLIPPING, nullptr, SF_TRUE);
  sf_writef_float(file, interleaved.data(), static_cast<sf_count_t>(interleaved.size()) / channels);
  sf_close(file);
  return memory.bytes;
}

// Signal to noise in dB over the common length.
inline double snr_db(std::span<const float> want, std::span<const float> got) {
  double signal = 0, noise = 1e-30;
  for (size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
    const double w = want[i], d = w - got[i];
    signal += w * w;
    noise += d * d;
  }
  return 10 * std::log10(signal / noise);
}

inline double max_difference(std::span<const float> a, std::span<const float> b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return worst;
}

}  // namespace shoal::audio
