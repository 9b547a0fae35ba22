// For tests of walks over AMX tiles: the instructions as Intel's manual defines them, on any CPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/bf16.h"

namespace shoal::ops::cpu::testing {

// Eight tiles of 16 rows x 64 bytes.
struct ModelTiles {
  alignas(64) static inline char tiles[8][16][64];

  template <int T>
  static void zero() {
    std::memset(tiles[T], 0, sizeof tiles[T]);
  }
  template <int T>
  static void load(const void* from, int64_t stride) {
    for (int row = 0; row < 16; ++row)
      std::memcpy(tiles[T][row], static_cast<const char*>(from) + row * stride, 64);
  }
  template <int T>
  static void store(void* to, int64_t stride) {
    for (int row = 0; row < 16; ++row) std::memcpy(static_cast<char*>(to) + row * stride, tiles[T][row], 64);
  }
  static void prefetch(const char*) {}

  // Element of four bytes or two.
  template <typename T>
  static T element(int tile, int row, int column) {
    T value;
    std::memcpy(&value, &tiles[tile][row][column * static_cast<int>(sizeof(T))], sizeof(T));
    return value;
  }
  template <typename T>
  static void set(int tile, int row, int column, T value) {
    std::memcpy(&tiles[tile][row][column * 4], &value, 4);
  }

  // TDPBF16PS: pairs of k from row m of `Rows` and row k of `Weights`; the even and the odd elements of the
  // pairs are two chains from zero, their sum is added to the tile.
  struct Bf16Product {
    template <int Sums, int Rows, int Weights>
    static void multiply() {
      const auto x = [](int row, int k) { return bf16_to_float(element<Bf16>(Rows, row, k)); };
      const auto w = [](int row, int k) { return bf16_to_float(element<Bf16>(Weights, row, k)); };
      for (int m = 0; m < 16; ++m) {
        for (int n = 0; n < 16; ++n) {
          float even = 0, odd = 0;
          for (int pair = 0; pair < 16; ++pair) {
            even = std::fma(x(m, 2 * pair), w(pair, 2 * n), even);
            odd = std::fma(x(m, 2 * pair + 1), w(pair, 2 * n + 1), odd);
          }
          set(Sums, m, n, element<float>(Sums, m, n) + (even + odd));
        }
      }
    }
  };
  // TDPBSUD: signed bytes of `Rows` times unsigned bytes of `Weights`, four of them for each k of a tile.
  struct IntegerProduct {
    template <int Sums, int Rows, int Weights>
    static void multiply() {
      for (int m = 0; m < 16; ++m) {
        for (int n = 0; n < 16; ++n) {
          int32_t sum = element<int32_t>(Sums, m, n);
          for (int k = 0; k < 64; ++k)
            sum += element<int8_t>(Rows, m, k) * element<uint8_t>(Weights, k / 4, 4 * n + k % 4);
          set(Sums, m, n, sum);
        }
      }
    }
  };

  static void add_integers(const int32_t* products, int32_t offset, float scale, float* sums) {
    for (int n = 0; n < 16; ++n) sums[n] = std::fma(static_cast<float>(products[n] - offset), scale, sums[n]);
  }
  static void unpack(const char* from, char* low, char* high) {
    for (int i = 0; i < 64; ++i) {
      low[i] = static_cast<char>(from[i] & 15);
      high[i] = static_cast<char>(from[i] >> 4 & 15);
    }
  }
  class NibbleScales {
   public:
    explicit NibbleScales(const char* header) { std::memcpy(values_, header, sizeof values_); }

    void add(const int32_t* products, float scale, float sum, float* sums) const {
      for (int n = 0; n < 16; ++n) {
        const float factor = bf16_to_float(values_[n]) * scale;
        const float scaled = std::fma(static_cast<float>(products[n]), factor, sums[n]);
        sums[n] = std::fma(bf16_to_float(values_[16 + n]), sum, scaled);
      }
    }

   private:
    Bf16 values_[32];  // scales, then minima
  };
};

}  // namespace shoal::ops::cpu::testing
