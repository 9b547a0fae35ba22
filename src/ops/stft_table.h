// The constants of a short Fourier transform (short_stft.h), the same on every device.
#pragma once

#include <cstdint>
#include <span>

#include "ops/short_stft.h"

namespace shoal::ops {

constexpr int64_t kMostStftPoints = 64;

// w[n] of the window.
double stft_window(int64_t n, int64_t points);

// Entry (k, n - 1) of [bins, points / 2], n from 1 on: w[n] cos(2 pi k n / points), and the same with sin.
// For the inverse each is divided by points, and doubled for all bins but the first and the last.
void fill_stft_tables(const ShortStft& stft, bool inverse, std::span<float> cosines, std::span<float> sines);

}  // namespace shoal::ops
