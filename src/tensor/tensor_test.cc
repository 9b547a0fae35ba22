#include "tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tensor/workspace.h"

namespace shoal {
namespace {

TEST(TensorView, SlicesAndColumnsKeepStrides) {
  Tensor t(DType::f32, {4, 6});
  for (int i = 0; i < 24; ++i) t.as<float>()[i] = static_cast<float>(i);
  const TensorView part = t.view().slice(1, 3).columns(2, 5);
  EXPECT_EQ(part.shape(), (Shape{2, 3}));
  EXPECT_EQ(part.row<float>(1)[0], 14.0f);
  EXPECT_FALSE(part.is_contiguous());
  EXPECT_TRUE(t.view().slice(1, 3).is_contiguous());
  EXPECT_THROW(part.reshape({6}), Error);
  EXPECT_THROW(t.view().slice(2, 5), Error);
}

TEST(TensorView, WrongTypeIsAnError) {
  const Tensor t(DType::bf16, {3});
  EXPECT_THROW(t.as<float>(), Error);
  EXPECT_NO_THROW(t.as<Bf16>());
}

TEST(Tensor, WithoutMemoryIsCountedAndNotEmpty) {
  const Tensor tensor = Tensor::sized(DType::bf16, {int64_t{1} << 30, 1 << 10}, {DeviceKind::cuda, 0});
  EXPECT_EQ(tensor.bytes(), int64_t{2} << 40);
  EXPECT_FALSE(tensor.empty());
  const TensorView part = tensor.view().slice(5, 9).columns(3, 7);
  EXPECT_TRUE(part.is_sized_only());
  EXPECT_EQ(part.shape(), (Shape{4, 4}));
  EXPECT_FALSE(TensorView().is_sized_only());
  EXPECT_EQ(Tensor().bytes(), 0);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(round_to_bf16(1.0f), 1.0f);
  EXPECT_EQ(float_to_bf16(1.00390625f), 0x3f80);  // halfway between 0x3f80 and 0x3f81: even
  EXPECT_EQ(float_to_bf16(1.01171875f), 0x3f82);  // halfway between 0x3f81 and 0x3f82: even
  EXPECT_EQ(float_to_bf16(1.00390637f), 0x3f81);  // just above halfway
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Tensor, CopiesBetweenDenseTensorsOfOneShape) {
  Tensor from(DType::i32, {2, 3}), to(DType::i32, {2, 3});
  for (int i = 0; i < 6; ++i) from.as<int32_t>()[i] = i * i;
  copy(from, to);
  EXPECT_EQ(to.as<int32_t>()[5], 25);
  copy(from.view().slice(0, 1), to.view().slice(1, 2));
  EXPECT_EQ(to.as<int32_t>()[5], 4);
  EXPECT_THROW(copy(from, Tensor(DType::i32, {3, 2})), Error);
  EXPECT_THROW(copy(from, Tensor(DType::f32, {2, 3})), Error);
  EXPECT_THROW(copy(from.view().columns(0, 2), Tensor(DType::i32, {2, 2})), Error);
}

// Also in a build with CUDA: no machine has so many.
TEST(Tensor, ATensorOnAMissingDeviceIsUnavailable) {
  const Device missing{DeviceKind::cuda, 1000};
  for (const auto& make : std::initializer_list<std::function<void()>>{
           [&] { Tensor(DType::f32, {3}, missing); }, [&] { Tensor::zeros(DType::f32, {3}, missing); },
           [&] { Buffer::page_locked(3, missing); }, [&] { Workspace(missing).alloc(DType::f32, {3}); }}) {
    try {
      make();
      ADD_FAILURE() << "made";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unavailable) << error.what();
    }
  }
}

TEST(Buffer, PageLockedForTheCpuIsPlainMemory) {
  Buffer buffer = Buffer::page_locked(100, Device{});
  EXPECT_EQ(buffer.bytes(), 100);
  EXPECT_EQ(buffer.device(), Device{});
  const Buffer moved = std::move(buffer);
  std::memset(moved.data(), 1, 100);
}

TEST(Workspace, APageLockedWorkspaceIsHostMemory) {
  Workspace ws = Workspace::page_locked(Device{}, int64_t{1} << 20);
  EXPECT_TRUE(ws.empty());
  {
    const Workspace::Scope scope(ws);
    EXPECT_FALSE(ws.empty());
    EXPECT_EQ(ws.alloc(DType::i32, {7}).device(), Device{});
    EXPECT_THROW(ws.alloc(DType::i32, {int64_t{1} << 20}), Error);
  }
  EXPECT_TRUE(ws.empty());
}

TEST(Workspace, CountsWhatARealOneWouldGive) {
  Workspace real, counting = Workspace::counting({});
  real.reserve(1 << 20);
  for (Workspace* ws : {&real, &counting}) {
    const Workspace::Scope outer(*ws);
    ws->alloc(DType::f32, {100});
    {
      const Workspace::Scope inner(*ws);
      const std::span<int32_t> array = ws->array<int32_t>(1000);
      std::ranges::fill(array, 7);
      ws->alloc(DType::u8, {3});
    }
    EXPECT_EQ(ws->alloc(DType::f32, {1}).empty(), false);
    EXPECT_EQ(ws->array<char>(0).size(), 0u);
  }
  EXPECT_EQ(real.peak_bytes(), 448 + 4032 + 64);
  EXPECT_EQ(counting.peak_bytes(), real.peak_bytes());
  EXPECT_TRUE(counting.counts_only() && counting.empty());
  Workspace on_gpu = Workspace::counting({DeviceKind::cuda, 0});
  EXPECT_TRUE(on_gpu.alloc(DType::f32, {1 << 20, 1 << 20}).is_sized_only());
  EXPECT_THROW(on_gpu.array<float>(1), Error);
}

TEST(Workspace, SteadyStateAllocatesNothing) {
  Workspace ws;
  const auto step = [&] {
    const Workspace::Scope outer(ws);
    const TensorView a = ws.alloc(DType::f32, {1000, 300});
    {
      const Workspace::Scope inner(ws);
      ws.alloc(DType::f32, {5000, 300});
    }
    const TensorView b = ws.alloc(DType::bf16, {777, 3});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % 64, 0u);
    EXPECT_NE(a.data(), b.data());
  };
  step();
  step();
  const int64_t settled = ws.growths();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(ws.growths(), settled);
}

TEST(Workspace, AReservedWorkspaceNeverGrows) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  Workspace ws({}, 8 * kMiB);
  {
    const Workspace::Scope scope(ws);
    ws.alloc(DType::u8, {kMiB});
    ws.alloc(DType::u8, {kMiB});
    EXPECT_THROW(ws.reserve(4 * kMiB), Error);  // in use
  }
  ws.reserve(kMiB);  // of two blocks one, with what both had
  EXPECT_EQ(ws.capacity_bytes(), 2 * kMiB);
  ws.reserve(4 * kMiB);
  EXPECT_EQ(ws.capacity_bytes(), 4 * kMiB);
  const int64_t growths = ws.growths();
  ws.reserve(3 * kMiB);
  {
    const Workspace::Scope scope(ws);
    ws.alloc(DType::u8, {4 * kMiB});
  }
  EXPECT_EQ(ws.growths(), growths);
  EXPECT_THROW(ws.reserve(9 * kMiB), Error);
  EXPECT_EQ(ws.capacity_bytes(), 4 * kMiB);
}

TEST(Workspace, ExceedingTheLimitIsATypedError) {
  Workspace ws({}, 1 << 20);
  const Workspace::Scope scope(ws);
  try {
    ws.alloc(DType::f32, {1 << 20});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
  }
}

TEST(Workspace, MergesWithinItsLimit) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  Workspace ws({}, 3 * kMiB);
  {
    const Workspace::Scope scope(ws);
    ws.alloc(DType::f32, {kMiB / 4});
    ws.alloc(DType::f32, {kMiB / 2});
    EXPECT_THROW(ws.alloc(DType::f32, {16}), Error);
  }
  const Workspace::Scope scope(ws);
  EXPECT_EQ(ws.capacity_bytes(), 3 * kMiB);
  const int64_t merged = ws.growths();
  ws.alloc(DType::f32, {3 * kMiB / 4});  // one piece, which neither block had room for
  EXPECT_EQ(ws.growths(), merged);
  EXPECT_THROW(ws.alloc(DType::f32, {16}), Error);
}

void take_two_blocks(Workspace& ws) {
  const Workspace::Scope scope(ws);
  ws.alloc(DType::f32, {int64_t{16} << 20});
  ws.alloc(DType::f32, {int64_t{17} << 20});
}

// Bytes of address space that this process uses.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Exits with 0 when the arena lives through a merge for which the system had no memory.
[[noreturn]] void merge_without_memory() {
  Workspace ws;
  take_two_blocks(ws);
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = address_space() - (rlim_t{64} << 20);
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
  try {
    const Workspace::Scope scope(ws);
    _exit(3);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::resource_exhausted) _exit(4);
  }
  limit.rlim_cur = before;
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(5);
  take_two_blocks(ws);
  const int64_t apart = ws.growths();
  const Workspace::Scope scope(ws);
  _exit(ws.growths() == apart + 1 ? 0 : 6);
}

TEST(WorkspaceDeathTest, AFailedMergeIsATypedErrorAndTheNextOneWorks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory is larger than the limit";
#endif
  EXPECT_EXIT(merge_without_memory(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace shoal
