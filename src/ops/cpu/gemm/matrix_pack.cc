#include <algorithm>
#include <array>
#include <cstring>

#include "base/f16.h"
#include "ops/cpu/gemm/integers.h"
#include "ops/cpu/gemm/matrix_layout.h"
#include "ops/cpu/gemm/nibbles.h"
#include "ops/weight_source.h"

namespace shoal::ops {
namespace {

constexpr int64_t kChunk = 32;  // depth of one block: two cache lines of f32 per output

// A tile of weights on its way into a panel: 16 outputs x 32 k.
using Chunk = std::array<std::array<float, kChunk>, cpu::kPanel>;

// The positions of a chunk's elements, relative to the start of their output; the same for all outputs.
struct ChunkOffsets {
  std::array<int64_t, kChunk> at;
  int64_t count;
  bool consecutive;
};

template <typename T, typename Convert>
void gather_row(const T* data, const ChunkOffsets& offsets, float* out, Convert convert) {
  if (offsets.consecutive) {
    data += offsets.at[0];
    for (int64_t i = 0; i < offsets.count; ++i) out[i] = convert(data[i]);
  } else {
    for (int64_t i = 0; i < offsets.count; ++i) out[i] = convert(data[offsets.at[static_cast<size_t>(i)]]);
  }
}

void gather_row(const WeightSource& source, int64_t start, const ChunkOffsets& offsets, float* out) {
  if (source.dtype == DType::f32) {
    gather_row(static_cast<const float*>(source.data) + start, offsets, out, [](float v) { return v; });
    return;
  }
  const uint16_t* data = static_cast<const uint16_t*>(source.data) + start;
  if (source.dtype == DType::bf16)
    gather_row(data, offsets, out, [](uint16_t v) { return bf16_to_float(v); });
  else
    gather_row(data, offsets, out, [](uint16_t v) { return f16_to_float(v); });
}

// Matrix units read bf16 denormals as zero; stored as zero they are zero on every instruction set.
uint32_t panel_bf16(float value) {
  const Bf16 bits = float_to_bf16(value);
  return (bits & 0x7f80u) == 0 ? bits & 0x8000u : bits;
}

// Each weight times its output's factor, as an integer.
void store_integers(const Chunk& chunk, const std::array<float, cpu::kPanel>& factors, char* out) {
  uint8_t* to = reinterpret_cast<uint8_t*>(out);
  for (int64_t k = 0; k < kChunk; k += 4)
    for (size_t n = 0; n < cpu::kPanel; ++n)
      for (int64_t j = 0; j < 4; ++j)
        *to++ = static_cast<uint8_t>(cpu::nearest_int8(chunk[n][static_cast<size_t>(k + j)] * factors[n]) +
                                     cpu::kIntegerOffset);
}

void store_chunk(const Chunk& chunk, int64_t depth, DType dtype, char* out) {
  if (dtype == DType::f32) {
    float* to = reinterpret_cast<float*>(out);
    for (int64_t k = 0; k < depth; ++k)
      for (size_t n = 0; n < cpu::kPanel; ++n) *to++ = chunk[n][static_cast<size_t>(k)];
    return;
  }
  std::array<std::array<uint32_t, kChunk / 2>, cpu::kPanel> pairs;
  for (size_t n = 0; n < cpu::kPanel; ++n)
    for (size_t p = 0; p < kChunk / 2; ++p)
      pairs[n][p] = panel_bf16(chunk[n][2 * p]) | panel_bf16(chunk[n][2 * p + 1]) << 16;
  uint32_t* to = reinterpret_cast<uint32_t*>(out);
  for (size_t p = 0; p < kChunk / 2; ++p)
    for (size_t n = 0; n < cpu::kPanel; ++n) *to++ = pairs[n][p];
}

// A group of 4-bit weights of 16 outputs on its way into a panel.
struct NibbleGroup {
  std::array<cpu::NibbleScale, cpu::kPanel> scales{};
  std::array<std::array<uint8_t, cpu::kMostInGroup>, cpu::kPanel> integers{};

  // As matrix_layout.h has it.
  void store(int64_t group, char* out) const {
    Bf16 header[2][cpu::kPanel];
    for (size_t n = 0; n < cpu::kPanel; ++n) header[0][n] = scales[n].scale, header[1][n] = scales[n].minimum;
    std::memcpy(out, header, sizeof header);
    static_assert(sizeof header == cpu::kNibbleHeader);
    uint8_t* to = reinterpret_cast<uint8_t*>(out) + sizeof header;
    for (size_t k = 0; k < static_cast<size_t>(group); k += 8)
      for (const auto& of_output : integers)
        for (size_t j = k; j < k + 4; ++j) *to++ = static_cast<uint8_t>(of_output[j] | of_output[j + 4] << 4);
  }
};

class PanelPacker {
 public:
  PanelPacker(const PackRequest& request, cpu::PanelLayout layout) : request_(request), layout_(layout) {}

  // As integers: the weights of an output share a scale.   scales: [16].
  void pack_integers(int64_t panel, char* out, float* scales) const {
    const Outputs outputs = outputs_of(panel);
    if (request_.parts[0].scales) return copy_integers(outputs, out, scales);
    std::array<cpu::IntegerScale, cpu::kPanel> found;
    for (int64_t k = 0; k < layout_.depth; k += kChunk) {
      const Chunk chunk = gather(outputs, 0, k);
      for (size_t n = 0; n < cpu::kPanel; ++n) found[n].add(chunk[n].data(), kChunk);
    }
    std::array<float, cpu::kPanel> factors{};
    for (size_t n = 0; n < cpu::kPanel; ++n) {
      scales[n] = found[n].scale();
      factors[n] = found[n].factor();
    }
    for (int64_t k = 0; k < layout_.depth; k += kChunk)
      store_integers(gather(outputs, 0, k), factors, out + k * cpu::kPanel);
  }

  // As integers of 4 bits with their scales and minima.
  void pack_nibbles(int64_t panel, char* out) const {
    const Outputs outputs = outputs_of(panel);
    const int64_t bytes = cpu::group_bytes(request_.group);
    for (int64_t k = 0; k < layout_.depth; k += request_.group, out += bytes) {
      NibbleGroup group;
      if (k < request_.depth) {
        if (request_.parts[0].group_scales)
          copy_nibbles(outputs, k, group);
        else
          find_nibbles(outputs, k, group);
      }
      group.store(request_.group, out);
    }
  }

  void pack_panel(int64_t panel, char* out) const {
    const Outputs outputs = outputs_of(panel);
    // Taps inside chunks: where the taps of a convolution are neighbours in memory, each cache line is
    // fetched once.
    for (int64_t k = 0; k < layout_.depth; k += kChunk) {
      const int64_t padded = std::min(kChunk, layout_.depth - k);
      for (int64_t tap = 0; tap < layout_.taps; ++tap) {
        const Chunk chunk = gather(outputs, tap, k);
        store_chunk(chunk, padded, request_.dtype,
                    out + (tap * layout_.depth + k) * layout_.panel_stride / (layout_.taps * layout_.depth));
      }
    }
  }

 private:
  struct Output {
    const WeightSource* source = nullptr;  // null: padding
    int64_t offset = 0;
    float scale = 0;    // of integers of 8 bits
    int64_t index = 0;  // in its source
  };
  using Outputs = std::array<Output, cpu::kPanel>;

  Outputs outputs_of(int64_t panel) const {
    Outputs outputs;
    if (request_.paired) {
      const WeightSource& source = request_.parts[static_cast<size_t>(panel % 2)];
      fill(outputs, 0, source, panel / 2 * cpu::kPanel);
      return outputs;
    }
    int64_t skipped = 0;  // outputs of the parts before
    for (const WeightSource& source : request_.parts) {
      fill(outputs, skipped, source, panel * cpu::kPanel);
      skipped += source.outputs;
    }
    return outputs;
  }

  // Those of the outputs first .. first + 15 that are in a source which begins at output `skipped`.
  static void fill(Outputs& outputs, int64_t skipped, const WeightSource& source, int64_t first) {
    const int64_t begin = std::max(first, skipped);
    const int64_t end = std::min(first + cpu::kPanel, skipped + source.outputs);
    for (int64_t n = begin; n < end; ++n)
      outputs[static_cast<size_t>(n - first)] = {&source, source.output_offset(n - skipped),
                                                 source.scales ? source.scales[n - skipped] : 0, n - skipped};
  }

  // Integers that are stored as such, four at a time; their rows are dense.
  void copy_integers(const Outputs& outputs, char* out, float* scales) const {
    for (size_t n = 0; n < cpu::kPanel; ++n) scales[n] = outputs[n].scale;
    for (int64_t k = 0; k < layout_.depth; k += 4) {
      const auto count = static_cast<size_t>(std::clamp<int64_t>(request_.depth - k, 0, 4));
      for (const Output& output : outputs) {
        uint32_t four = 0;
        if (output.source && count == 4)
          std::memcpy(&four, static_cast<const char*>(output.source->data) + output.offset + k, 4);
        else if (output.source && count > 0)
          std::memcpy(&four, static_cast<const char*>(output.source->data) + output.offset + k, count);
        four ^= 0x01010101u * cpu::kIntegerOffset;  // adds it to each byte
        std::memcpy(out, &four, 4);
        out += 4;
      }
    }
  }

  int64_t inputs_from(int64_t k) const { return std::min(request_.group, request_.depth - k); }

  void find_nibbles(const Outputs& outputs, int64_t k, NibbleGroup& group) const {
    std::array<std::array<float, cpu::kMostInGroup>, cpu::kPanel> weights;
    for (int64_t i = 0; i < request_.group; i += kChunk) {
      const Chunk chunk = gather(outputs, 0, k + i);
      for (size_t n = 0; n < cpu::kPanel; ++n) std::ranges::copy(chunk[n], weights[n].begin() + i);
    }
    const auto count = static_cast<size_t>(inputs_from(k));
    for (size_t n = 0; n < cpu::kPanel; ++n) {
      if (!outputs[n].source) continue;
      group.scales[n] = cpu::find_nibble_scale(weights[n].data(), static_cast<int>(count));
      const cpu::NibbleRounding rounding(group.scales[n]);
      for (size_t i = 0; i < count; ++i) group.integers[n][i] = rounding.nibble(weights[n][i]);
    }
  }

  // Those that are stored as such; the rows of bytes are dense.
  void copy_nibbles(const Outputs& outputs, int64_t k, NibbleGroup& group) const {
    for (size_t n = 0; n < cpu::kPanel; ++n) {
      const Output& output = outputs[n];
      if (!output.source) continue;
      const int64_t at = output.index * output.source->groups + k / request_.group;
      group.scales[n] = {output.source->group_scales[at], output.source->minima[at]};
      const auto* bytes = static_cast<const uint8_t*>(output.source->data) + output.offset + k / 2;
      for (int64_t i = 0; i < inputs_from(k); ++i)
        group.integers[n][static_cast<size_t>(i)] = bytes[i / 2] >> (i % 2 * 4) & 15;
    }
  }

  Chunk gather(const Outputs& outputs, int64_t tap, int64_t k) const {
    Chunk chunk{};
    const ChunkOffsets offsets = offsets_of(tap, k);
    if (offsets.count <= 0) return chunk;
    for (size_t n = 0; n < cpu::kPanel; ++n)
      if (outputs[n].source) gather_row(*outputs[n].source, outputs[n].offset, offsets, chunk[n].data());
    return chunk;
  }

  ChunkOffsets offsets_of(int64_t tap, int64_t k) const {
    const WeightSource& source = request_.parts[0];  // parts differ in their outputs only
    const int64_t depth = layout_.folded ? request_.taps * request_.depth : request_.depth;
    ChunkOffsets offsets{.at = {}, .count = std::min(kChunk, depth - k), .consecutive = true};
    for (int64_t i = 0; i < offsets.count; ++i) {
      const int64_t at = k + i;
      const int64_t offset =
          layout_.folded ? at / request_.depth * source.tap_stride + source.depth_offset(at % request_.depth)
                         : tap * source.tap_stride + source.depth_offset(at);
      offsets.at[static_cast<size_t>(i)] = offset;
      offsets.consecutive = offsets.consecutive && offset == offsets.at[0] + i;
    }
    return offsets;
  }

  const PackRequest& request_;
  cpu::PanelLayout layout_;
};

}  // namespace

float load_float(const void* data, DType dtype, int64_t i) {
  if (dtype == DType::f32) return static_cast<const float*>(data)[i];
  const uint16_t bits = static_cast<const uint16_t*>(data)[i];
  return dtype == DType::bf16 ? bf16_to_float(bits) : f16_to_float(bits);
}

namespace cpu {

Shape packed_shape(const PackRequest& request) {
  const PanelLayout layout = panel_layout(request.format(), request.taps, request.depth);
  const int64_t panels = panel_count(request.outputs) * (request.paired ? 2 : 1);
  if (request.dtype == DType::u4) return {panels, layout.panel_stride};
  return {panels, layout.taps, layout.depth, kPanel};
}

DType packed_dtype(const PackRequest& request) {
  return request.dtype == DType::u4 ? DType::u8 : request.dtype;
}

Tensor pack(Context& ctx, const PackRequest& request, TensorView scales) {
  const PanelLayout layout = panel_layout(request.format(), request.taps, request.depth);
  Tensor storage(packed_dtype(request), packed_shape(request), ctx.device);
  const int64_t panels = storage.dim(0);
  char* out = static_cast<char*>(storage.view().data());
  const PanelPacker packer(request, layout);
  ctx.team->parallel_for(panels, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t panel = begin; panel < end; ++panel) {
      char* const to = out + panel * layout.panel_stride;
      if (request.dtype == DType::i8)
        packer.pack_integers(panel, to, scales.row<float>(panel));
      else if (request.dtype == DType::u4)
        packer.pack_nibbles(panel, to);
      else
        packer.pack_panel(panel, to);
    }
  });
  return storage;
}

}  // namespace cpu
}  // namespace shoal::ops
