// shoal say: text to a sound file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "audio/clip.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/engine_settings.h"
#include "cli/formats_json.h"
#include "cli/input_text.h"
#include "cli/integer_option.h"
#include "cli/interrupt.h"
#include "cli/number_option.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/remarks.h"
#include "cli/voice_choice.h"
#include "shoal/engine.h"
#include "shoal/model.h"
#include "shoal/stored_voices.h"

namespace shoal::cli {
namespace {

struct SayOptions {
  InputText input;
  OutputOptions output;
  std::vector<std::string> clips, clip_texts;
  std::vector<std::string> speakers;  // NUMBER=VOICE
  SpeechRequest request;              // from the options, except text and references
  uint64_t seed = 42;                 // the official command line's default
  std::string normalise = "auto", special_tokens;
  bool json = false, quiet = false;
  bool phonemes = false;  // the text is phonemes
  EngineSettings settings;
};

// The clips of --reference, checked before seconds are spent on loading a model.
std::vector<ReferenceClip> read_clips(const SayOptions& options) {
  if (options.clips.size() != options.clip_texts.size()) {
    fail(ErrorCode::invalid_argument, "reference: ", options.clips.size(), " --reference but ",
         options.clip_texts.size(), " --reference-text; each clip needs the words spoken in it");
  }
  std::vector<ReferenceClip> clips;
  for (size_t i = 0; i < options.clips.size(); ++i) {
    const std::string name = "reference " + options.clips[i];
    ReferenceClip clip{.audio = read_file(options.clips[i], audio::ClipLimits().max_file_bytes),
                       .text = options.clip_texts[i]};
    check_reference(clip, name);
    clips.push_back(std::move(clip));
  }
  return clips;
}

SpeakerVoice speaker_voice(const std::string& text, const ResolvedSettings& settings) {
  SpeakerVoice speaker;
  try {
    speaker = parse_speaker_voice(text);
  } catch (const Error& error) {
    fail(error.code(), "speaker: ", error.message());
  }
  speaker.voice = chosen_voice(speaker.voice, settings, false);
  return speaker;
}

SpeechRequest request_of(const SayOptions& options, const ResolvedSettings& settings) {
  SpeechRequest request = options.request;
  request.seed = options.seed;
  (options.phonemes ? request.phonemes : request.text) = options.input.read();
  if (options.normalise != "auto") request.normalise = options.normalise == "on";
  if (!options.special_tokens.empty()) request.special_tokens = options.special_tokens == "recognise";
  request.delivery = options.output.wants_stream() ? Delivery::streaming : Delivery::whole;
  request.references = read_clips(options);
  request.voice = chosen_voice(request.voice, settings, !request.references.empty());
  for (const std::string& speaker : options.speakers)
    request.voices.push_back(speaker_voice(speaker, settings));
  validate_request(request, settings.config.model);
  return request;
}

void print_json(const SayOptions& options, const Health& health, const SpeechSummary& s, double load_s) {
  nlohmann::ordered_json summary = {
      {"output", options.output.path},
      {"model", health.model},
      {"seed", s.seed},
      {"sample_rate_hz", s.sample_rate_hz},
      {"audio_s", s.audio_s()},
      {"utterances", s.utterances},
      {"prompt_columns", s.prompt_columns},
      {"cached_columns", s.cached_columns},
      {"frames", s.frames},
      {"cut_at_frames", s.cut_at_frames},
      {"load_s", load_s},
      {"prepared_s", s.prepared_s},
      {"first_audio_s", s.first_audio_s},
      {"total_s", s.total_s},
      {"real_time_factor", s.real_time_factor()},
      {"warnings", s.warnings},
      {"frames_per_s", s.total_s > 0 ? static_cast<double>(s.frames) / s.total_s : 0},
  };
  add_formats(summary, health.formats);
  // With the sound on standard output the summary goes to standard error.
  (options.output.path == "-" ? std::cerr : std::cout) << summary.dump(1) << std::endl;
}

std::string figures(double frames, double audio_s, double elapsed_s) {
  char line[96];
  std::snprintf(line, sizeof line, "%.1f s of speech, %.0f frames/s, %.1fx real time", audio_s,
                frames / elapsed_s, audio_s / elapsed_s);
  return line;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void warn(const SpeechSummary& summary) {
  for (const std::string& warning : summary.warnings) std::fprintf(stderr, "shoal: %s\n", warning.c_str());
  if (summary.cut_at_frames == 0) return;
  std::fprintf(stderr,
               "shoal: an utterance was cut after %lld frames (--max-new-tokens, or the model's context); "
               "words may be missing\n",
               static_cast<long long>(summary.cut_at_frames));
}

// Writes the samples as they come; an interrupt ends the request with Error(cancelled).
void write_speech(Speech& speech, Output& output, ProgressBar& bar, const InterruptGuard& interrupt) {
  constexpr std::chrono::milliseconds kPatience{50};
  const auto started = std::chrono::steady_clock::now();
  while (true) {
    if (interrupt.received()) speech.cancel();
    const SpeechProgress p = speech.progress();
    bar.show(p.fraction, figures(static_cast<double>(p.frames), p.audio_s, seconds_since(started)));
    const auto samples = speech.try_next(kPatience);
    if (!samples) continue;
    if (samples->empty()) return;
    output.write(*samples);
  }
}

void say(const SayOptions& options) {
  if (options.quiet) show_remarks(LogLevel::error);
  if (options.settings.wants_print()) {
    std::cout << print_settings(options.settings.resolve());
    return;
  }
  const ResolvedSettings settings = options.settings.resolve();
  const SpeechRequest request = request_of(options, settings);
  const EngineConfig config = config_for_one(settings.config, request);
  Output output(options.output);

  const InterruptGuard interrupt;
  const auto started = std::chrono::steady_clock::now();
  Engine engine(config);
  engine.start();
  const double load_s = seconds_since(started);
  output.open(engine.sample_rate_hz(), [&] { return interrupt.received(); });
  interrupt.remove_if_killed(output.unfinished_path());
  const bool watched = wants_progress(options.quiet || options.json);
  ProgressBar bar(watched);
  Speech speech = engine.submit(request);
  write_speech(speech, output, bar, interrupt);
  output.finish();
  interrupt.remove_if_killed("");
  bar.clear();

  const SpeechSummary summary = speech.summary();
  if (!options.quiet) warn(summary);
  if (options.json) print_json(options, engine.health(), summary, load_s);
  if (watched) {
    const std::string line = figures(static_cast<double>(summary.frames), summary.audio_s(), summary.total_s);
    std::fprintf(stderr, "%s: %s, first audio after %.0f ms\n", output.name().c_str(), line.c_str(),
                 summary.first_audio_s * 1e3);
  }
}

void add_phoneme_options(CLI::App& command, SayOptions& o) {
  const char* group = "Kokoro";
  command
      .add_option("--lang", o.request.language,
                  "of the text: en-us, en-gb, es, fr-fr, hi, it, pt-br; default: the voice's")
      ->group(group);
  command.add_flag("--phonemes", o.phonemes, "the text is phonemes (see `shoal phonemize`)")->group(group);
  command
      .add_flag("--strict-phonemes", o.request.strict_phonemes,
                "phonemes that the model lacks are an error (otherwise dropped with a warning)")
      ->group(group);
  command
      .add_flag("--trim-joins,!--no-trim-joins", o.request.trim_joins,
                "cut long silence between the chunks of a text (default: true)")
      ->group(group);
}

void add_sampling_options(CLI::App& command, SayOptions& o) {
  add_integer(command, "--seed", {}, store_in(o.seed), "same seed, same sound")
      ->default_str("42")
      ->group("Sampling");
  add_number(command, "--temperature", {}, store_number_in(o.request.temperature),
             "0 to 2; default: the model's own (0.8)")
      ->group("Sampling");
  add_number(command, "--top-p", {}, store_number_in(o.request.top_p),
             "0 to 1; 0 is greedy; default: the model's own (0.8)")
      ->group("Sampling");
  add_number(command, "--repetition-penalty", {}, store_number_in(o.request.repetition_penalty),
             "above 0, at most 2; default: the model's own (1.1)")
      ->group("Sampling");
  add_integer(command, "--top-k", {0, std::numeric_limits<int>::max()}, store_in(o.request.top_k),
              "keep only the K likeliest; 0: no limit (S2 models: 30)")
      ->group("Sampling");
  add_integer(command, "--max-new-tokens", {0, 1 << 20}, store_in(o.request.max_new_tokens),
              "most frames of one utterance; 0: up to the context limit")
      ->default_str(std::to_string(o.request.max_new_tokens))
      ->group("Sampling");
  command
      .add_flag("--penalise-window", o.request.quirks.penalise_window_semantics,
                "penalise the semantic tokens of the last 16 frames (official: one frame, 16 back)")
      ->group("Official quirks");
  command
      .add_flag("--end-at-first-frame", o.request.quirks.check_first_frame_end,
                "let the first frame end an utterance (official: ignored)")
      ->group("Official quirks");
  command
      .add_flag("--keep-last-frame", o.request.quirks.keep_last_frame_without_end,
                "keep the last frame when the length ran out (official: dropped)")
      ->group("Official quirks");
}

}  // namespace

void add_say(CLI::App& app) {
  auto options = std::make_shared<SayOptions>();
  SayOptions& o = *options;
  CLI::App& command = *app.add_subcommand("say", "Speak a text, into a sound file or to be heard");
  command.footer(
      "Examples:\n"
      "  shoal say \"Hello there.\"                    plays it\n"
      "  shoal say \"Hello there.\" -o hello.wav\n"
      "  shoal say --file chapter.txt -o chapter.mp3 --seed 7\n"
      "  shoal say \"Hello there.\" --model /models/Kokoro-82M --voice af_heart --speed 1.2 -o hello.wav\n"
      "  shoal say \"In your voice.\" --reference me.flac --reference-text \"What I say there.\" -o out.wav\n"
      "  shoal say \"<|speaker:0|>Hello. <|speaker:1|>Hi.\" --model /models/s2-pro --speaker 0=clara "
      "--speaker 1=hugo -o talk.wav\n"
      "  echo \"To a player.\" | shoal say - -o - | aplay");
  o.input.add_to(command);
  command.add_option("-o,--output", o.output.path,
                     "sound file; - is standard output, written as the sound is made; default: in a terminal "
                     "the sound is played");
  command
      .add_option("--player", o.output.player,
                  "program that plays it: paplay, pw-play, aplay, ffplay, play, mpv; default: the first "
                  "that is there")
      ->type_name("NAME");
  command.add_option("--format", o.output.format,
                     "wav, pcm, flac, opus (or ogg), mp3, aac, or for telephones ulaw, alaw; default: the "
                     "file's ending");
  command.add_flag("--stream", o.output.stream,
                   "write the file piece by piece instead of replacing it at the end");
  command
      .add_option("--reference", o.clips,
                  "clip of the voice to follow (wav, flac, ogg, mp3, aiff); repeatable")
      ->allow_extra_args(false);  // the text may follow
  command
      .add_option("--reference-text", o.clip_texts, "the words spoken in the clip, one for each --reference")
      ->allow_extra_args(false);
  command.add_option(
      "--voice", o.request.voice,
      "a named voice of --references-dir or of the model; default: the model's own; OpenAI's name for "
      "one of the model's (nova, onyx); of a Kokoro model: af_heart, "
      "\"af_bella(2)+af_sky(1)\" (see `shoal voices`)");
  command
      .add_option("--speaker", o.speakers,
                  "the voice of a speaker of the text, of an S2 model: 0=clara for the turns after "
                  "<|speaker:0|>; repeatable; with --reference the first clip is speaker 0's")
      ->type_name("N=VOICE")
      ->allow_extra_args(false);
  add_integer(command, "--chunk-length", {0, 1000}, store_in(o.request.chunk_length),
              "longest piece, in bytes, that a long text is split into: 50 to 1000; 0: never split")
      ->default_str(std::to_string(o.request.chunk_length));
  add_number(command, "--speed", {}, store_number_in(o.request.speed),
             "0.25 to 4: 2 is twice as fast, at the same pitch")
      ->default_str("1");
  add_number(command, "--volume", {}, store_number_in(o.request.volume),
             "0 to 10: 2 is twice the samples (6 dB louder); clipped beyond full scale")
      ->default_str("1");
  command
      .add_option("--normalize", o.normalise,
                  "speak English numbers, dates, money as words: auto (the model's default), on, off")
      ->check(one_of({"auto", "on", "off"}))
      ->capture_default_str();
  command
      .add_option("--special-tokens", o.special_tokens,
                  "spellings like <|im_end|> in the text: recognise, text")
      ->check(one_of({"recognise", "text"}))
      ->default_str("recognise");
  add_phoneme_options(command, o);
  add_sampling_options(command, o);
  o.settings.add_to(command,
                    {"model", "device", "precision", "weights", "kv_precision", "codec_weights", "threads",
                     "codec_threads", "semantic_only", "references_dir", "cache_dir", "dictionaries_dir",
                     "phonemizer", "phonemizer_timeout_ms", "first_chunk_words"});
  o.settings.add_config_to(command);
  command.add_flag("--strict", o.request.strict,
                   "what the model has no use for or has not learned is an error (otherwise a warning)");
  command.add_flag("--json", o.json, "print a summary as JSON");
  command.add_flag("-q,--quiet", o.quiet, "no progress, no warnings");
  command.callback([options] { say(*options); });
}

}  // namespace shoal::cli
