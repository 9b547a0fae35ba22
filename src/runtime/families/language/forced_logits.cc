// Teacher forcing of a language model.
#include "shoal/forced_logits.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/thread_team.h"
#include "models/dual_ar/dual_ar.h"
#include "ops/device_choice.h"
#include "ops/execution.h"
#include "ops/transfer.h"
#include "runtime/engine/useful_threads.h"
#include "runtime/families/language/language_family.h"
#include "runtime/families/language/speech_plan.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kForcedRows = 32;  // of a piece, and of a step
constexpr int64_t kForcedPage = 32;

// Keeps the states after the last layer, and the logits of later codes of frames that are given.
class Recorder final : public dual_ar::Taps {
 public:
  Recorder(const dual_ar::Config& config, TensorView states, std::vector<float>& logits)
      : last_(config.slow_layers - 1), passes_(config.num_codebooks - 1), states_(states), logits_(logits) {}
  void record(std::string_view name, int64_t index, TensorView value) override {
    const int64_t rows = value.dim(0), outputs = value.dim(1);
    if (name == "layer" && index == last_) copy(value, states_.slice(0, rows));
    if (name != "fast_logits") return;
    logits_.resize(static_cast<size_t>(rows * passes_ * outputs));
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(value.row<float>(row), outputs, logits_.begin() + (row * passes_ + index - 1) * outputs);
  }
  std::span<const int32_t> forced_frames() const override { return forced; }

  std::span<const int32_t> forced;

 private:
  const int64_t last_, passes_;
  const TensorView states_;
  std::vector<float>& logits_;
};

std::unique_ptr<const SpeechModel> load_without_codec(const EngineConfig& config, ops::Context& ctx) {
  return SpeechModel::load({.dir = config.model,
                            .precision = config.precision,
                            .weights = config.weights,
                            .kv_precision = config.kv_precision,
                            .with_codec = false,
                            .semantic_only = config.semantic_only},
                           ctx);
}

class LanguageLogits final : public ForcedLogits {
 public:
  explicit LanguageLogits(const EngineConfig& config);

  LogitShape shape() const override;
  void begin(const SpeechRequest& request, const std::vector<int32_t>& codes) override;
  bool next(LogitPiece& piece) override;

 private:
  int64_t width() const { return model_->language_model().config().columns(); }
  void append(const std::vector<int32_t>& codes);
  void forward(int64_t count, dual_ar::Taps* taps);

  const Device device_;
  ThreadTeam team_;
  ops::Execution execution_;
  const std::unique_ptr<const SpeechModel> model_;
  dual_ar::StepMemory memory_;
  std::optional<dual_ar::KvCache> cache_;
  std::vector<int32_t> columns_, pages_;        // [prompt and frames, 1 + codebooks]; 0, 1, 2, ...
  int64_t prompt_ = 0, frames_ = 0, done_ = 0;  // columns; those of the speech; computed
};

LanguageLogits::LanguageLogits(const EngineConfig& config)
    : device_(ops::choose_device(config.device)),
      team_(useful_threads(config.threads, ThreadTeam::available_cpus())),
      execution_(device_, team_),
      model_(load_without_codec(config, execution_.context())),
      memory_(execution_.context(), model_->language_model().config(), kForcedRows, 1) {}

LogitShape LanguageLogits::shape() const {
  const dual_ar::Config& config = model_->language_model().config();
  return {.codebooks = static_cast<int>(config.num_codebooks),
          .semantic = model_->language_model().head_outputs(),
          .residual = config.residual_codes()};
}

void LanguageLogits::begin(const SpeechRequest& request, const std::vector<int32_t>& codes) {
  const dual_ar::Config& config = model_->language_model().config();
  validate(request);
  if (!request.voice.empty() || !request.references.empty() || !request.encoded_references.empty() ||
      !request.voices.empty())
    fail(ErrorCode::unsupported, "forced logits: only the model's own voice");
  const SpeechPlan plan = plan_speech(request, *model_, {}, 0);
  if (plan.utterances.size() != 1)
    fail(ErrorCode::invalid_argument, "text: expected one piece of speech, got ", plan.utterances.size());
  columns_ = build_prompt(plan, *model_, {}, plan.utterances[0]).values;
  prompt_ = std::ssize(columns_) / width();
  append(codes);
  const int64_t all = prompt_ + frames_;
  if (all > config.max_positions)
    fail(ErrorCode::too_large, "codes: ", prompt_, " columns of prompt and ", frames_,
         " frames are more than the model's ", config.max_positions, " positions");
  dual_ar::check_columns(config, columns_);
  pages_.resize(static_cast<size_t>((all + kForcedPage - 1) / kForcedPage));
  std::iota(pages_.begin(), pages_.end(), 0);
  cache_.reset();  // before the next is taken
  cache_.emplace(config, std::ssize(pages_), kForcedPage, model_->language_model().formats().kv, device_);
  done_ = 0;
}

void LanguageLogits::append(const std::vector<int32_t>& codes) {
  const dual_ar::Config& config = model_->language_model().config();
  const auto codebooks = static_cast<size_t>(config.num_codebooks);
  if (codes.size() % codebooks != 0)
    fail(ErrorCode::invalid_argument, "codes: expected frames of ", codebooks, " codes, got ", codes.size(),
         " codes");
  frames_ = static_cast<int64_t>(codes.size() / codebooks);
  for (size_t at = 0; at < codes.size(); at += codebooks) {
    if (codes[at] < 0 || codes[at] > config.semantic_end - config.semantic_begin)
      fail(ErrorCode::invalid_argument, "codes: frame ", at / codebooks, " begins with ", codes[at],
           ", expected 0 to ", config.semantic_end - config.semantic_begin);
    columns_.push_back(config.semantic_begin + codes[at]);
    columns_.insert(columns_.end(), codes.begin() + static_cast<std::ptrdiff_t>(at),
                    codes.begin() + static_cast<std::ptrdiff_t>(at + codebooks));
  }
}

// The next `count` columns.
void LanguageLogits::forward(int64_t count, dual_ar::Taps* taps) {
  std::vector<int32_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(done_));
  const int32_t offsets[] = {0, static_cast<int32_t>(count)};
  const ops::BatchPlan plan{.rows = {offsets},
                            .positions = positions,
                            .page_table = pages_,
                            .pages_per_sequence = std::ssize(pages_),
                            .page_size = kForcedPage};
  const auto ids =
      std::span(columns_).subspan(static_cast<size_t>(done_ * width()), static_cast<size_t>(count * width()));
  ops::Context& ctx = execution_.context();
  const Tensor last(DType::f32, {1, model_->language_model().config().slow.dim}, device_);
  model_->language_model().forward_slow(ctx, plan, ids, *cache_, last, taps);
  ops::synchronize(ctx);
  done_ += count;
}

bool LanguageLogits::next(LogitPiece& piece) {
  CHECK(cache_, "begin() comes first");
  const dual_ar::DualAr& model = model_->language_model();
  const int64_t all = prompt_ + frames_;
  if (done_ == all) return false;
  // The last column of the prompt is the first that speaks.
  while (done_ < prompt_ - 1) forward(std::min(kForcedRows, prompt_ - 1 - done_), nullptr);
  const int64_t rows = std::min(kForcedRows, all - done_), spoken = std::min(rows, all - 1 - done_);
  piece.first = done_ - (prompt_ - 1);
  ops::Context& ctx = execution_.context();
  piece.residual.clear();
  Recorder recorder(model.config(), memory_.hidden(), piece.residual);
  forward(rows, &recorder);

  const Tensor logits(DType::f32, {rows, model.head_outputs()}, device_);
  model.slow_logits(ctx, memory_.hidden().slice(0, rows), logits);
  const Tensor values = ops::to_host(ctx, logits);
  piece.semantic.assign(values.as<float>(), values.as<float>() + values.elements());

  recorder.forced = std::span(columns_).subspan(static_cast<size_t>((prompt_ + piece.first) * width()),
                                                static_cast<size_t>(spoken * width()));
  std::vector<int32_t> drawn(recorder.forced.size());
  model.generate_frames(ctx, memory_, std::vector<dual_ar::FrameRequest>(static_cast<size_t>(spoken)), drawn,
                        &recorder);
  return true;
}

}  // namespace

std::unique_ptr<ForcedLogits> LanguageFamily::forced_logits(const EngineConfig& config) const {
  return std::make_unique<LanguageLogits>(config);
}

}  // namespace shoal::runtime
