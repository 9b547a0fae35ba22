// How differently two sounds sound, whatever their phases.
#pragma once

#include <span>

namespace shoal::parity {

// Log-spectral distance in dB: of 80 mel bands every 5 ms, root of the mean square over the bands, then the
// mean over time. What lies 60 dB below the golden's loudest band is as good as silent. Sounds of equal
// length, 24 kHz, at least 22 ms.
double spectral_distance_db(std::span<const float> sound, std::span<const float> golden);

}  // namespace shoal::parity
