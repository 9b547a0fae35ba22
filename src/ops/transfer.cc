#include "ops/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

void check_dense(const char* op, TensorView view) {
  CHECK(view.is_contiguous(), op, ": ", view.shape(), " is not dense");
}

TensorView upload_bytes(Context& ctx, const void* values, DType dtype, size_t count) {
  const Shape shape = {static_cast<int64_t>(count)};
  if (on_cpu(ctx)) return TensorView(const_cast<void*>(values), dtype, shape);
  const TensorView view = ctx.workspace->alloc(dtype, shape);
  if (count > 0 && !is_planning(ctx)) cuda::upload(ctx, values, view);
  return view;
}

// Arrays one after the other in host memory, each from a multiple of 16 bytes on.
class PackedArrays {
 public:
  explicit PackedArrays(TensorView host) : host_(host) {}

  static int64_t padded(int64_t count) { return (count + 3) / 4 * 4; }

  // Room for the next array.
  std::span<int32_t> add(int64_t count) {
    const std::span<int32_t> array(host_.as<int32_t>() + used_, static_cast<size_t>(count));
    used_ += padded(count);
    return array;
  }

 private:
  TensorView host_;
  int64_t used_ = 0;
};

}  // namespace

TensorView upload(Context& ctx, std::span<const int32_t> values) {
  return upload_bytes(ctx, values.data(), DType::i32, values.size());
}
TensorView upload(Context& ctx, std::span<const int64_t> values) {
  return upload_bytes(ctx, values.data(), DType::i64, values.size());
}
TensorView upload(Context& ctx, std::span<const float> values) {
  return upload_bytes(ctx, values.data(), DType::f32, values.size());
}
TensorView upload(Context& ctx, std::span<const std::byte> values) {
  return upload_bytes(ctx, values.data(), DType::u8, values.size());
}

void download(Context& ctx, TensorView from, void* to) {
  check_dense("download", from);
  if (from.elements() == 0) return synchronize(ctx);
  if (is_planning(ctx)) return;
  if (!on_cpu(ctx)) return cuda::download(ctx, from, to);
  std::memcpy(to, from.data(), static_cast<size_t>(from.bytes()));
}

Mark mark(Context& ctx) { return on_cpu(ctx) || is_planning(ctx) ? nullptr : cuda::mark(ctx); }

void download(Context& ctx, const Mark& mark, TensorView from, void* to) {
  if (!mark || from.elements() == 0) return download(ctx, from, to);
  check_dense("download", from);
  cuda::download(ctx, mark, from, to);
}

Tensor to_host(Context& ctx, TensorView from) {
  Tensor host(from.dtype(), from.shape());
  download(ctx, from, host.view().data());
  return host;
}

Tensor resident(Context& ctx, Tensor host) {
  if (on_cpu(ctx) || host.empty()) return host;
  if (is_planning(ctx) || host.view().is_sized_only())
    return Tensor::sized(host.dtype(), host.shape(), ctx.device);
  Tensor moved(host.dtype(), host.shape(), ctx.device);
  if (host.elements() > 0) cuda::upload(ctx, host.view().data(), moved);
  cuda::synchronize(ctx);
  return moved;
}

Tensor new_tensor(const Context& ctx, DType dtype, const Shape& shape) {
  return is_planning(ctx) ? Tensor::sized(dtype, shape, ctx.device) : Tensor(dtype, shape, ctx.device);
}

void fill_zero(Context& ctx, TensorView y) {
  check_dense("fill_zero", y);
  if (y.elements() == 0 || is_planning(ctx)) return;
  if (!on_cpu(ctx)) return cuda::fill_zero(ctx, y);
  std::memset(y.data(), 0, static_cast<size_t>(y.bytes()));
}

void synchronize(Context& ctx) {
  if (!on_cpu(ctx) && !is_planning(ctx)) cuda::synchronize(ctx);
}

BatchPlan on_device(Context& ctx, const BatchPlan& plan) {
  if (on_cpu(ctx)) return plan;
  const int64_t sequences = plan.rows.sequences(), rows = plan.rows.rows();
  CHECK(static_cast<int64_t>(plan.positions.size()) == rows, "on_device: ", plan.positions.size(),
        " positions for ", rows, " rows");
  const auto pages = static_cast<int64_t>(plan.page_table.size());
  const int64_t total = PackedArrays::padded(sequences + 1) + 2 * PackedArrays::padded(rows) + pages;

  const TensorView device = ctx.workspace->alloc(DType::i32, {total});
  CHECK(ctx.host, "on_device: the context has no memory that the host writes");
  const Workspace::Scope scope(*ctx.host);
  const TensorView host = ctx.host->alloc(DType::i32, {total});
  std::fill_n(host.as<int32_t>(), total, 0);
  PackedArrays arrays(host);
  const auto view = [&](std::span<const int32_t> array, Shape shape) {
    const int64_t begin = array.data() - host.as<int32_t>();
    return device.slice(begin, begin + shape.elements()).reshape(shape);
  };

  const std::span<int32_t> offsets = arrays.add(sequences + 1), positions = arrays.add(rows),
                           sequence_of = arrays.add(rows), page_table = arrays.add(pages);
  std::ranges::copy(plan.rows.offsets, offsets.begin());
  std::ranges::copy(plan.positions, positions.begin());
  std::ranges::copy(plan.page_table, page_table.begin());
  bool single_rows = true;
  for (int s = 0; s < sequences; ++s) {
    std::fill_n(sequence_of.begin() + plan.rows.begin(s), plan.rows.count(s), s);
    single_rows &= plan.rows.count(s) == 1;
  }
  if (!is_planning(ctx)) cuda::upload(ctx, host.data(), device);

  BatchPlan placed = plan;
  placed.tables = {.offsets = view(offsets, {sequences + 1}),
                   .positions = view(positions, {rows}),
                   .sequences = view(sequence_of, {rows}),
                   .page_table = view(page_table, {sequences, plan.pages_per_sequence}),
                   .single_rows = single_rows};
  return placed;
}

}  // namespace shoal::ops
