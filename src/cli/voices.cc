// shoal voices: what can be heard.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "audio/clip.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "runtime/built_in_voice.h"
#include "runtime/references.h"

namespace shoal::cli {
namespace {

struct VoicesOptions {
  std::string references_dir = "references";
  bool json = false;
};

struct VoiceLine {
  std::string id;
  size_t clips = 0;
  double seconds = 0;
  std::string problem;  // why the voice cannot be used, or empty
};

VoiceLine describe(const std::string& dir, const std::string& id) {
  VoiceLine line{.id = id};
  try {
    for (const runtime::NamedClip& clip : runtime::find_voice(dir, id)) {
      const audio::Clip sound = audio::read_clip(clip.audio_path);
      runtime::check_reference(sound, clip.transcript, clip.audio_path);
      ++line.clips;
      line.seconds += sound.seconds();
    }
  } catch (const Error& error) {
    line.problem = error.message();
  }
  return line;
}

void print_voices(const VoicesOptions& options) {
  const std::string built_in = runtime::built_in_voice_dir();
  std::vector<VoiceLine> named;
  for (const std::string& id : runtime::list_voices(options.references_dir))
    named.push_back(describe(options.references_dir, id));
  if (options.json) {
    nlohmann::ordered_json voices = nlohmann::ordered_json::array();
    voices.push_back({{"id", "built-in"}, {"kind", "model"}, {"path", built_in}});
    for (const VoiceLine& v : named) {
      voices.push_back({{"id", v.id},
                        {"kind", "reference"},
                        {"clips", v.clips},
                        {"seconds", v.seconds},
                        {"problem", v.problem}});
    }
    std::cout << voices.dump(1) << std::endl;
    return;
  }
  std::printf("built-in             the voice that ships with Shoal: English, a man, 16 kHz (%s)\n",
              built_in.c_str());
  for (const VoiceLine& v : named) {
    if (v.problem.empty()) {
      std::printf("%-20s %zu clip%s, %.1f s\n", v.id.c_str(), v.clips, v.clips == 1 ? "" : "s", v.seconds);
    } else {
      std::printf("%-20s unusable: %s\n", v.id.c_str(), v.problem.c_str());
    }
  }
  if (named.empty()) {
    std::printf(
        "no named voices in %s; to add one: mkdir -p %s/ann, put a clip there and its words in a .lab file "
        "of the same name\n",
        options.references_dir.c_str(), options.references_dir.c_str());
  }
}

}  // namespace

void add_voices(CLI::App& app) {
  auto options = std::make_shared<VoicesOptions>();
  CLI::App& command = *app.add_subcommand("voices", "List the built-in voice and the named reference voices");
  command
      .add_option("--references-dir", options->references_dir,
                  "folder of named voices: NAME/clip.wav with NAME/clip.lab")
      ->capture_default_str();
  command.add_flag("--json", options->json, "print the list as JSON");
  command.callback([options] { print_voices(*options); });
}

}  // namespace shoal::cli
