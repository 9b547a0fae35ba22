// Model folders with smaller weights, made of others (docs/QUANTISATION.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shoal/engine_config.h"

namespace shoal {

struct QuantiseOptions {
  std::string model;       // folder of a language model; empty: the built-in voice
  std::string output_dir;  // must not exist, or be empty
  // int8, int4 or fp8; automatic: the language model's stay as they are, and the codec is made smaller.
  WeightFormat weights = WeightFormat::int8;
  CodecWeights codec = CodecWeights::automatic;  // automatic: it stays as it is; int8
  int group = 0;  // of int4: inputs that share a scale and a minimum: 32, 64 or 128; 0: 64
  // Text file of 1 to 256 sentences, one a line, that the model speaks first: the integers are then those
  // that leave its products nearest to what they were. Empty: those nearest to the weights.
  std::string calibration = {};
  int threads = 0;  // 0: every CPU this process may run on
};

// What rounding changed in a layer's matrices: its norm as a share of the norm of the weights, of all of them
// and of the output (row) where it is largest.
struct QuantisedLayer {
  std::string name;  // "layers.0"
  double mean_error = 0, worst_error = 0;
  // With a calibration: what rounding changed in the products with its inputs, as a share of their norm, if
  // every weight took the nearest value, and with the values that were chosen.
  double output_error_before = 0, output_error = 0;
};

struct QuantisationReport {
  int64_t bytes_before = 0, bytes_after = 0;  // of the language model's checkpoint; 0: it stayed as it was
  std::vector<QuantisedLayer> layers = {};
  int64_t codec_bytes_before = 0, codec_bytes_after = 0;  // of the codec's checkpoint; 0: it stayed as it was
  std::vector<QuantisedLayer> codec_parts = {};           // "codec decoder"
  double seconds = 0;
};

// Told of the share that is done, in [0, 1], and what is at hand; false stops the work.
using QuantiseProgress = std::function<bool(double share, const std::string& at)>;

// Writes a folder that speaks exactly as `model` does with EngineConfig::weights and codec_weights (if the
// group is the usual one, and without a calibration), all or nothing. Takes memory for one matrix; with a
// calibration for the language model in float32, too, and 16 bytes for each pair of inputs of the widest
// matrix. Throws Error as reading the model does; already_exists; invalid_argument (weights; group; quantised
// already; calibration); too_large (calibration); unsupported (another family; fp8 with a calibration);
// resource_exhausted (disk full); io;
// cancelled.
QuantisationReport quantise_model(const QuantiseOptions& options, const QuantiseProgress& progress = {});

}  // namespace shoal
