// The order of summation written down plainly (matrix_kernels.h); fast where std::fma is an instruction
// (arm64).
#include <cmath>

#include "base/bf16.h"
#include "ops/cpu/gemm/matrix_kernels.h"
#include "ops/cpu/gemm/matrix_layout.h"

namespace shoal::ops::cpu {
namespace {

int one_panel(int) { return 1; }

void multiply_f32(const ProductBlock& block) {
  for (int row = 0; row < block.rows; ++row) {
    for (int panel = 0; panel < block.panels; ++panel) {
      const float* w = reinterpret_cast<const float*>(block.weights + panel * block.panel_stride);
      float even[kPanel] = {}, odd[kPanel] = {};
      for (int64_t tap = 0; tap < block.taps; ++tap) {
        const float* x =
            static_cast<const float*>(block.input) + row * block.row_stride + tap * block.tap_stride;
        for (int64_t k = 0; k < block.depth; k += 2, w += 2 * kPanel) {
          for (int n = 0; n < kPanel; ++n) even[n] = std::fma(w[n], x[k], even[n]);
          for (int n = 0; n < kPanel; ++n) odd[n] = std::fma(w[kPanel + n], x[k + 1], odd[n]);
        }
      }
      float* sums = block.sums + (row * block.panels + panel) * kPanel;
      for (int n = 0; n < kPanel; ++n) sums[n] = even[n] + odd[n];
    }
  }
}

void multiply_bf16(const ProductBlock& block) {
  for (int row = 0; row < block.rows; ++row) {
    for (int panel = 0; panel < block.panels; ++panel) {
      const Bf16* w = reinterpret_cast<const Bf16*>(block.weights + panel * block.panel_stride);
      float sums[kPanel] = {};
      for (int64_t tap = 0; tap < block.taps; ++tap) {
        const float* x =
            static_cast<const float*>(block.input) + row * block.row_stride + tap * block.tap_stride;
        for (int64_t begin = 0; begin < block.depth; begin += 32) {
          float even[kPanel] = {}, odd[kPanel] = {};
          for (int64_t k = begin; k < begin + 32; k += 2, w += 2 * kPanel) {
            for (int n = 0; n < kPanel; ++n) even[n] = std::fma(bf16_to_float(w[2 * n]), x[k], even[n]);
            for (int n = 0; n < kPanel; ++n) odd[n] = std::fma(bf16_to_float(w[2 * n + 1]), x[k + 1], odd[n]);
          }
          for (int n = 0; n < kPanel; ++n) sums[n] += even[n] + odd[n];
        }
      }
      for (int n = 0; n < kPanel; ++n) block.sums[(row * block.panels + panel) * kPanel + n] = sums[n];
    }
  }
}

void multiply_i8(const ProductBlock& block) {
  for (int row = 0; row < block.rows; ++row) {
    const float* scales = block.input_scales + row * block.scale_stride;
    for (int panel = 0; panel < block.panels; ++panel) {
      const uint8_t* w = reinterpret_cast<const uint8_t*>(block.weights + panel * block.panel_stride);
      const int8_t* x = static_cast<const int8_t*>(block.input) + row * block.row_stride;
      float sums[kPanel] = {};
      for (int64_t k = 0; k < block.depth; k += kGroup) {
        int32_t group[kPanel] = {};
        for (int64_t i = k; i < k + kGroup; i += 4, w += 4 * kPanel)
          for (int n = 0; n < kPanel; ++n)
            for (int j = 0; j < 4; ++j) group[n] += (w[4 * n + j] - kIntegerOffset) * x[i + j];
        for (int n = 0; n < kPanel; ++n)
          sums[n] = std::fma(static_cast<float>(group[n]), scales[k / kGroup], sums[n]);
      }
      for (int n = 0; n < kPanel; ++n) block.sums[(row * block.panels + panel) * kPanel + n] = sums[n];
    }
  }
}

void multiply_u4(const ProductBlock& block) {
  for (int row = 0; row < block.rows; ++row) {
    const int8_t* x = static_cast<const int8_t*>(block.input) + row * block.row_stride;
    for (int panel = 0; panel < block.panels; ++panel) {
      const char* at = block.weights + panel * block.panel_stride;
      float sums[kPanel] = {};
      for (int64_t k = 0; k < block.depth; k += block.group, at += group_bytes(block.group)) {
        const Bf16* scales = reinterpret_cast<const Bf16*>(at);
        const uint8_t* w = reinterpret_cast<const uint8_t*>(at + kNibbleHeader);
        int32_t group[kPanel] = {};
        for (int64_t i = k; i < k + block.group; i += 8, w += 4 * kPanel)
          for (int n = 0; n < kPanel; ++n)
            for (int j = 0; j < 4; ++j)
              group[n] += (w[4 * n + j] & 15) * x[i + j] + (w[4 * n + j] >> 4) * x[i + j + 4];
        const float x_scale = block.input_scales[row * block.scale_stride + k / kGroup];
        const float x_sum = block.input_sums[row * block.sum_stride + k / block.group];
        for (int n = 0; n < kPanel; ++n) {
          sums[n] = std::fma(static_cast<float>(group[n]), bf16_to_float(scales[n]) * x_scale, sums[n]);
          sums[n] = std::fma(bf16_to_float(scales[kPanel + n]), x_sum, sums[n]);
        }
      }
      for (int n = 0; n < kPanel; ++n) block.sums[(row * block.panels + panel) * kPanel + n] = sums[n];
    }
  }
}

}  // namespace

int one_panel_for(int rows) { return one_panel(rows); }

const MatrixKernels kPortableMatrixKernels = {
    .f32 = {.most_rows = 4, .row_step = 1, .panels_for = one_panel, .multiply = multiply_f32},
    .bf16 = {.most_rows = 4, .row_step = 1, .panels_for = one_panel, .multiply = multiply_bf16},
    .i8 = {.most_rows = 4, .row_step = 1, .panels_for = one_panel, .multiply = multiply_i8},
    .u4 = {.most_rows = 4, .row_step = 1, .panels_for = one_panel, .multiply = multiply_u4},
    .reads_bf16 = false,
    .enter = nullptr,
    .leave = nullptr,
};

}  // namespace shoal::ops::cpu
