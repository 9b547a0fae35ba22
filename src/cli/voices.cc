// shoal voices: what can be heard, and changing it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "audio/clip.h"
#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/nearest.h"
#include "cli/session.h"
#include "shoal/model.h"
#include "shoal/settings.h"
#include "shoal/stored_voices.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kBuiltIn = "built-in";  // what `shoal say --voice` calls the model's own voice

struct VoicesOptions {
  std::string references_dir, model;
  std::string name, new_name;
  std::string audio_path, text, text_path;
  bool json = false;

  // Where the engine would look, unless the options say otherwise.
  std::unique_ptr<ClipVoices> voices() const {
    EngineConfig config = resolve_settings(process_settings({}, "")).config;
    if (!model.empty()) config.model = model;
    if (!references_dir.empty()) config.references_dir = references_dir;
    return clip_voices(config);
  }
};

// File names may hold any bytes, JSON only UTF-8.
void print_json(const ordered_json& value) {
  std::cout << value.dump(1, ' ', false, ordered_json::error_handler_t::replace) << std::endl;
}

void print_line(const VoiceExamination& voice) {
  if (voice.problem.empty()) {
    std::printf("%-20s %lld clip%s, %.1f s%s\n", voice.name.c_str(), static_cast<long long>(voice.clips),
                voice.clips == 1 ? "" : "s", voice.seconds, voice.fixed ? ", comes with the model" : "");
  } else {
    std::printf("%-20s unusable: %s\n", voice.name.c_str(), voice.problem.c_str());
  }
}

// Voices of a model that has its own, from the headers of their files.
void print_model_voices(const std::string& model, bool json) {
  const ModelVoices own = model_voices(model);
  ordered_json list = ordered_json::array();
  for (const auto& [name, language, is_default] : own.voices) {
    list.push_back({{"id", name}, {"kind", "model"}, {"language", language}, {"default", is_default}});
    if (!json)
      std::printf("%-20s %-6s%s\n", name.c_str(), language.c_str(),
                  is_default ? " default of its language" : "");
  }
  if (json)
    print_json(list);
  else if (list.empty())
    std::printf("no voices in %s\n", own.dir.c_str());
}

void print_voices(const VoicesOptions& options) {
  const std::string model = chosen_model(options.model);
  if (options.references_dir.empty() && traits_of(model).own_voices)
    return print_model_voices(model, options.json);
  const std::unique_ptr<ClipVoices> voices = options.voices();
  if (!options.model.empty() && !is_directory(voices->model_dir()))
    fail(ErrorCode::invalid_argument, "model: ", printable(options.model),
         " has no voices of its own; those of other models lie in --references-dir");
  const std::vector<VoiceExamination> named = voices->examine_all();
  const bool none_added = std::ranges::all_of(named, &VoiceExamination::fixed);
  const std::string path = model.empty() ? built_in_voice_dir() : model;
  if (options.json) {
    ordered_json list = ordered_json::array();
    list.push_back({{"id", kBuiltIn}, {"kind", "model"}, {"path", path}});
    for (const VoiceExamination& v : named) {
      list.push_back({{"id", v.name},
                      {"kind", "reference"},
                      {"fixed", v.fixed},
                      {"clips", v.clips},
                      {"seconds", v.seconds},
                      {"problem", v.problem}});
    }
    print_json(list);
    return;
  }
  std::printf("%-20s %s (%s)\n", kBuiltIn,
              model.empty() ? "the voice that ships with Shoal: English, a man, 16 kHz" : "the model's own",
              path.c_str());
  for (const VoiceExamination& v : named) print_line(v);
  if (none_added) {
    std::printf(
        "no voices of yours in %s; to add one: shoal voices add ann --audio clip.wav --text \"Its words.\"\n",
        voices->dir().c_str());
  }
}

void show_voice(const VoicesOptions& options) {
  const std::vector<VoiceClip> clips = options.voices()->clips(options.name);
  if (options.json) {
    ordered_json list = ordered_json::array();
    for (const VoiceClip& clip : clips)
      list.push_back({{"file", clip.audio_path}, {"transcript", clip.transcript}});
    print_json({{"id", options.name}, {"clips", list}});
    return;
  }
  for (const VoiceClip& clip : clips) {
    const std::string_view words(clip.transcript.data(), clip.transcript.find_last_not_of(" \t\r\n") + 1);
    std::cout << clip.audio_path << ": " << words << '\n';
  }
  std::cout.flush();
}

void refuse_built_in(const std::string& name) {
  if (name == kBuiltIn)
    fail(ErrorCode::already_exists, "voice \"", kBuiltIn, "\": is the model's own; choose another name");
}

// Reads a file without the trailing line ends that editors add: the words are used verbatim.
std::string words_of(const VoicesOptions& options) {
  if (options.text.empty() == options.text_path.empty())
    fail(ErrorCode::invalid_argument,
         "text: give the words spoken in the clip with --text or with --text-file");
  if (options.text_path.empty()) return options.text;
  std::string words = read_file(options.text_path, kMaxTranscriptBytes);
  words.resize(words.find_last_not_of("\r\n") + 1);
  return words;
}

void add_voice(const VoicesOptions& options) {
  refuse_built_in(options.name);
  check_voice_name(options.name);  // before any file is read
  const std::string words = words_of(options);
  const std::string sound = read_file(options.audio_path, audio::ClipLimits{}.max_file_bytes);
  const std::unique_ptr<ClipVoices> voices = options.voices();
  voices->add(options.name, sound, words);
  print_line(voices->examine(options.name));
}

void rename_voice(const VoicesOptions& options) {
  refuse_built_in(options.new_name);
  options.voices()->rename(options.name, options.new_name);
}

void remove_voice(const VoicesOptions& options) { options.voices()->remove(options.name); }

// The nearest name beside that of a voice that is not there.
void run_with_nearest(const VoicesOptions& options, void (*run)(const VoicesOptions&)) {
  try {
    run(options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found || !error.message().starts_with("voice ")) throw;
    std::vector<std::string> names;
    for (const VoiceInfo& voice : options.voices()->list()) names.push_back(voice.name);
    throw Error(error.code(), error.message() + did_you_mean(options.name, names));
  }
}

using Options = std::shared_ptr<VoicesOptions>;

void add_references_dir(CLI::App& command, const Options& options) {
  command
      .add_option("--references-dir", options->references_dir,
                  "folder of named voices: NAME/clip.wav with NAME/clip.lab; default: the setting "
                  "references_dir (references)")
      ->type_name("DIR");
}

// A subcommand about one voice.
CLI::App& add_action(CLI::App& voices, const Options& options, const char* action, const char* help,
                     void (*run)(const VoicesOptions&)) {
  CLI::App& command = *voices.add_subcommand(action, help);
  command.add_option("name", options->name, "the voice: letters, digits, '-', '_' and ' '")->required();
  add_references_dir(command, options);
  command.callback([options, run] { run_with_nearest(*options, run); });
  return command;
}

}  // namespace

void add_voices(CLI::App& app) {
  const auto options = std::make_shared<VoicesOptions>();
  CLI::App& command = *app.add_subcommand("voices", "List, add, rename and remove voices");
  command.footer(
      "Examples:\n"
      "  shoal voices\n"
      "  shoal voices --model /models/Kokoro-82M\n"
      "  shoal voices add ann --audio ann.wav --text \"The words spoken in ann.wav.\"\n"
      "  shoal say \"In Ann's voice.\" --voice ann -o out.wav\n"
      "  shoal voices rename ann \"Ann Smith\"");
  add_references_dir(command, options);
  command.add_option("--model", options->model, "a model: list its own voices, too")->type_name("DIR");
  command.add_flag("--json", options->json, "print the list as JSON");
  command.require_subcommand(0, 1);
  command.callback([options, &command] {
    if (command.get_subcommands().empty()) print_voices(*options);
  });

  CLI::App& add =
      add_action(command, options, "add", "Add a voice: a clip and the words spoken in it", add_voice);
  add.add_option("--audio", options->audio_path, "the clip: wav, flac, ogg, mp3 or aiff, 0.2 to 120 s")
      ->type_name("FILE")
      ->required();
  add.add_option("--text", options->text, "the words spoken in the clip")->type_name("WORDS");
  add.add_option("--text-file", options->text_path, "the same from a file (UTF-8)")->type_name("FILE");
  add.footer(
      "Examples:\n"
      "  shoal voices add ann --audio ann.flac --text \"The words spoken in ann.flac.\"\n"
      "  shoal voices add ann --audio ann.mp3 --text-file ann.txt --references-dir /srv/voices");

  CLI::App& rename = add_action(command, options, "rename", "Give a voice another name", rename_voice);
  rename.add_option("new_name", options->new_name, "its new name")->required();
  rename.footer("Example:\n  shoal voices rename ann \"Ann Smith\"");

  CLI::App& remove = add_action(command, options, "remove", "Delete a voice with its clips", remove_voice);
  remove.footer("Example:\n  shoal voices remove ann");

  CLI::App& show =
      add_action(command, options, "show", "Print the clips of a voice and their words", show_voice);
  show.add_flag("--json", options->json, "print them as JSON");
  show.footer("Example:\n  shoal voices show ann --json");
}

}  // namespace shoal::cli
