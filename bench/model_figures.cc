#include "bench/model_figures.h"

#include "ops/device_state.h"

namespace shoal::bench {
namespace {

// Bytes of a GPU that are in use beyond those at the start.
class DeviceUse {
 public:
  explicit DeviceUse(Device device) : device_(device), free_(ops::free_device_memory(device)) {}
  int64_t bytes() const { return free_ ? *free_ - *ops::free_device_memory(device_) : 0; }

 private:
  Device device_;
  std::optional<int64_t> free_;
};

}  // namespace

ModelBenchOptions ModelBenchOptions::for_device(Device device) {
  ModelBenchOptions options;
  if (!ops::computes_by_itself(device)) return options;
  options.batches = {1, 8, 64, 256};
  options.shared_context = false;
  options.context_columns = 256;
  options.decode_frames = 80;  // the step in the middle reads 300 columns
  options.prompt_repeats = 20;
  options.codec_frames = 1292;  // a minute
  options.codec_repeats = 200;
  options.codec_streams = 64;
  return options;
}

double compute_limit(const MachineLimits& limits, DType dtype) {
  return size_of(dtype) == 2 ? limits.bf16_gflop_per_s : limits.f32_gflop_per_s;
}

ModelFigures bench_language_model(const std::string& name, const dual_ar::Config& config,
                                  const MachineLimits& limits, const ModelBenchOptions& options,
                                  ops::Context& ctx) {
  ModelFigures figures{.name = name + ", random weights",
                       .dtype = std::string(name_of(options.formats.operands)),
                       .weights_dtype = std::string(name_of(options.formats.weights)),
                       .kv_dtype = std::string(name_of(options.formats.kv)),
                       .codec_weights_dtype = std::string(name_of(options.codec_format.weights))};
  reset_peak_resident();
  const DeviceUse use(ctx.device);
  options.on_part("making random weights");
  const dual_ar::HeadRows head =
      options.semantic_head ? dual_ar::HeadRows::semantic : dual_ar::HeadRows::automatic;
  const dual_ar::DualAr model =
      dual_ar::DualAr::random(config, ctx, {.formats = options.formats, .head_rows = head}, options.seed);
  figures.language_model_bytes = model.memory().total();
  figures.head_outputs = model.head_outputs();
  figures.language_model_device_bytes = use.bytes();
  figures.decode = bench_decode(model, limits, options, ctx);
  figures.prefill = bench_prefill(model, limits, options, ctx);
  figures.first_frame = bench_first_frame(model, options, ctx);
  options.on_part("making a random codec");
  const int64_t before_codec = use.bytes();
  const dac::Codec codec =
      dac::Codec::random(dac::Config::published(), ctx, options.codec_format, dac::Parts::both, options.seed);
  figures.codec_bytes = codec.memory().total();
  figures.codec_device_bytes = use.bytes() - before_codec;
  figures.codec = bench_codec(codec, limits, options, ctx);
  figures.peak_resident_bytes = peak_resident_bytes();
  figures.device_bytes = use.bytes();
  return figures;
}

}  // namespace shoal::bench
