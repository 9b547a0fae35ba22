#include "ops/device_check.h"

#include <cmath>
#include <vector>

#include "base/error.h"
#include "ops/cuda_devices.h"
#include "ops/execution.h"
#include "ops/linear.h"
#include "ops/transfer.h"

namespace shoal::ops {
namespace {

constexpr int64_t kRows = 3, kDepth = 64, kOutputs = 32;
constexpr float kEps = 1e-5f;
// 64 products whose magnitudes sum to at most about 60, each sum rounded by 6e-8 of it: 64 * 60 * 6e-8, times
// four. The results of a broken device differ more.
constexpr double kTolerance = 1e-3;

// Values in [-1, 1] without a pattern that a wrong stride would keep.
std::vector<float> values(int64_t count, int64_t step) {
  std::vector<float> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    all[static_cast<size_t>(i)] = static_cast<float>((i * step + 7) % 199) / 99.0f - 1.0f;
  return all;
}

TensorView view_of(std::vector<float>& values, Shape shape) {
  return TensorView::of(values.data(), DType::f32, shape);
}

// rms_norm(x) weight^T, row by row.
double expected(const std::vector<float>& x, const std::vector<float>& weight, int64_t row, int64_t output) {
  double squares = 0, product = 0;
  for (int64_t k = 0; k < kDepth; ++k) {
    const double value = x[static_cast<size_t>(row * kDepth + k)];
    squares += value * value;
    product += value * weight[static_cast<size_t>(output * kDepth + k)];
  }
  return product / std::sqrt(squares / static_cast<double>(kDepth) + static_cast<double>(kEps));
}

}  // namespace

bool gpu_available() {
  static const bool available = !cuda_devices().empty();  // none comes or goes while a process runs
  return available;
}

void check_device(Device device) {
  ThreadTeam team(1);
  Execution execution(device, team);
  Context& ctx = execution.context();
  std::vector<float> x = values(kRows * kDepth, 37), weight = values(kOutputs * kDepth, 53);
  const std::vector<float> ones(kDepth, 1.0f);
  const PackedMatrix matrix = pack_matrix(ctx, view_of(weight, {kOutputs, kDepth}), {}, DType::f32);
  const Tensor result(DType::f32, {kRows, kOutputs}, device);
  {
    Workspace::Scope scope(*ctx.workspace);
    const TensorView rows = upload(ctx, std::span<const float>(x)).reshape({kRows, kDepth});
    const TensorView norm = upload(ctx, std::span<const float>(ones));
    norm_linear(ctx, rows, {.weight = norm, .eps = kEps}, matrix, result);
    synchronize(ctx);
  }
  const Tensor host = to_host(ctx, result);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t output = 0; output < kOutputs; ++output) {
      const double want = expected(x, weight, row, output), got = host.view().row<float>(row)[output];
      if (!(std::abs(got - want) <= kTolerance))
        fail(ErrorCode::internal, "the device computed ", got, " where ", want, " is right (row ", row,
             ", output ", output, " of a norm and a product)");
    }
  }
}

}  // namespace shoal::ops
