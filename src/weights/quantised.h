// A model folder that keeps its layers in 8 or 4 bits, or its codec in 8 (docs/QUANTISATION.md, The file):
// what config.json says of it, and what its checkpoint must then hold.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/thread_team.h"
#include "weights/checkpoint.h"
#include "weights/inventory.h"

namespace shoal::weights {

// "quantization_config" of config.json.
struct Quantisation {
  DType precision = DType::bf16;  // f32 or bf16: what the precision "auto" means for the model
  // Of the language model's layers: i8, f8 or u4; absent: they are as they were.
  std::optional<DType> weights = DType::i8;
  int64_t group = 0;   // of u4: inputs that share a scale and a minimum, 32, 64 or 128
  bool codec = false;  // the codec's matrices and kernels are in i8

  // Absent without such a member. Throws Error naming what is wrong with it: unsupported, or as Json does.
  static std::optional<Quantisation> parse(const Json& config);
  static std::optional<Quantisation> read(const std::string& config_json_path);
  // The text of an object with members, none of them this one, with this one. Throws Error(corrupt_file).
  std::string added_to(std::string_view config_json) const;
};

// "layers.0.attention.wo.weight" -> "layers.0.attention.wo.scales", "layers.0.attention.wo.minima"
std::string scales_name(std::string_view matrix);
std::string minima_name(std::string_view matrix);

// i8 [outputs, depth], or of a kernel's shape, -127 to 127; and what those of an output count in: f32
// [outputs], finite, at least 0, no weight over 65,504. Or f8 instead of i8, without NaNs. Or of 4 bits: u8
// [outputs, depth / 2], two a byte, the first in the low bits; and bf16 [outputs, groups], finite, scales at
// least 0: an integer is that times its group's scale, plus the group's minimum.
struct StoredIntegers {
  TensorView integers, scales, minima;
};
// dtype: i8 or f8. Checked; the integers (numbers of f8) only by a team. outputs_axis: that of `shape` which
// counts the outputs. Throws Error naming the tensor: not_found, corrupt_file.
StoredIntegers find_integers(const Checkpoint& checkpoint, const std::string& matrix, const Shape& shape,
                             ThreadTeam* team, DType dtype = DType::i8, int outputs_axis = 0);
// shape: [outputs, depth]. group: that of the file, 0: any. Throws as find_integers.
StoredIntegers find_nibbles(const Checkpoint& checkpoint, const std::string& matrix, const Shape& shape,
                            int64_t group);

// matrices: those that are in 8 or 4 bits if there is a `quantisation`. Missing ones are left to who reads
// them. Throws Error naming the first tensor that is not as it should be: not_found, corrupt_file.
void check_quantised(const Checkpoint& checkpoint, const std::optional<Quantisation>& quantisation,
                     std::span<const RequiredTensor> matrices);
// The same of a codec. required: all that it reads; in_8_bits: what has an axis of outputs is integers.
void check_quantised_codec(const Checkpoint& checkpoint, bool in_8_bits,
                           std::span<const RequiredTensor> required);

}  // namespace shoal::weights
