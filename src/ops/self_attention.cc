#include "ops/self_attention.h"

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {

void self_attention(Context& ctx, TensorView qkv, int64_t heads, const Segments& segments, TensorView out) {
  check_segments("self_attention", segments);
  const int64_t rows = segments.total_rows();
  CHECK(qkv.rank() == 2 && qkv.dtype() == DType::f32 && qkv.dim(0) == rows && heads > 0 && qkv.dim(1) > 0 &&
            qkv.dim(1) % (3 * heads) == 0,
        "self_attention: qkv is ", name_of(qkv.dtype()), " ", qkv.shape(), " for ", heads,
        " heads, expected F32 [", rows, ", 3 * heads * head_dim]");
  const bool right_dtype = out.dtype() == DType::f32 ||
                           (!on_cpu(ctx) && (out.dtype() == DType::bf16 || out.dtype() == DType::f16));
  CHECK(right_dtype && out.shape() == (Shape{rows, qkv.dim(1) / 3}), "self_attention: out is ",
        name_of(out.dtype()), " ", out.shape(), ", expected F32 [", rows, ", ", qkv.dim(1) / 3, "]");
  if (rows == 0) return;
  if (on_cpu(ctx)) return cpu::self_attention(ctx, qkv, heads, segments, out);
  cuda::self_attention(ctx, qkv, heads, segments, out);
}

}  // namespace shoal::ops
