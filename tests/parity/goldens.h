// The tensors of a goldens file, read so that every error names the file and the golden.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"
#include "weights/checkpoint.h"

namespace shoal::parity {

class Goldens {
 public:
  // A safetensors file. Throws Error as Checkpoint::open.
  explicit Goldens(const std::string& path);

  const std::string& path() const { return file_.path(); }
  bool has(const std::string& name) const { return file_.contains(name); }
  std::vector<std::string> names() const;

  // The readers throw Error(not_found), and Error(corrupt_file) where the golden has another dtype or rank,
  // or no elements.
  TensorView get(const std::string& name) const;
  TensorView get(const std::string& name, DType dtype, int rank) const;
  // Stored as f32, bf16 or f16.
  std::vector<float> floats(const std::string& name) const;
  // Stored as i32 or i64 of 32 bits.
  std::vector<int32_t> integers(const std::string& name) const;
  // Stored i32 [height, columns], columns >= 1; returned [columns, height].
  std::vector<int32_t> columns(const std::string& name, int64_t height) const;

  // Throws Error(corrupt_file): "FILE: golden NAME: WHAT".
  [[noreturn]] void refuse(const std::string& name, const std::string& what) const;

 private:
  weights::Checkpoint file_;
};

// To be small, a golden may hold fewer rows (or samples) than were computed: evenly spaced ones, the first
// and the last included; a single one is the last. Which ones, of `all`, follows from how many are kept, 1 ..
// all.
std::vector<size_t> kept_rows(size_t all, size_t kept);
// Those rows of values [all, width].
std::vector<float> keep_rows(std::span<const float> values, size_t width, size_t kept);

// "FILE: NAME" of every golden in the files opened so far that nothing has read, sorted.
std::vector<std::string> unread_goldens();

}  // namespace shoal::parity
