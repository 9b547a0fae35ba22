// OpenAI's voice names, and the similar voices of the built-in model and of Kokoro.
#pragma once

#include <array>
#include <string_view>

namespace shoal::settings {

struct OpenAiVoice {
  std::string_view name;
  std::string_view named;  // a voice that comes with the built-in voice (voice/MODEL_CARD.md)
};

// A woman's for a woman's, a man's for a man's, and as deep or light as there is.
inline constexpr std::array<OpenAiVoice, 13> kOpenAiVoices = {{{"alloy", "clara"},
                                                               {"ash", "hugo"},
                                                               {"ballad", "edgar"},
                                                               {"coral", "iris"},
                                                               {"echo", "felix"},
                                                               {"fable", "edgar"},
                                                               {"nova", "nora"},
                                                               {"onyx", "oscar"},
                                                               {"sage", "ruth"},
                                                               {"shimmer", "iris"},
                                                               {"verse", "felix"},
                                                               {"marin", "clara"},
                                                               {"cedar", "hugo"}}};

// The published voices of Kokoro that Kokoro-FastAPI has for OpenAI's names.
struct KokoroVoice {
  std::string_view name, published;
};
inline constexpr std::array<KokoroVoice, 9> kKokoroVoices = {{{"alloy", "am_adam"},
                                                              {"ash", "af_nicole"},
                                                              {"coral", "bf_emma"},
                                                              {"echo", "af_bella"},
                                                              {"fable", "af_sarah"},
                                                              {"nova", "bf_isabella"},
                                                              {"onyx", "bm_george"},
                                                              {"sage", "am_michael"},
                                                              {"shimmer", "af_sky"}}};

// Empty: Kokoro-FastAPI has no voice for the name.
constexpr std::string_view find_kokoro_voice(std::string_view name) {
  for (const KokoroVoice& voice : kKokoroVoices)
    if (voice.name == name) return voice.published;
  return {};
}

// Null: OpenAI has no such voice.
constexpr const OpenAiVoice* find_openai_voice(std::string_view name) {
  for (const OpenAiVoice& voice : kOpenAiVoices)
    if (voice.name == name) return &voice;
  return nullptr;
}

}  // namespace shoal::settings
