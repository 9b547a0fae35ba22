// The kernel table of one instruction set: instantiated only by sequence_<isa>.cc.
#pragma once

#include "ops/cpu/sequence/sequence_lstm.h"
#include "ops/cpu/sequence/sequence_source.h"
#include "ops/cpu/sequence/sequence_stft.h"

namespace shoal::ops::cpu {

template <typename V>
constexpr SequenceKernels make_sequence_kernels() {
  return {.lstm_step = Lstm<V>::step,
          .harmonic_source = Source<V>::block,
          .short_stft = Stft<V>::forward,
          .inverse_short_stft = Stft<V>::inverse};
}

}  // namespace shoal::ops::cpu
