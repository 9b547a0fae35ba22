// Convolutions that are no matter for the kernels of matrices: their matrices have one row or one column.
#pragma once

#include "ops/cuda/conv/conv_input.cuh"

namespace shoal::ops::cuda {

// A codec's last convolution: f32, one output, so that nothing is shared between outputs and the input is
// read once, through its snake. Channels: a multiple of 32.
bool has_one_output(const PackedMatrix& weight, const ConvSource& source);
// Replaces the history, too.
void convolve_to_one_output(Context& ctx, const ConvSource& source, const PackedMatrix& weight,
                            const ProductEpilogue& epilogue);

// A codec's first convolution: f32, one input; bound by the writing of its outputs. The bits of f32_product.
bool has_one_input(const Product& product);
void convolve_one_input(Context& ctx, const Product& product);

}  // namespace shoal::ops::cuda
