#include "cli/familiar_words.h"

#include <algorithm>
#include <array>

namespace shoal::cli {
namespace {

// `words` has blanks on both sides of each.
struct Familiar {
  std::string_view command, words, answer;
};

constexpr Familiar kCommands[] = {
    {"shoal", " speak talk tts read synth synthesize synthesise generate play ", "shoal say"},
    {"shoal", " server start run up api listen web http ", "shoal serve"},
    {"shoal", " check test diagnose ", "shoal doctor"},
    {"shoal", " list voice speakers ", "shoal voices"},
    {"shoal", " clone add ", "shoal voices add"},
    {"shoal", " status health ping ", "shoal ready"},
    {"shoal", " info show model models ", "shoal inspect"},
    {"shoal", " quantise convert ", "shoal quantize"},
    {"shoal", " compare quality eval perplexity kl ", "shoal evaluate"},
    {"shoal", " normalise ", "shoal normalize"},
    {"shoal", " phonemise phonemes g2p ", "shoal phonemize"},
    {"shoal", " benchmark perf speed ", "shoal bench"},
    {"shoal", " workers cluster balance ", "shoal fleet"},
    {"shoal voices", " list ls all ", "shoal voices"},
    {"shoal voices", " new create clone import ", "shoal voices add"},
    {"shoal voices", " rm delete del drop ", "shoal voices remove"},
    {"shoal voices", " mv move ", "shoal voices rename"},
    {"shoal voices", " info get cat ", "shoal voices show"},
    {"shoal cache", " show list ls info ", "shoal cache"},
    {"shoal cache", " clean rm remove delete prune purge ", "shoal cache clear"},
};

constexpr std::string_view kTextStandsAlone = "the text stands alone, as in: shoal say \"Hello there.\"";

constexpr Familiar kOptions[] = {
    {"shoal", " -v -V ", "did you mean --version?"},
    {"shoal say", " --text -t --prompt --sentence --message -m ", kTextStandsAlone},
    {"shoal say", " -f --input --input-file --text-file -i ", "did you mean --file?"},
    {"shoal say", " -w --wav --out-file --to ", "did you mean --output?"},
    {"shoal say", " -v --speaker --speaker-id --spk --voice-id -s ", "did you mean --voice?"},
    {"shoal say", " --rate -r --tempo --pace --length-scale ", "did you mean --speed?"},
    {"shoal say", " --gain --loudness -a ", "did you mean --volume?"},
    {"shoal say", " --language -l ", "did you mean --lang?"},
    {"shoal say", " --ref-audio --prompt-audio --clone --speaker-wav ", "did you mean --reference?"},
    {"shoal say", " --ref-text --prompt-text ", "did you mean --reference-text?"},
    {"shoal say", " --play ", "without -o, in a terminal, the sound is played"},
    {"shoal say", " --server --url ", "it speaks by itself, without a server"},
    {"shoal serve", " -p ", "did you mean --port?"},
    {"shoal serve", " --bind --address --addr -H ", "did you mean --listen?"},
    {"shoal serve", " --key --token ", "did you mean --api-key?"},
    {"shoal serve", " --gpu --gpus ", "did you mean --device?"},
    {"shoal doctor", " --gpu --gpus ", "did you mean --device?"},
    {"shoal say", " --gpu --gpus --cuda ", "did you mean --device?"},
};

bool has(std::string_view words, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return false;
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1))
    if (words[at - 1] == ' ' && words[at + word.size()] == ' ') return true;
  return false;
}

template <size_t Count>
std::string_view answer_in(const Familiar (&table)[Count], std::string_view command, std::string_view word) {
  const auto found = std::ranges::find_if(
      table, [&](const Familiar& line) { return line.command == command && has(line.words, word); });
  return found == std::end(table) ? std::string_view() : found->answer;
}

}  // namespace

std::string_view familiar_command(std::string_view command, std::string_view word) {
  return answer_in(kCommands, command, word);
}

std::string_view familiar_option(std::string_view command, std::string_view option) {
  return answer_in(kOptions, command, option);
}

}  // namespace shoal::cli
