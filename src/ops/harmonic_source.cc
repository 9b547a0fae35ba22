#include "ops/harmonic_source.h"

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

void check_source(const char* name, TensorView x, Shape shape) {
  CHECK(x.dtype() == DType::f32 && x.shape() == shape && x.is_contiguous(), "harmonic_source: ", name, " is ",
        name_of(x.dtype()), " ", x.shape(), ", expected dense F32 ", shape);
}

void check_seeds(const Context& ctx, const SourceNoise& noise, int64_t segments) {
  CHECK(static_cast<int64_t>(noise.seeds.size()) == segments, "harmonic_source: ", noise.seeds.size(),
        " seeds for ", segments, " segments");
  const TensorView table = noise.seed_table;
  CHECK(on_cpu(ctx) || segments == 0 || (table.dtype() == DType::i64 && table.shape() == Shape{segments}),
        "harmonic_source: the seeds on the device are ", name_of(table.dtype()), " ", table.shape(),
        ", expected I64 [", segments, "]");
}

}  // namespace

void harmonic_source(Context& ctx, const HarmonicSource& source, TensorView f0, const Segments& segments,
                     const SourceNoise& noise, TensorView out) {
  check_segments("harmonic_source", segments);
  CHECK(source.samples_per_row >= 2 && source.samples_per_row % 2 == 0 && source.sample_rate_hz > 0,
        "harmonic_source: ", source.samples_per_row, " samples a row at ", source.sample_rate_hz, " Hz");
  const int64_t samples = segments.total_rows() * source.samples_per_row;
  check_source("weights", source.weights, {kHarmonics});
  check_source("bias", source.bias, {1});
  check_source("f0", f0, {segments.total_rows()});
  check_source("out", out, {samples});
  if (noise.given.empty())
    check_seeds(ctx, noise, segments.count());
  else
    check_source("noise", noise.given, {samples, kHarmonics});
  if (samples == 0) return;
  if (on_cpu(ctx)) return cpu::harmonic_source(ctx, source, f0, segments, noise, out);
  cuda::harmonic_source(ctx, source, f0, segments, noise, out);
}

}  // namespace shoal::ops
