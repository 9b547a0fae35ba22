#include "tests/parity/text_parity.h"

#include <gtest/gtest.h>
#include <optional>

#include "base/error.h"
#include "tests/parity/fish_goldens.h"
#include "tests/parity/tally.h"
#include "text/prompt.h"

namespace shoal::parity {
namespace {

// The fixtures' generator groups turns so; a document may say otherwise as "chunk_length".
constexpr int64_t kChunkBytes = 40;

std::vector<int32_t> integers_of(const Json& array) {
  std::vector<int32_t> values;
  for (const Json& value : array.as_array()) values.push_back(static_cast<int32_t>(value.as_integer()));
  return values;
}

void check_special_ids(const FishGoldens& goldens, Tally& tally) {
  const text::Tokenizer& tokenizer = *goldens.tokenizer;
  if (const Json* special = goldens.document.find("special_ids")) {
    for (const auto& [spelling, id] : special->as_object()) {
      EXPECT_EQ(tokenizer.special_id(spelling), id.as_integer()) << spelling;
      EXPECT_EQ(tokenizer.encode(spelling, text::SpecialTokens::recognise),
                std::vector{static_cast<int32_t>(id.as_integer())})
          << spelling;
      tally.tried("ids", spelling, 1);
    }
  } else {
    tally.absent("ids", "special_ids");
  }
  const auto check = [&](const std::string& key, int32_t ours) {
    const Json* golden = goldens.document.find(key);
    if (!golden) return tally.absent("ids", key);
    EXPECT_EQ(ours, golden->as_integer()) << key;
    tally.tried("ids", key, 1);
  };
  check("semantic_begin_id", tokenizer.semantic_begin());
  check("semantic_end_id", tokenizer.semantic_end());
}

// Texts of a golden case with the codes of the goldens `prefix`0_codes, `prefix`1_codes, ...
struct Speech {
  std::vector<std::vector<int32_t>> codes;
  std::vector<text::ReferenceCodes> list;
};

Speech read_speech(const Goldens& tensors, const std::vector<std::string>& texts, const std::string& prefix,
                   int64_t codebooks) {
  Speech speech;
  for (size_t i = 0; i < texts.size(); ++i)
    speech.codes.push_back(tensors.columns(concat(prefix, i, "_codes"), codebooks));
  for (size_t i = 0; i < texts.size(); ++i)
    speech.list.push_back(
        {texts[i], speech.codes[i].data(), static_cast<int64_t>(speech.codes[i].size()) / codebooks});
  return speech;
}

std::vector<int32_t> our_prompt(const FishGoldens& goldens, const std::string& name, const Json& golden,
                                int64_t codebooks) {
  const std::string prefix = goldens.prefix + name;
  const auto speech = [&](const char* key, const char* tensors) {
    return read_speech(goldens.tensors, strings_of(golden.find(key)), prefix + tensors, codebooks);
  };
  const Speech references = speech("ref_texts", ".ref");
  const std::string& text = golden.at("text").as_string();
  const auto books = static_cast<int>(codebooks);
  constexpr auto kRecognise = text::SpecialTokens::recognise;
  if (goldens.is_s1)
    return text::build_s1_prompt(*goldens.tokenizer, books, references.list, text, kRecognise).values;
  const Speech history = speech("history", ".hist");
  return text::build_s2_prompt(*goldens.tokenizer, books, references.list, history.list, text, kRecognise)
      .values;
}

}  // namespace

void check_tokenizer(const std::string& dir) {
  const FishGoldens goldens = FishGoldens::open(dir);
  SCOPED_TRACE(dir);
  Tally tally(dir, "tokenizer");
  if (!goldens.tokenizer) {
    tally.absent("ids", "tokenizer of the folder");
    return tally.report();
  }
  check_special_ids(goldens, tally);
  if (const Json::Array* cases = goldens.list("tokenizer")) {
    for (const Json& golden : *cases) {
      const std::string& text = golden.at("text").as_string();
      const std::vector<int32_t> ids = integers_of(golden.at("ids"));
      EXPECT_EQ(goldens.tokenizer->encode(text, text::SpecialTokens::recognise), ids) << "text: " << text;
      tally.tried("texts", concat(cases->size(), " texts"), static_cast<int64_t>(ids.size()));
    }
  } else {
    tally.absent("texts", "tokenizer cases");
  }
  tally.report();
}

void check_prompts(const std::string& dir) {
  const FishGoldens goldens = FishGoldens::open(dir);
  SCOPED_TRACE(dir);
  Tally tally(dir, "prompts");
  for (const auto& [name, golden] : goldens.cases()) {
    SCOPED_TRACE(name);
    const std::string prompt = goldens.prefix + name + ".prompt";
    if (!goldens.tokenizer || !golden.find("text") || !goldens.tensors.has(prompt)) {
      tally.absent(name, !goldens.tokenizer     ? "tokenizer of the folder"
                         : !golden.find("text") ? "text"
                                                : "prompt");
      continue;
    }
    const int64_t rows = goldens.tensors.get(prompt, DType::i32, 2).dim(0);
    const std::vector<int32_t> expected = goldens.tensors.columns(prompt, rows);
    EXPECT_EQ(our_prompt(goldens, name, golden, rows - 1), expected) << prompt;
    if (const Json* length = golden.find("prompt_len")) {
      EXPECT_EQ(static_cast<int64_t>(expected.size()) / rows, length->as_integer()) << prompt;
    }
    tally.tried(name, "prompt", static_cast<int64_t>(expected.size()));
  }
  tally.report();
}

void check_splits(const std::string& dir) {
  const FishGoldens goldens = FishGoldens::open(dir);
  SCOPED_TRACE(dir);
  Tally tally(dir, "splits");
  const Json::Array* splits = goldens.list("splits");
  if (!splits) tally.absent("dialogues", "splits");
  const Json* chunk = goldens.document.find("chunk_length");
  for (size_t i = 0; splits && i < splits->size(); ++i) {
    const Json& golden = (*splits)[i];
    const std::string& text = golden.at("text").as_string();
    const auto expected = strings_of(&golden.at("turns"));
    const std::vector<std::string> turns = text::split_s2_turns(text);
    EXPECT_EQ(turns, expected) << "turns of: " << text;
    EXPECT_EQ(text::group_s2_turns(turns, chunk ? chunk->as_integer() : kChunkBytes),
              strings_of(&golden.at("batches")))
        << "batches of: " << text;
    tally.tried("dialogues", concat(splits->size(), " dialogues"), static_cast<int64_t>(expected.size()));
  }
  tally.report();
}

}  // namespace shoal::parity
