#include "ops/cuda/device/cuda_testing.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bf16.h"
#include "base/f16.h"
#include "ops/cuda_devices.h"
#include "ops/transfer.h"
#include "tensor/device_memory.h"

namespace shoal::ops::cuda {
namespace {

uint16_t narrow(float value, DType dtype) {
  return dtype == DType::bf16 ? float_to_bf16(value) : float_to_f16(value);
}

float widen(uint16_t bits, DType dtype) {
  return dtype == DType::bf16 ? bf16_to_float(bits) : static_cast<float>(std::bit_cast<_Float16>(bits));
}

template <typename T>
Tensor put_values(std::span<const T> values, Shape shape, DType dtype, Device device) {
  CHECK(shape.elements() == static_cast<int64_t>(values.size()), values.size(), " values for ", shape);
  Tensor placed(dtype, shape, device);
  copy(TensorView::of(values.data(), dtype, shape), placed);
  return placed;
}

// Where dense row `row` of a strided view begins, in elements; rows are counted over all dimensions but the
// last.
int64_t row_begin(TensorView view, int64_t row) {
  int64_t begin = 0;
  for (int axis = view.rank() - 2; axis >= 0; --axis) {
    begin += row % view.dim(axis) * view.stride(axis);
    row /= view.dim(axis);
  }
  return begin;
}

bool has_usable_device() {
  const std::vector<CudaDevice> devices = cuda_devices();
  return !devices.empty() && devices[0].major >= 8;
}

}  // namespace

CudaTest::CudaTest() : host_ctx_{.device = {}, .team = &team_, .workspace = &host_workspace_} {}

CudaTest::~CudaTest() = default;

void CudaTest::SetUp() {
  if (!has_usable_device()) GTEST_SKIP() << "no GPU of compute capability 8.0 or later";
  stream_ = Stream::create(kDevice);
  workspace_ = std::make_unique<Workspace>(kDevice);
  page_locked_ = std::make_unique<Workspace>(Workspace::page_locked(kDevice));
  ctx_ = {.device = kDevice,
          .team = &team_,
          .workspace = workspace_.get(),
          .stream = stream_.get(),
          .host = page_locked_.get()};
}

void CudaTest::TearDown() {
  if (stream_) synchronize(ctx_);
}

Tensor CudaTest::put(std::span<const float> values, Shape shape, DType dtype) {
  if (dtype == DType::f32) return put_values(values, shape, dtype, kDevice);
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(narrow(value, dtype));
  return put_values<uint16_t>(bits, shape, dtype, kDevice);
}

Tensor CudaTest::put(std::span<const int32_t> values, Shape shape) {
  return put_values(values, shape, DType::i32, kDevice);
}

Tensor CudaTest::put(std::span<const int64_t> values, Shape shape) {
  return put_values(values, shape, DType::i64, kDevice);
}

std::vector<float> CudaTest::rounded_to(std::span<const float> values, DType dtype) {
  std::vector<float> rounded(values.begin(), values.end());
  if (dtype == DType::f32) return rounded;
  for (float& value : rounded) value = widen(narrow(value, dtype), dtype);
  return rounded;
}

std::vector<uint8_t> CudaTest::get_bytes(TensorView from) {
  synchronize(ctx_);
  std::vector<uint8_t> bytes(static_cast<size_t>(from.bytes()));
  if (bytes.empty()) return bytes;
  const int64_t rows = from.is_contiguous() ? 1 : from.elements() / from.dim(-1);
  const int64_t row_bytes = from.bytes() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = rows == 1 ? 0 : row_begin(from, row) * size_of(from.dtype());
    device_memory::copy(static_cast<const char*>(from.data()) + begin, from.device(),
                        bytes.data() + row * row_bytes, Device{}, row_bytes);
  }
  return bytes;
}

std::vector<float> CudaTest::get(TensorView from) {
  const std::vector<uint8_t> bytes = get_bytes(from);
  std::vector<float> values(static_cast<size_t>(from.elements()));
  if (from.dtype() == DType::f32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  CHECK(from.dtype() == DType::bf16 || from.dtype() == DType::f16, "dtype is ", name_of(from.dtype()));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * sizeof(bits), sizeof(bits));
    values[i] = widen(bits, from.dtype());
  }
  return values;
}

std::vector<int32_t> CudaTest::get_ints(TensorView from) {
  CHECK(from.dtype() == DType::i32, "dtype is ", name_of(from.dtype()));
  const std::vector<uint8_t> bytes = get_bytes(from);
  std::vector<int32_t> values(static_cast<size_t>(from.elements()));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace shoal::ops::cuda
