// CPU bodies of the ops that run along utterances. Operands are checked by the caller.
#pragma once

#include "ops/harmonic_source.h"
#include "ops/lstm.h"
#include "ops/segment_norm.h"
#include "ops/short_stft.h"

namespace shoal::ops::cpu {

// The recurrent weights of both directions as LstmStep reads them.
Tensor pack_recurrent(const LstmDirection& forward, const LstmDirection& backward);
// products: f32 [total_rows, 2 * 4 * hidden], inputs times weights; scratch afterwards.
void run_lstm(Context& ctx, TensorView products, const Segments& segments, const PackedLstm& lstm,
              TensorView y);

void adain(Context& ctx, TensorView x, const Segments& segments, TensorView style, float eps,
           const SegmentActivation& activation, TensorView y);
void harmonic_source(Context& ctx, const HarmonicSource& source, TensorView f0, const Segments& segments,
                     const SourceNoise& noise, TensorView out);
void short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments, TensorView y);
void inverse_short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments,
                        TensorView y);

}  // namespace shoal::ops::cpu
