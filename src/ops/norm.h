// Normalisations over the last dimension; statistics in f32 with a fixed order of summation.
#pragma once

#include "ops/context.h"

namespace shoal::ops {

// y = x / sqrt(mean(x^2) + eps) * weight.   x, y: f32 [rows, dim] (rows may be strided), weight: f32 [dim]. y
// may be x.
void rms_norm(Context& ctx, TensorView x, TensorView weight, float eps, TensorView y);

// y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance.   Same shapes.
void layer_norm(Context& ctx, TensorView x, TensorView weight, TensorView bias, float eps, TensorView y);

// The same, where row r takes row which[r] of the weights and of the biases.   which: i32 [rows], dense, in
// the device's memory, below n (embedding.h says what becomes of others); weights, biases: f32 [n, dim], n at
// least 1, rows may be strided.
void layer_norm_by_row(Context& ctx, TensorView x, TensorView which, TensorView weights, TensorView biases,
                       float eps, TensorView y);

}  // namespace shoal::ops
