// Choices of kernels, made once for each size of a product: a model asks for the same ones again and again,
// and making one takes the host as long as a good part of a launch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <vector>

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/matrix_layout.cuh"

namespace shoal::ops::cuda {

// What a choice is a function of.
struct ProductSize {
  MatrixShape matrix;
  int64_t rows = 0;  // of the result; more than 0
  Machine machine;

  // All of them: a new member does not compile before it stands here.
  std::array<int64_t, 9> values() const {
    const auto& [outputs, taps, depth, paired] = matrix;
    const auto& [multiprocessors, shared_bytes, wgmma, architecture] = machine;
    return {outputs, taps, depth, paired, rows, multiprocessors, shared_bytes, wgmma, architecture};
  }
};

// For one thread. A size takes the place of another one, so that memory does not grow.
template <typename Choice>
class Remembered {
 public:
  static constexpr size_t kPlaces = 512;  // a model has tens of matrices, each with a few numbers of rows

  // choose(): a function of `size` alone.
  template <typename Choose>
  Choice of(const ProductSize& size, Choose&& choose) {
    if (places_.empty()) places_.resize(kPlaces);
    const Key key = size.values();
    Place& place = places_[hash(key) % kPlaces];
    if (place.key != key) place = {key, choose()};
    return place.choice;
  }

 private:
  using Key = decltype(ProductSize().values());
  struct Place {
    Key key = {};  // no rows: nothing yet
    Choice choice;
  };
  static size_t hash(const Key& key) {
    uint64_t hash = 0;
    for (const int64_t value : key) hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15;
    return static_cast<size_t>(hash >> 32);
  }

  std::vector<Place> places_;
};

}  // namespace shoal::ops::cuda
