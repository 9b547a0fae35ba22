// Where a packed weight lies: panels of 16 outputs, each streamed from front to back by the kernels.
//   f32   [panels][taps][depth][16]        depth padded to a multiple of 2
//   bf16  [panels][taps][depth / 2][16][2] depth padded to a multiple of 32: 64 bytes hold a pair of k for 16
//                                          outputs, a row of an AMX B tile
//   i8    [panels][depth / 4][16][4]       one tap, depth padded to a multiple of 128, a group of inputs that
//                                          shares a scale; weights as unsigned bytes, w + 128
//   u4    [panels][groups][64 + 8 * group bytes]  one tap, depth padded to a multiple of 128. Of a group of
//         inputs: scale of 16 outputs, minimum of 16 outputs, bf16; then [group / 8][16][4] bytes, byte j of
//         which holds the integers of the inputs j (low bits) and j + 4 (high bits) of eight
// Padding (outputs and depth) is zero. A SwiGLU pair alternates panels: gate, up, gate, up.
#pragma once

#include <cstdint>

#include "ops/cpu/gemm/matrix_kernels.h"
#include "tensor/formats.h"

namespace shoal::ops::cpu {

constexpr int64_t kPanel = 16;  // outputs per panel
constexpr int kIntegerOffset = 128;

// The extents that the kernels see.
struct PanelLayout {
  // Few channels would be mostly padding, so their taps are folded into the depth (k = tap * depth + channel)
  // and the input is gathered to match.
  bool folded = false;
  int64_t taps = 1;
  int64_t depth = 0;         // after folding and padding
  int64_t panel_stride = 0;  // bytes
};

// Of one panel.
inline int64_t group_bytes(int64_t group) { return kNibbleHeader + group * kPanel / 2; }

inline bool has_integers(MatrixFormat format) {
  return format.weights == DType::i8 || format.weights == DType::u4;
}

inline PanelLayout panel_layout(MatrixFormat format, int64_t taps, int64_t depth) {
  const bool wide = format.weights == DType::f32;
  const int64_t multiple = has_integers(format) ? kGroup : wide ? 2 : 32;
  PanelLayout layout;
  layout.folded = taps > 1 && (wide ? depth < 16 : depth < 64 && depth % 32 != 0);
  layout.taps = layout.folded ? 1 : taps;
  layout.depth = ((layout.folded ? taps * depth : depth) + multiple - 1) / multiple * multiple;
  layout.panel_stride = format.weights == DType::u4
                            ? layout.depth / format.group * group_bytes(format.group)
                            : layout.taps * layout.depth * kPanel * size_of(format.weights);
  return layout;
}

inline int64_t panel_count(int64_t outputs) { return (outputs + kPanel - 1) / kPanel; }

}  // namespace shoal::ops::cpu
