// The CPU kernels of ops along an utterance: recurrences, the harmonic source, short spectra. Chosen once per
// call by cpu_isa(); like those of vector_kernels.h they give the same bits on every instruction set.
#pragma once

#include <cstdint>

namespace shoal::ops {

// One state of an LSTM that takes a step: hidden values before and after it.
struct LstmState {
  const float* before;  // [hidden]
  float* gates;         // [4, hidden] products with the inputs; scratch afterwards
  float* cells;         // [hidden]
  float* after;         // [hidden], not `before`
};

constexpr int64_t kLstmGroup = 16;  // units whose weights are stored together

struct LstmStep {
  // [groups of units, hidden, 4 gates, kLstmGroup]: weights of the gates i, f, g, o; units beyond `hidden`
  // are zeros.
  const float* recurrent;
  int64_t hidden;
  const LstmState* states;
  int64_t count;
};

constexpr int kSourceBlock = 64;            // samples that share 16 blocks of the generator, per harmonic
constexpr uint32_t kSourceNoiseStream = 1;  // last word of the counter; 0 for the sampling of tokens

// kSourceBlock samples of a harmonic source.
struct SourceBlock {
  int harmonics;
  const uint32_t* phases;            // [harmonics, kSourceBlock] in turns / 2^32
  const float *amplitudes, *levels;  // [kSourceBlock] of the sines, and standard deviations of the noise
  const float* noise;                // [harmonics, kSourceBlock]; null: drawn
  uint64_t seed;                     // of the draws
  uint32_t block;                    // samples of the segment before these / kSourceBlock
  const float* weights;              // [harmonics]
  float bias;
  float* out;  // [kSourceBlock]
};

constexpr int kStftFrames = 16;  // frames of a block
constexpr int kMostPoints = 64;

// A DFT of `points` with its window, for 16 frames side by side. Tables: [points / 2 + 1 bins, points / 2],
// entry (k, n - 1) = w[n] cos(2 pi k n / points), and the same with sin.
struct StftTables {
  int points;
  const float *cosines, *sines;
};

struct StftBlock {
  StftTables tables;
  const float* samples;    // sample n of frame i at [offsets[n] + i]
  const int32_t* offsets;  // [points]
  int frames;              // 1 to kStftFrames; there are samples for all kStftFrames
  float* y;                // [frames] rows of 2 * bins
  int64_t y_stride;
};

struct InverseStftBlock {
  StftTables tables;  // each divided by points, and doubled for all bins but the first and the last
  const float* x;     // [frames] rows of 2 * bins
  int64_t x_stride;
  int frames;      // 1 to kStftFrames
  float* pieces;   // [points, stride]: windowed sample n of frame i at [n][i]; zeros from `frames` on
  int64_t stride;  // at least kStftFrames
};

struct SequenceKernels {
  // gates = gates + W h; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c). A state's result does
  // not depend on the others of the call.
  void (*lstm_step)(const LstmStep& step);
  // tanh(sum over harmonics of weight * (amplitude * sin(phase) + level * noise) + bias).
  void (*harmonic_source)(const SourceBlock& block);
  void (*short_stft)(const StftBlock& block);
  void (*inverse_short_stft)(const InverseStftBlock& block);
};

const SequenceKernels& sequence_kernels();

namespace cpu {
// The table of each instruction set, in its own translation unit.
const SequenceKernels& sequence_kernels_portable();
const SequenceKernels& sequence_kernels_avx2();
const SequenceKernels& sequence_kernels_avx512();
// sin(x) for arguments beyond the range of the kernels' reduction.
float sine_of_large(float x);
}  // namespace cpu

}  // namespace shoal::ops
