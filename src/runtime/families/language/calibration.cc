#include "runtime/families/language/calibration.h"

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "runtime/families/language/speech_model.h"
#include "text/normalise.h"
#include "text/prompt.h"
#include "text/sentences.h"
#include "text/utf8.h"

namespace shoal::runtime {
namespace {

// With S1-mini's widths the longest file takes 0.4 GB for the streams of its positions.
constexpr int64_t kMostFileBytes = int64_t{64} << 10;
constexpr size_t kMostSentences = 256, kMostSentenceBytes = 400;
constexpr int64_t kCalibrationFrames = 48;  // of a sentence: 2 s
constexpr uint64_t kCalibrationSeed = 1;

std::string_view without_end(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void check_sentence(const std::string& where, std::string_view line) {
  if (line.size() > kMostSentenceBytes)
    fail(ErrorCode::too_large, where, ": ", line.size(), " bytes, at most ", kMostSentenceBytes,
         " are accepted; expected one sentence a line");
  if (const size_t bad = text::find_invalid_utf8(line); bad != std::string_view::npos)
    fail(ErrorCode::invalid_argument, where, ": not valid UTF-8 (byte ", bad, ")");
  for (const char c : line)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f')
      fail(ErrorCode::invalid_argument, where, ": expected text, found a control character");
}

std::vector<int32_t> prompt_of(const text::Tokenizer& tokenizer, const dual_ar::Config& config,
                               const std::string& sentence, bool normalise) {
  const bool s2 = config.family == dual_ar::Family::s2;
  const std::string spoken =
      normalise ? text::normalise_english(sentence, s2 ? text::Brackets::keep : text::Brackets::read)
                : sentence;
  const int codebooks = static_cast<int>(config.num_codebooks);
  text::PromptColumns prompt =
      s2 ? text::build_s2_prompt(tokenizer, codebooks, {}, {}, spoken, text::SpecialTokens::as_text)
         : text::build_s1_prompt(tokenizer, codebooks, {}, spoken, text::SpecialTokens::as_text);
  dual_ar::check_columns(config, prompt.values);
  return std::move(prompt.values);
}

dual_ar::Sampling sampling_of(const GenerationDefaults& own, dual_ar::Family family) {
  dual_ar::Sampling sampling = dual_ar::Sampling::defaults(family);
  sampling.temperature = own.temperature.value_or(sampling.temperature);
  sampling.top_p = own.top_p.value_or(sampling.top_p);
  sampling.repetition_penalty = own.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.seed = kCalibrationSeed;
  sampling.quirks.semantic_only = true;
  return sampling;
}

// Adds up what the products of a layer read.
class LayerStatistics final : public dual_ar::BlockObserver {
 public:
  LayerStatistics(ops::Context& ctx, std::span<ops::InputStatistics, kProducts> inputs)
      : ctx_(ctx), inputs_(inputs) {}

  void reads(Product product, TensorView rows) override {
    ops::InputStatistics& of = inputs_[product];
    if (of.depth() != rows.dim(1)) of = ops::InputStatistics(rows.dim(1));
    of.add(ctx_, rows);
  }

 private:
  ops::Context& ctx_;
  std::span<ops::InputStatistics, kProducts> inputs_;
};

// "fast_layers.1.attention.wo.weight" -> 1 of the fast layers.
int64_t number_of_layer(const std::string& matrix) {
  int64_t number = -1;
  const size_t begin = matrix.find('.') + 1;
  std::from_chars(matrix.data() + begin, matrix.data() + matrix.size(), number);
  CHECK(number >= 0, "no layer's matrix: ", matrix);
  return number;
}

dual_ar::BlockObserver::Product product_of(const std::string& matrix) {
  using enum dual_ar::BlockObserver::Product;
  if (matrix.ends_with(".wo.weight")) return kOut;
  if (matrix.ends_with(".w2.weight")) return kDown;
  return matrix.ends_with(".w1.weight") || matrix.ends_with(".w3.weight") ? kGateUp : kQkv;
}

}  // namespace

std::vector<std::string> read_calibration_sentences(const std::string& path) {
  const std::string file = read_file(path, kMostFileBytes);
  std::vector<std::string> sentences;
  std::string_view rest = file;
  for (int line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = without_end(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    check_sentence(concat(path, ", line ", line), text);
    if (!text::is_speakable(text)) continue;
    sentences.emplace_back(text);
    if (sentences.size() > kMostSentences)
      fail(ErrorCode::too_large, path, ", line ", line, ": at most ", kMostSentences,
           " sentences are accepted");
  }
  if (sentences.empty())
    fail(ErrorCode::invalid_argument, path, ": expected sentences to speak, one a line, found none");
  return sentences;
}

Calibration::Calibration(const weights::ModelFiles& files, const weights::Checkpoint& checkpoint,
                         const std::vector<std::string>& sentences, ThreadTeam& team,
                         const std::function<void(double share)>& tell)
    : ctx_{.device = {}, .team = &team, .workspace = &workspace_} {
  const auto tokenizer = text::load_tokenizer(files.tokenizer, files.special_tokens);
  const dual_ar::Config config = read_language_model_config(files, *tokenizer);
  const GenerationDefaults defaults = GenerationDefaults::read(files.dir);
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& sentence : sentences)
    prompts.push_back(prompt_of(*tokenizer, config, sentence, defaults.normalise));
  model_ = dual_ar::DualAr::load(checkpoint, config, ctx_,
                                 {.formats = Formats(DType::f32), .head_rows = dual_ar::HeadRows::semantic});
  auto spoken = dual_ar::speak_prompts(
      ctx_, *model_, prompts, kCalibrationFrames, sampling_of(defaults, config.family),
      [&](size_t count) { tell(static_cast<double>(count) / static_cast<double>(prompts.size())); });
  replay_.emplace(ctx_, *model_, std::move(spoken));
}

void Calibration::run_to(int64_t layer) {
  CHECK(layer + 1 >= replay_->layers_run(), "layer ", layer, " after ", replay_->layers_run());
  while (replay_->layers_run() <= layer) {
    for (ops::InputStatistics& inputs : inputs_) inputs = {};
    LayerStatistics statistics(ctx_, inputs_);
    replay_->run_layer(ctx_, statistics);
  }
}

const ops::InputStatistics& Calibration::inputs_of(const std::string& matrix) {
  const bool fast = matrix.starts_with("fast_");
  run_to(number_of_layer(matrix) + (fast ? model_->config().slow_layers : 0));
  return inputs_[product_of(matrix)];
}

}  // namespace shoal::runtime
