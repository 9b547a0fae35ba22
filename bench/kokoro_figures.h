// The speed of a Kokoro model of the published sizes with many utterances at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "models/kokoro/kokoro.h"
#include "ops/context.h"

namespace shoal::bench {

// The defaults suit a CPU.
struct KokoroBenchOptions {
  DType dtype = DType::f32;
  std::vector<int> batches = {1, 2, 4};
  int phonemes = 105;           // of an utterance: 8 s of speech
  double frames_per_token = 3;  // pads included; the speed is chosen so that random weights take as many
  int repeats = 3;
  uint64_t seed = 1;
  // Called before each part with its name, for a progress line.
  std::function<void(const std::string& part)> on_part = [](const std::string&) {};

  // A GPU: batches of 1 to 32, more repeats.
  static KokoroBenchOptions for_device(Device device);
};

// One call with `batch` utterances. Median over the repeats.
struct KokoroBatchFigures {
  int batch = 0;
  double ms = 0;
  double audio_s = 0;          // of all utterances together
  double times_real_time = 0;  // seconds of sound a second of work
  double gflop_per_s = 0;
  double share_of_compute_limit = 0;  // 0: the limit is not known
  int64_t device_bytes = 0;           // of a GPU in use by then, beside the weights
};

struct KokoroFigures {
  std::string name, dtype;
  int64_t weight_bytes = 0;
  std::vector<KokoroBatchFigures> batches;  // in the order of the options
  int64_t peak_resident_bytes = 0;
};

// Multiply-adds of the published model per second of sound, in GFLOP, counted from its sizes.
constexpr double kKokoroGflopPerSecond = 54.8;

// Random weights at the published sizes.
KokoroFigures bench_kokoro(const MachineLimits& limits, const KokoroBenchOptions& options, ops::Context& ctx);

}  // namespace shoal::bench
