// shoal phonemize: how a model that speaks phonemes reads a text.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/engine_settings.h"
#include "cli/input_text.h"
#include "text/phonemes/front_end.h"
#include "text/sentences.h"
#include "text/utf8.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

struct PhonemizeOptions {
  InputText input;
  std::string language;
  bool normalise = true, words = false, json = false;
  EngineSettings settings;
};

phonemes::FrontEndOptions front_end_options(const EngineConfig& config) {
  phonemes::FrontEndOptions options;
  options.espeak.program = config.phonemizer;
  options.espeak.timeout_ms = config.phonemizer_timeout_ms;
  options.espeak.helpers = 1;
  options.dictionaries = config.dictionaries_dir;
  return options;
}

ordered_json json_of(const std::vector<phonemes::Chunk>& chunks) {
  ordered_json list = ordered_json::array();
  for (const phonemes::Chunk& chunk : chunks) {
    ordered_json tokens = ordered_json::array();
    for (const phonemes::Token& token : chunk.tokens)
      tokens.push_back({{"text", token.text}, {"phonemes", token.phonemes}});
    list.push_back(
        {{"phonemes", chunk.phonemes}, {"pause_after_s", chunk.pause_after_s}, {"tokens", tokens}});
  }
  return list;
}

void print(const std::vector<phonemes::Chunk>& chunks, bool with_words) {
  for (const phonemes::Chunk& chunk : chunks) {
    if (!chunk.phonemes.empty()) std::printf("%s\n", chunk.phonemes.c_str());
    if (with_words)
      for (const phonemes::Token& token : chunk.tokens)
        std::printf("  %-24s %s\n", token.text.c_str(), token.phonemes.c_str());
    if (chunk.pause_after_s > 0) std::printf("[pause:%gs]\n", chunk.pause_after_s);
  }
}

void phonemize(const PhonemizeOptions& options) {
  const EngineConfig config = options.settings.resolve().config;
  const std::string text = options.input.read();
  text::require_utf8(text);  // is_speakable() requires it
  if (!text::is_speakable(text))
    fail(ErrorCode::invalid_argument, "text: expected at least one letter or digit, got ",
         text.empty() ? "nothing" : "only spaces and punctuation");
  const std::string& language = !options.language.empty()          ? options.language
                                : !config.default_language.empty() ? config.default_language
                                                                   : "en-us";
  phonemes::FrontEnd front_end(front_end_options(config));
  const std::vector<phonemes::Chunk> chunks = front_end.chunks(
      text, {.language = phonemes::parse_language(language), .normalise = options.normalise, .chunks = {}});
  if (options.json)
    std::cout << ordered_json{{"language", language}, {"chunks", json_of(chunks)}}.dump(1) << std::endl;
  else
    print(chunks, options.words);
}

}  // namespace

void add_phonemize(CLI::App& app) {
  auto options = std::make_shared<PhonemizeOptions>();
  PhonemizeOptions& o = *options;
  CLI::App& command =
      *app.add_subcommand("phonemize", "Print the phonemes that a Kokoro model would speak for a text");
  command.footer(
      "Examples:\n"
      "  shoal phonemize \"The sky above the port.\"\n"
      "  shoal phonemize \"Bonjour tout le monde.\" --lang fr-fr\n"
      "  shoal phonemize \"Say [Kokoro](/kˈOkəɹO/) like this.\" --words");
  o.input.add_to(command);
  command.add_option("--lang", o.language,
                     "en-us, en-gb, es, fr-fr, hi, it, pt-br, or their letters; default: the setting "
                     "default_language, or en-us");
  command.add_flag("--normalize,!--no-normalize", o.normalise,
                   "speak English numbers, dates, money as words (default: true)");
  command.add_flag("--words", o.words, "list the words with their phonemes");
  command.add_flag("--json", o.json, "print the chunks as JSON");
  o.settings.add_to(command, {"dictionaries_dir", "phonemizer", "phonemizer_timeout_ms"});
  command.callback([options] { phonemize(*options); });
}

}  // namespace shoal::cli
