#include "ops/op_testing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/bf16.h"
#include "base/f16.h"
#include "ops/device_choice.h"
#include "ops/transfer.h"

namespace shoal::ops {
namespace {

constexpr float kGarbageValue = std::numeric_limits<float>::quiet_NaN();

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
  if (!values.empty()) copy(TensorView::of(values.data(), dtype, shape), placed);
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

std::vector<OpMachine> with_cuda(std::vector<OpMachine> machines) {
  machines.push_back({"cuda", std::nullopt});
  return machines;
}

}  // namespace

std::vector<OpMachine> machines_of(std::initializer_list<CpuIsa> sets) {
  std::vector<OpMachine> machines;
  for (const CpuIsa isa : sets) machines.push_back({std::string(name_of(isa)), isa});
  return machines;
}

std::vector<OpMachine> every_cpu() { return machines_of({CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512}); }

std::vector<OpMachine> every_product_cpu() {
  return machines_of({CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16, CpuIsa::amx});
}

std::vector<OpMachine> every_machine() { return with_cuda(every_cpu()); }
std::vector<OpMachine> every_product_machine() { return with_cuda(every_product_cpu()); }

OpFixture::~OpFixture() { set_cpu_isa(best_cpu_isa()); }

void OpFixture::open(const OpMachine& machine) {
  Device device;
  if (machine.isa) {
    if (*machine.isa > best_cpu_isa()) GTEST_SKIP() << "this CPU has no " << machine.name;
    set_cpu_isa(*machine.isa);
  } else {
    try {
      device = choose_device(machine.name);
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
  }
  execution_ = std::make_unique<Execution>(device, team_);
}

void OpFixture::close() {
  if (execution_) synchronize(ctx());
}

Tensor OpFixture::put(std::span<const float> values, Shape shape, DType dtype) {
  if (dtype == DType::f32) return put_values(values, shape, dtype, ctx().device);
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(narrow(value, dtype));
  return put_values<uint16_t>(bits, shape, dtype, ctx().device);
}

Tensor OpFixture::put(std::span<const int32_t> values, Shape shape) {
  return put_values(values, shape, DType::i32, ctx().device);
}

Tensor OpFixture::put(std::span<const int64_t> values, Shape shape) {
  return put_values(values, shape, DType::i64, ctx().device);
}

Tensor OpFixture::put(std::span<const uint8_t> values, Shape shape) {
  return put_values(values, shape, DType::u8, ctx().device);
}

std::vector<float> OpFixture::rounded_to(std::span<const float> values, DType dtype) {
  std::vector<float> rounded(values.begin(), values.end());
  if (dtype == DType::f32) return rounded;
  for (float& value : rounded) value = widen(narrow(value, dtype), dtype);
  return rounded;
}

Tensor OpFixture::garbage(Shape shape, DType dtype) {
  return put(std::vector<float>(static_cast<size_t>(shape.elements()), kGarbageValue), shape, dtype);
}

std::vector<uint8_t> OpFixture::get_bytes(TensorView from) {
  synchronize(ctx());
  std::vector<uint8_t> bytes(static_cast<size_t>(from.bytes()));
  if (bytes.empty()) return bytes;
  const int64_t rows = from.is_contiguous() ? 1 : from.elements() / from.dim(-1);
  const int64_t row_bytes = from.bytes() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = rows == 1 ? 0 : row_begin(from, row) * size_of(from.dtype());
    copy(TensorView(static_cast<char*>(from.data()) + begin, DType::u8, {row_bytes}, from.device()),
         TensorView::of(bytes.data() + row * row_bytes, DType::u8, {row_bytes}));
  }
  return bytes;
}

std::vector<float> OpFixture::get(TensorView from) {
  const std::vector<uint8_t> bytes = get_bytes(from);
  std::vector<float> values(static_cast<size_t>(from.elements()));
  if (values.empty()) return values;
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

std::vector<int32_t> OpFixture::get_ints(TensorView from) {
  CHECK(from.dtype() == DType::i32, "dtype is ", name_of(from.dtype()));
  const std::vector<uint8_t> bytes = get_bytes(from);
  std::vector<int32_t> values(static_cast<size_t>(from.elements()));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Segments OpFixture::placed(Segments segments) {
  if (on_cpu(ctx()) || segments.count() == 0) return segments;
  std::vector<int32_t> tables(segments.starts.begin(), segments.starts.end());
  tables.insert(tables.end(), segments.frames.begin(), segments.frames.end());
  segments.tables = tables_.emplace_back(put(tables, {2, segments.count()}));
  return segments;
}

void OpFixture::poison(int64_t floats) {
  const Workspace::Scope scope(*ctx().workspace);
  const TensorView memory = ctx().workspace->alloc(DType::f32, {floats});
  if (on_cpu(ctx())) {
    std::fill_n(memory.as<float>(), floats, kGarbageValue);
  } else {
    const std::vector<float> garbage(static_cast<size_t>(floats), kGarbageValue);
    copy(TensorView::of(garbage.data(), DType::f32, {floats}), memory);
  }
}

}  // namespace shoal::ops
