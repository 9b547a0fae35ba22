// A codec's checkpoint with its matrices and kernels in 8 bits, made of one in floats.
#pragma once

#include <string>
#include <vector>

#include "base/thread_team.h"
#include "models/dac/config.h"
#include "runtime/families/language/quantisation_file.h"
#include "weights/checkpoint.h"
#include "weights/inventory.h"
#include "weights/safetensors_layout.h"

namespace shoal::runtime {

// What the codec reads, and nothing else that the checkpoint may hold. Kernels are folded (weight norm)
// before they are rounded.
class QuantisedCodec {
 public:
  // from: names normalised; must outlive it. Throws Error(corrupt_file) for tensors that are missing, have
  // another shape, or are integers already.
  QuantisedCodec(const weights::Checkpoint& from, const dac::Config& config);

  int64_t file_bytes() const { return layout_.file_bytes; }
  int64_t bytes_to_read() const { return bytes_to_read_; }
  // What rounding changed, by part of the codec. Throws Error as writing does, or naming the tensor.
  std::vector<QuantisedLayer> write(const std::string& path, ThreadTeam& team,
                                    QuantisingProgress& progress) const;

 private:
  // A tensor to round, and where it and its scales lie among the file's.
  struct Rounded {
    weights::RequiredTensor tensor;
    int64_t bytes = 0;  // in `from`
    size_t at = 0;      // of the integers; the scales follow
  };
  void add_rounded(const weights::RequiredTensor& tensor, int64_t bytes);

  const weights::Checkpoint& from_;
  std::vector<Rounded> rounded_;
  std::vector<weights::NamedShape> shapes_;  // integers and scales in turn; then what is kept
  size_t kept_from_ = 0;
  int64_t bytes_to_read_ = 0;
  weights::SafetensorsLayout layout_;
};

}  // namespace shoal::runtime
