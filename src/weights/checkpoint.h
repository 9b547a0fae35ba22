// A checkpoint on disk as an ordered list of named, checked, read-only tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/function_ref.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"
#include "weights/tensor_location.h"

namespace shoal::weights {

struct StoredTensor {
  std::string name;
  TensorView
      view;  // dense, aligned to its dtype, never to be written: it usually lies in a read-only mapping
};

// Owns the mapped files, and copies of the few tensors that cannot be viewed in place (misaligned or not
// dense in the file). Views are valid while the Checkpoint lives, also after it has been moved or renamed.
// Opening reads headers only: it costs milliseconds for gigabytes.
class Checkpoint {
 public:
  // By name: "*.safetensors.index.json" (shards beside it), "*.safetensors", otherwise a zip written by
  // torch.save ("*.pth", "*.pt"). Throws Error: not_found, io, corrupt_file, unsupported, too_large.
  //
  // Of an index, exactly the tensors it lists are taken, in its order; others that a shard may hold are
  // ignored, but a name that stands in two shards is refused.
  static Checkpoint open(const std::string& path);

  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  const std::string& path() const { return path_; }
  int64_t file_bytes() const;              // of all mapped files
  std::vector<std::string> files() const;  // their paths: those of an index's shards

  // In the order of the file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // nullptr when there is no such tensor.
  const TensorView* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // A tensor of that very shape, stored as F32, BF16 or F16. Throws Error: not_found, corrupt_file.
  TensorView get(std::string_view name, const Shape& expected) const;

  // Gives every tensor the name rule(name); an empty string drops it. Throws Error(corrupt_file) when two
  // would get the same name (the checkpoint is then unchanged).
  void rename(FunctionRef<std::string(std::string_view)> rule);

  // Gives the pages of the mapped files back to the system; views stay valid. Call after converting.
  void release_pages() const;

 private:
  explicit Checkpoint(std::string path) : path_(std::move(path)) {}
  void open_safetensors();
  void open_sharded();
  void open_torch();
  TensorView view_of(const MappedFile& file, const TensorLocation& location);
  void rebuild_index();

  std::string path_;
  std::vector<MappedFile> files_;
  std::vector<Tensor> copies_;
  int64_t copied_bytes_ = 0;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string_view, size_t> index_;  // keys point into tensors_
};

}  // namespace shoal::weights
