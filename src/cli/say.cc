// shoal say: text to a sound file.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "runtime/synthesizer.h"

namespace shoal::cli {
namespace {

struct SayOptions {
  std::string text, text_file;
  OutputOptions output;
  std::string model, precision;
  std::vector<std::string> clips, clip_texts;
  std::string voice, references_dir = "references";
  std::optional<float> temperature, top_p, repetition_penalty;
  std::optional<int> top_k;
  int64_t seed = 42;  // the official command line's default
  int64_t max_new_tokens = 1024;
  int chunk_length = 200;
  std::string normalise = "auto", special_tokens = "recognise";
  dual_ar::Quirks quirks;
  bool json = false, quiet = false;
  ComputeOptions compute;
};

std::string read_standard_input(size_t max_bytes) {
  std::string text;
  char block[1 << 16];
  while (true) {
    const ssize_t got = read(STDIN_FILENO, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorCode::io, "standard input: cannot be read: ", std::strerror(errno));
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (text.size() > max_bytes)
      fail(ErrorCode::too_large, "text: more than ", max_bytes, " bytes on standard input");
  }
}

std::string text_of(const SayOptions& options) {
  if (!options.text.empty() && !options.text_file.empty()) {
    fail(ErrorCode::invalid_argument, "text: give it as an argument or with --file, not both");
  }
  if (!options.text_file.empty()) return read_file(options.text_file, runtime::kMaxTextBytes);
  if (options.text == "-") return read_standard_input(static_cast<size_t>(runtime::kMaxTextBytes));
  return options.text;
}

// (clip path, transcript) pairs from --reference/--reference-text or --voice.
std::vector<runtime::NamedClip> wanted_clips(const SayOptions& options) {
  if (options.clips.size() != options.clip_texts.size()) {
    fail(ErrorCode::invalid_argument, "reference: ", options.clips.size(), " --reference but ",
         options.clip_texts.size(), " --reference-text; each clip needs the words spoken in it");
  }
  std::vector<runtime::NamedClip> clips;
  if (options.voice == "built-in") return {};  // the model speaks for itself
  if (!options.voice.empty()) {
    if (!options.clips.empty())
      fail(ErrorCode::invalid_argument, "voice: give --voice or --reference, not both");
    return runtime::find_voice(options.references_dir, options.voice);
  }
  for (size_t i = 0; i < options.clips.size(); ++i)
    clips.push_back({options.clips[i], options.clip_texts[i]});
  return clips;
}

// A clip as it was decoded, before any model is loaded.
struct DecodedClip {
  std::string name, transcript;
  audio::Clip sound;
};

std::vector<DecodedClip> decode_clips(const std::vector<runtime::NamedClip>& clips) {
  const runtime::ReferenceLimits limits;
  std::vector<DecodedClip> decoded;
  for (const runtime::NamedClip& clip : clips) {
    DecodedClip d{"reference " + clip.audio_path, clip.transcript,
                  audio::read_clip(clip.audio_path, {.max_seconds = limits.max_seconds})};
    runtime::check_reference(d.sound, d.transcript, d.name, limits);
    decoded.push_back(std::move(d));
  }
  return decoded;
}

// What the options say, over the defaults in `request`.
void apply(const SayOptions& options, const std::string& text, runtime::SpeechRequest& request) {
  dual_ar::Sampling& sampling = request.sampling;
  sampling.temperature = options.temperature.value_or(sampling.temperature);
  sampling.top_p = options.top_p.value_or(sampling.top_p);
  sampling.repetition_penalty = options.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.top_k = options.top_k.value_or(sampling.top_k);
  sampling.seed = static_cast<uint64_t>(options.seed);
  sampling.quirks = options.quirks;
  request.text = text;
  request.max_new_tokens = options.max_new_tokens;
  request.chunk_length = options.chunk_length;
  if (options.normalise != "auto") request.normalise = options.normalise == "on";
  request.special_tokens =
      options.special_tokens == "text" ? text::SpecialTokens::as_text : text::SpecialTokens::recognise;
}

// Bad values fail here, before seconds are spent on loading a model.
void check_early(const SayOptions& options, const std::string& text) {
  if (options.seed < 0) fail(ErrorCode::invalid_argument, "seed: expected 0 or more, got ", options.seed);
  output_format(options.output);
  parse_precision(chosen_precision(options.precision));
  runtime::SpeechRequest request;
  apply(options, text, request);
  runtime::validate(request);
}

void print_json(const SayOptions& options, const runtime::SpeechModel& model,
                const runtime::SpeechStatistics& s, double load_s) {
  const nlohmann::ordered_json summary = {
      {"output", options.output.path},
      {"model", model.name()},
      {"precision", model.precision() == DType::f32 ? "float32" : "bfloat16"},
      {"seed", options.seed},
      {"sample_rate_hz", s.sample_rate_hz},
      {"audio_s", s.audio_s()},
      {"utterances", s.utterances},
      {"prompt_columns", s.prompt_columns},
      {"frames", s.frames},
      {"cut_at_frames", s.cut_at_frames},
      {"load_s", load_s},
      {"first_audio_s", s.first_audio_s},
      {"prefill_s", s.prefill_s},
      {"decode_s", s.decode_s},
      {"codec_s", s.codec_s},
      {"total_s", s.total_s},
      {"real_time_factor", s.real_time_factor()},
      {"frames_per_s", s.decode_s > 0 ? static_cast<double>(s.frames) / s.decode_s : 0},
  };
  // With the sound on standard output the summary goes to standard error.
  (options.output.path == "-" ? std::cerr : std::cout) << summary.dump(1) << std::endl;
}

std::string figures(double frames, double audio_s, double elapsed_s) {
  char line[96];
  std::snprintf(line, sizeof line, "%.1f s of speech, %.0f frames/s, %.1fx real time", audio_s,
                frames / elapsed_s, audio_s / elapsed_s);
  return line;
}

void warn_of_cut(const runtime::SpeechStatistics& statistics) {
  if (statistics.cut_at_frames == 0) return;
  std::fprintf(stderr,
               "shoal: an utterance was cut after %lld frames (--max-new-tokens, or the model's context); "
               "words may be missing\n",
               static_cast<long long>(statistics.cut_at_frames));
}

void say(const SayOptions& options) {
  const std::string text = text_of(options);
  check_early(options, text);
  const std::vector<DecodedClip> clips = decode_clips(wanted_clips(options));

  const InterruptGuard interrupt;
  ComputeSession session(options.compute);
  const auto started = std::chrono::steady_clock::now();
  const auto model =
      runtime::SpeechModel::load({.dir = options.model,
                                  .precision = parse_precision(chosen_precision(options.precision)),
                                  .with_encoder = !clips.empty(),
                                  .semantic_only = options.quirks.semantic_only},
                                 session.context());
  const double load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();

  runtime::Synthesizer synthesizer(*model, session.team());
  runtime::SpeechRequest request = runtime::default_request(*model);
  apply(options, text, request);
  const auto output = open_output(options.output, static_cast<int>(model->codec().config().sample_rate_hz));
  for (const DecodedClip& clip : clips) {
    request.references.push_back(
        runtime::encode_reference(*model, clip.sound, clip.transcript, clip.name, synthesizer.context()));
  }

  const bool watched = wants_progress(options.quiet || options.json);
  ProgressBar bar(watched);
  const runtime::SpeechStatistics statistics = synthesizer.speak(
      request, [&](std::span<const float> pcm) { output->write(pcm); },
      [&](const runtime::SpeechProgress& p) {
        bar.show(p.fraction, figures(static_cast<double>(p.frames), p.audio_s, p.elapsed_s));
        return !interrupt.received();
      });
  output->commit();
  bar.clear();
  if (!options.quiet) warn_of_cut(statistics);
  if (options.json) print_json(options, *model, statistics, load_s);
  if (watched) {
    const std::string line =
        figures(static_cast<double>(statistics.frames), statistics.audio_s(), statistics.total_s);
    std::fprintf(stderr, "%s: %s, first audio after %.0f ms\n", options.output.path.c_str(), line.c_str(),
                 statistics.first_audio_s * 1e3);
  }
}

void add_sampling_options(CLI::App& command, SayOptions& o) {
  command.add_option("--seed", o.seed, "same seed, same sound")->capture_default_str()->group("Sampling");
  command.add_option("--temperature", o.temperature, "0 to 2; default: the model's own (0.8)")
      ->group("Sampling");
  command.add_option("--top-p", o.top_p, "0 to 1; 0 is greedy; default: the model's own (0.8)")
      ->group("Sampling");
  command
      .add_option("--repetition-penalty", o.repetition_penalty,
                  "above 0, at most 2; default: the model's own (1.1)")
      ->group("Sampling");
  command.add_option("--top-k", o.top_k, "keep only the K likeliest; 0: no limit (S2 models: 30)")
      ->group("Sampling");
  command
      .add_option("--max-new-tokens", o.max_new_tokens,
                  "most frames of one utterance; 0: up to the context limit")
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_flag("--semantic-only", o.quirks.semantic_only,
                "never draw text tokens (the official S1 code may)")
      ->group("Official quirks");
  command
      .add_flag("--penalise-window", o.quirks.penalise_window_semantics,
                "penalise the semantic tokens of the last 16 frames (official: one frame, 16 back)")
      ->group("Official quirks");
  command
      .add_flag("--end-at-first-frame", o.quirks.check_first_frame_end,
                "let the first frame end an utterance (official: ignored)")
      ->group("Official quirks");
  command
      .add_flag("--keep-last-frame", o.quirks.keep_last_frame_without_end,
                "keep the last frame when the length ran out (official: dropped)")
      ->group("Official quirks");
}

}  // namespace

void add_say(CLI::App& app) {
  auto options = std::make_shared<SayOptions>();
  SayOptions& o = *options;
  CLI::App& command = *app.add_subcommand("say", "Speak a text into a sound file");
  command.footer(
      "Examples:\n"
      "  shoal say \"Hello there.\" -o hello.wav\n"
      "  shoal say --file chapter.txt -o chapter.mp3 --seed 7\n"
      "  shoal say \"In your voice.\" --reference me.flac --reference-text \"What I say there.\" -o out.wav\n"
      "  echo \"To a player.\" | shoal say - -o - | aplay");
  command.add_option("text", o.text, "what to say; - reads standard input");
  command.add_option("--file", o.text_file, "read the text from a file (UTF-8, at most 256 KiB)");
  command.add_option("-o,--output", o.output.path,
                     "sound file; - is standard output, written as the sound is made");
  command.add_option("--format", o.output.format, "wav, pcm, flac, opus, mp3; default: the file's ending");
  command.add_flag("--stream", o.output.stream,
                   "write the file piece by piece instead of replacing it at the end");
  command.add_option("--model", o.model, "model folder (S1-mini or S2 layout); default: the built-in voice")
      ->envname("SHOAL_MODEL");
  command.add_option("--precision", o.precision,
                     "auto, float32, bfloat16; default: $SHOAL_PRECISION, or auto");
  command.add_option("--reference", o.clips,
                     "clip of the voice to follow (wav, flac, ogg, mp3, aiff); repeatable");
  command.add_option("--reference-text", o.clip_texts,
                     "the words spoken in the clip, one for each --reference");
  command.add_option("--voice", o.voice, "a named voice of --references-dir (see `shoal voices`)");
  command.add_option("--references-dir", o.references_dir, "folder of named voices")->capture_default_str();
  command
      .add_option("--chunk-length", o.chunk_length,
                  "longest piece, in bytes, that a long text is split into; 0: never split")
      ->capture_default_str();
  command
      .add_option("--normalize", o.normalise,
                  "speak English numbers, dates, money as words: auto (the model's default), on, off")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  command
      .add_option("--special-tokens", o.special_tokens,
                  "spellings like <|im_end|> in the text: recognise, text")
      ->check(CLI::IsMember({"recognise", "text"}))
      ->capture_default_str();
  add_sampling_options(command, o);
  o.compute.add_to(command);
  command.add_flag("--json", o.json, "print a summary as JSON");
  command.add_flag("-q,--quiet", o.quiet, "no progress, no warnings");
  command.callback([options] { say(*options); });
}

}  // namespace shoal::cli
