#include <algorithm>

#include "base/function_ref.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/ptx/mma.cuh"
#include "ops/cuda_backend.h"
#include "ops/cuda_devices.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

constexpr int64_t kMostReadBytes = int64_t{4} << 30;
constexpr int kReadThreads = 512, kReadBlocksPerMultiprocessor = 4, kReadAhead = 8;
constexpr int kRuns = 8;

// Ors everything together and writes the result only where it differs from the stored value, so that the
// compiler cannot remove the loads.
__global__ void __launch_bounds__(kReadThreads)
    read_words(const uint4* words, int64_t count, uint32_t* found) {
  wait_for_inputs();
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kReadThreads;
  uint32_t bits = 0;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kReadThreads + threadIdx.x;
  for (; i + (kReadAhead - 1) * threads < count; i += kReadAhead * threads) {
    uint4 ahead[kReadAhead];
#pragma unroll
    for (int k = 0; k < kReadAhead; ++k) ahead[k] = __ldcs(words + i + k * threads);
#pragma unroll
    for (int k = 0; k < kReadAhead; ++k) bits |= ahead[k].x | ahead[k].y | ahead[k].z | ahead[k].w;
  }
  for (; i < count; i += threads) {
    const uint4 word = __ldcs(words + i);
    bits |= word.x | word.y | word.z | word.w;
  }
  if (bits != 0) *found = bits;
}

constexpr int kProductThreads = 256, kProductBlocksPerMultiprocessor = 2;
constexpr int kChains = 8, kProducts = 4096;          // per warp: independent sums, products of each
constexpr double kFlopOfProduct = 2.0 * 16 * 8 * 16;  // of one mma of a warp

// Pairs of bf16 near 1 of either sign: as much to switch as real values have.
__device__ uint32_t random_pair(uint32_t seed) {
  const uint32_t hash = (seed + 1) * 2654435761u;
  return 0x3f803f80u | ((hash ^ hash >> 15) & 0x807f807fu);
}

__global__ void __launch_bounds__(kProductThreads) multiply_registers(float* found) {
  wait_for_inputs();
  uint32_t a[4], b[kChains][2];
  float sums[kChains][4] = {};
#pragma unroll
  for (uint32_t k = 0; k < 4; ++k) a[k] = random_pair(threadIdx.x * 4 + k);
#pragma unroll
  for (uint32_t k = 0; k < 2 * kChains; ++k) b[k / 2][k % 2] = random_pair(threadIdx.x * 32 + k + 8192);
#pragma unroll 1
  for (int i = 0; i < kProducts; ++i) {
#pragma unroll
    for (int k = 0; k < kChains; ++k)
      multiply_16<__nv_bfloat16>(sums[k], a[0], a[1], a[2], a[3], b[k][0], b[k][1]);
  }
  float total = 0;
#pragma unroll
  for (int k = 0; k < kChains; ++k) total += sums[k][0] + sums[k][1] + sums[k][2] + sums[k][3];
  if (total == -1.0f) *found = total;  // never, but the compiler cannot know
}

// Seconds of the fastest of several runs, on the device's clock.
double fastest(Context& ctx, FunctionRef<void()> work) {
  const StreamState& stream = state_of(ctx);
  cudaEvent_t events[2];
  EventHandle owners[2];
  for (int i = 0; i < 2; ++i) {
    check(cudaEventCreate(&events[i]), "event");
    owners[i].reset(events[i]);
  }
  float best_ms = 1e30f;
  for (int run = 0; run < kRuns; ++run) {
    check(cudaEventRecord(events[0], stream.stream()), "event");
    work();
    check(cudaEventRecord(events[1], stream.stream()), "event");
    check(cudaEventSynchronize(events[1]), "measuring the device");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events[0], events[1]), "event");
    best_ms = std::min(best_ms, ms);
  }
  return static_cast<double>(best_ms) * 1e-3;
}

}  // namespace

DeviceSpeed measure_device_speed(Context& ctx) {
  const int multiprocessors = state_of(ctx).multiprocessors();
  const int64_t bytes = std::min(kMostReadBytes, cuda_free_memory(ctx.device.index) / 4 / 16 * 16);
  const Tensor words(DType::u8, {bytes}, ctx.device), found(DType::f32, {4}, ctx.device);
  ops::fill_zero(ctx, words);
  const Grid read{.blocks = dim3(static_cast<unsigned>(kReadBlocksPerMultiprocessor * multiprocessors)),
                  .threads = dim3(kReadThreads)};
  const double read_s = fastest(ctx, [&] {
    launch(ctx, "read_words", read, read_words, static_cast<const uint4*>(words.view().data()),
           bytes / static_cast<int64_t>(sizeof(uint4)), static_cast<uint32_t*>(found.view().data()));
  });
  const int blocks = kProductBlocksPerMultiprocessor * multiprocessors;
  const Grid product{.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kProductThreads)};
  const double product_s = fastest(ctx, [&] {
    launch(ctx, "multiply_registers", product, multiply_registers, static_cast<float*>(found.view().data()));
  });
  const double products = double{kProducts} * kChains * blocks * (kProductThreads / 32);
  return {.read_bytes_per_s = static_cast<double>(bytes) / read_s,
          .bf16_flop_per_s = kFlopOfProduct * products / product_s};
}

}  // namespace shoal::ops::cuda
