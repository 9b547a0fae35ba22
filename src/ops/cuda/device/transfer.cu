#include <algorithm>
#include <cstring>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

// Below this a copy into page-locked memory and a memcpy beat a copy into pageable memory.
constexpr int64_t kSmallDownload = 64 << 10;

constexpr int kZeroThreads = 256;
constexpr int64_t kZeroBlocksPerMultiprocessor = 8;
constexpr int64_t kWord = sizeof(uint4);

// Blocks walk the aligned words together; the bytes before and after them belong to the first threads.
__global__ void __launch_bounds__(kZeroThreads) zero_bytes(char* y, int64_t bytes) {
  wait_for_inputs();
  const int64_t misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) % kWord);
  const int64_t head = min(bytes, (kWord - misaligned) % kWord);
  const int64_t words = (bytes - head) / kWord;
  const int64_t tail = head + words * kWord;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kZeroThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kZeroThreads;

  uint4* const aligned = reinterpret_cast<uint4*>(y + head);
  for (int64_t i = thread; i < words; i += threads) aligned[i] = make_uint4(0, 0, 0, 0);
  if (thread < head) y[thread] = 0;
  if (thread < bytes - tail) y[tail + thread] = 0;
}

}  // namespace

void upload(Context& ctx, const void* from, TensorView to) {
  StreamState& stream = state_of(ctx);
  for (int64_t begin = 0; begin < to.bytes(); begin += StreamState::kStageBytes) {
    const auto count = static_cast<size_t>(std::min(StreamState::kStageBytes, to.bytes() - begin));
    void* const staged = stream.stage(static_cast<int64_t>(count));
    std::memcpy(staged, static_cast<const char*>(from) + begin, count);
    check(cudaMemcpyAsync(static_cast<char*>(to.data()) + begin, staged, count, cudaMemcpyHostToDevice,
                          stream.stream()),
          "upload");
  }
}

void download(Context& ctx, TensorView from, void* to) {
  StreamState& stream = state_of(ctx);
  const auto bytes = static_cast<size_t>(from.bytes());
  const bool small = from.bytes() <= kSmallDownload;
  void* const landing = small ? stream.stage(from.bytes()) : to;
  check(cudaMemcpyAsync(landing, from.data(), bytes, cudaMemcpyDeviceToHost, stream.stream()), "download");
  stream.synchronize();
  if (small) std::memcpy(to, landing, bytes);
}

Mark mark(Context& ctx) { return state_of(ctx).mark(); }

// By a stream of its own.
void download(Context& ctx, const Mark& mark, TensorView from, void* to) {
  cudaStream_t const copies = state_of(ctx).copies_after(static_cast<cudaEvent_t>(mark.get()));
  check(cudaMemcpyAsync(to, from.data(), static_cast<size_t>(from.bytes()), cudaMemcpyDeviceToHost, copies),
        "download");
  check(cudaStreamSynchronize(copies), "waiting for a download");
}

void copy_in_order(Context& ctx, TensorView from, TensorView to) {
  const bool comes = to.device().kind == DeviceKind::cpu;
  check(cudaMemcpyAsync(to.data(), from.data(), static_cast<size_t>(from.bytes()),
                        comes ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, state_of(ctx).stream()),
        "step block");
}

void fill_zero(Context& ctx, TensorView y) {
  const int64_t limit = kZeroBlocksPerMultiprocessor * state_of(ctx).multiprocessors();
  const int64_t blocks = std::min(limit, blocks_for(y.bytes(), kZeroThreads * kWord));
  launch(ctx, "fill_zero", {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kZeroThreads)},
         zero_bytes, static_cast<char*>(y.data()), y.bytes());
}

void synchronize(Context& ctx) { state_of(ctx).synchronize(); }

}  // namespace shoal::ops::cuda
