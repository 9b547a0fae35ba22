// Teacher forcing against what the engine itself draws.
#include "shoal/forced_logits.h"

#include <algorithm>

#include "runtime/engine/engine_testing.h"

namespace shoal::runtime {
namespace {

constexpr int kForcedFrames = 70;

EngineConfig forced_config() {
  EngineConfig config = testing::tiny_config();
  config.semantic_only = true;  // row i of the head is code i, the last the end
  return config;
}

// Always the likeliest, without a penalty: what is drawn is the largest logit.
SpeechRequest likeliest_request() {
  SpeechRequest request;
  request.text = "Now one small fish swims under a cold moon.";
  request.top_p = 0.0f;
  request.repetition_penalty = 1.0f;
  request.seed = 1;
  request.max_new_tokens = kForcedFrames;
  request.chunk_length = 0;
  request.quirks.keep_last_frame_without_end = true;
  return request;
}

void add_likeliest(std::vector<int32_t>& codes, const std::vector<float>& logits, int64_t row,
                   int64_t outputs) {
  const auto begin = logits.begin() + row * outputs;
  codes.push_back(static_cast<int32_t>(std::max_element(begin, begin + outputs) - begin));
}

TEST(ForcedLogits, AreThoseThatTheEngineDrawsFrom) {
  Engine engine(forced_config());
  engine.start();
  const auto logits = open_forced_logits(forced_config());  // begin() starts over
  const LogitShape shape = logits->shape();
  int64_t longest = 0;
  for (const char* text :
       {"Now one small fish swims.", "Hello.", "A cold moon, and a small fish under it.", "One two"}) {
    SpeechRequest request = likeliest_request();
    request.text = text;
    Speech speech = engine.submit(request);
    speech.read_all();
    logits->begin(request, speech.codes());
    std::vector<int32_t> found;
    int64_t frames = 0;
    for (LogitPiece piece; logits->next(piece);) {
      EXPECT_EQ(piece.first, frames);
      const int64_t later = shape.codebooks - 1;
      for (int64_t i = 0; i < std::ssize(piece.residual) / (later * shape.residual); ++i) {
        add_likeliest(found, piece.semantic, i, shape.semantic);
        for (int64_t k = 0; k < later; ++k)
          add_likeliest(found, piece.residual, i * later + k, shape.residual);
      }
      frames += std::ssize(piece.semantic) / shape.semantic;
    }
    EXPECT_EQ(frames, speech.summary().frames + 1);  // and what follows
    EXPECT_EQ(found, speech.codes()) << text;
    longest = std::max(longest, frames);
  }
  EXPECT_GT(longest, 32) << "no text had several pieces";
}

TEST(ForcedLogits, RefuseWhatTheyCannotRead) {
  const auto logits = open_forced_logits(forced_config());
  const auto codebooks = static_cast<size_t>(logits->shape().codebooks);
  const auto refusal = [&](const SpeechRequest& request, const std::vector<int32_t>& codes) {
    try {
      logits->begin(request, codes);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  for (const int32_t wrong : {-1, 1 << 20, INT32_MAX, INT32_MIN})
    EXPECT_EQ(refusal(likeliest_request(), std::vector<int32_t>(codebooks, wrong)),
              ErrorCode::invalid_argument);
  std::vector<int32_t> last(codebooks, 1);
  last.back() = -1;
  EXPECT_EQ(refusal(likeliest_request(), last), ErrorCode::invalid_argument);
  EXPECT_EQ(refusal(likeliest_request(), std::vector<int32_t>(codebooks + 1, 1)),
            ErrorCode::invalid_argument);
  EXPECT_EQ(refusal(likeliest_request(), std::vector<int32_t>(codebooks << 17, 1)), ErrorCode::too_large);
  SpeechRequest pieces = likeliest_request();
  pieces.chunk_length = 50;
  pieces.text += " " + pieces.text + " " + pieces.text;
  EXPECT_EQ(refusal(pieces, {}), ErrorCode::invalid_argument);
  EngineConfig kokoro = testing::tiny_config();
  kokoro.model = std::string(SHOAL_SOURCE_DIR) + "/tests/data/kokoro/set_a";
  EXPECT_THROW(open_forced_logits(kokoro), Error);
}

}  // namespace
}  // namespace shoal::runtime
