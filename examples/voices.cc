// Named voices: add one from a recording and the words spoken in it, speak with it, remove it.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "shoal/engine.h"

namespace {

// A WAV file of 16-bit mono samples. Your own program would read a recording: wav, flac, ogg, mp3 or aiff.
std::string wav_file(const std::vector<float>& samples, uint32_t rate_hz) {
  const auto bytes = static_cast<uint32_t>(samples.size() * 2);
  const uint32_t header[] = {0x46464952, 36 + bytes, 0x45564157,  0x20746d66, 16,  // "RIFF" .. "WAVE" "fmt "
                             0x00010001, rate_hz,    rate_hz * 2, 0x00100002,      // PCM, mono, 16 bits
                             0x61746164, bytes};                                   // "data"
  std::string file(reinterpret_cast<const char*>(header), sizeof header);
  for (const float sample : samples) {
    const auto value = static_cast<int16_t>(sample * 32767.0f);
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return file;
}

void use_voices(const std::string& folder) {
  shoal::EngineConfig config;
  config.references_dir = folder;  // voices live here, one folder each; several programs may share them
  shoal::Engine engine(config);
  engine.start();

  // We have no recording, so the engine makes one.
  shoal::SpeechRequest request;
  request.text = "These are the words of Ann.";
  request.seed = 1;
  const std::vector<float> recording = engine.submit(request).read_all();

  engine.voices().add("ann", wav_file(recording, static_cast<uint32_t>(engine.sample_rate_hz())),
                      request.text);
  for (const shoal::VoiceInfo& voice : engine.voices().list())
    std::printf("voice %s says: %s\n", voice.name.c_str(), voice.transcripts.at(0).c_str());

  request.voice = "ann";
  request.text = "And now she says something else.";
  shoal::Speech speech = engine.submit(request);  // encodes the clip, once
  speech.read_all();
  std::printf("spoke %.1f s with it, after a prompt of %lld columns\n", speech.summary().audio_s(),
              static_cast<long long>(speech.summary().prompt_columns));

  engine.voices().remove("ann");
  std::printf("voices left: %zu\n", engine.voices().list().size());
}

}  // namespace

int main() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "shoal_example_voices";
  try {
    std::filesystem::remove_all(folder);
    use_voices(folder.string());
    std::filesystem::remove_all(folder);
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
