// Everything that can be set about an engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal {

// automatic: the fastest whose measured cost is nil (docs/QUANTISATION.md): bfloat16 for 16-bit checkpoints
// and, on devices made for it, for Kokoro's; else float32. float16 needs a GPU.
enum class Precision { automatic, float32, bfloat16, float16 };

// How the matrices of a language model's layers are kept. automatic: in its precision. int8: 8 bits a weight,
// with a scale for each output. int4: 4 bits, with a scale and a minimum for each group of 64 inputs of an
// output (or as many as the folder of a quantised model says). fp8: e4m3, with a scale for each output; needs
// a GPU. On a CPU inputs are rounded to 8 bits too, in groups of 128 with a scale of their own; a GPU needs
// 16-bit precision. Embeddings, heads, norms and the codec keep their precision. All need a language model.
enum class WeightFormat { automatic, int8, int4, fp8 };
enum class KvPrecision { automatic, model, int8 };

// How the matrices and convolutions of a language model's codec are kept. automatic: in its precision, or as
// the folder keeps them. int8: 8 bits a weight, with a scale for each output; before each product they are
// widened to 16 bits, so this is for memory. Needs a GPU and 16-bit precision: elsewhere the 8 bits of a
// folder are widened while it is loaded.
enum class CodecWeights { automatic, int8 };

// Plain values with the defaults of a small server. docs/SETTINGS.md lists them with their flags, environment
// variables and keys of a TOML file; settings.h reads those.
struct EngineConfig {
  std::string model;            // folder in an official layout; empty: the built-in voice
  std::string device = "auto";  // auto, cpu; cuda, cuda:N in builds that have it
  Precision precision = Precision::automatic;
  WeightFormat weights = WeightFormat::automatic;
  KvPrecision kv_precision = KvPrecision::automatic;  // of keys and values; automatic: the model's
  CodecWeights codec_weights = CodecWeights::automatic;
  bool cuda_graphs = true;     // false: plain launches, for debugging; no effect on a CPU
  bool semantic_only = false;  // never sample text tokens (official S1 code samples over everything)

  // CPU threads in all; 0: every CPU this process may run on. A quarter as many more work while clips are
  // encoded.
  int threads = 0;
  // How many of them belong to the codec. 0: none, the language model's threads run it between steps. -1:
  // three eighths, or none when there are fewer than eight.
  int codec_threads = -1;
  // How many of a GPU's multiprocessors belong to a language model's codec while 48 to 80 sequences speak,
  // rounded up to what the GPU can cut; the others decode. 0: none, both take turns on all of them. -1: 64 of
  // 132 (H100, H200) beside a model of S1-mini's size, where it was measured, otherwise none.
  int codec_multiprocessors = -1;

  // Sequences that one step advances by a frame.
  int max_batch_size = 32;
  // Requests in generation at once, including those with a slow reader or with sound still to decode; 0:
  // twice max_batch_size. Each needs the state of a codec stream.
  int max_streams = 0;
  // Requests that may wait to be admitted; one more is refused with resource_exhausted.
  int max_queue = 256;
  // How long admission may delay a request to batch it with others. With continuous batching waiting gains
  // little.
  int batch_timeout_ms = 0;
  // Waiting requests of one voice are admitted together.
  bool batch_grouping = true;
  // Prompt columns that one step may prefill beside the running sequences; 0: 256 where CPU threads compute,
  // otherwise so many that a step has at most 32 rows for each of max_batch_size, 256 to 2,048 in all,
  // running sequences included.
  int prefill_columns = 0;
  // Kokoro: chunks that arrive while nothing runs wait at least min_wait_ms for others to batch with. They
  // wait longer while recent arrivals make more likely, at most max_wait_ms.
  int min_wait_ms = 0;
  int max_wait_ms = 10;
  // Kokoro: estimated frames (25 ms of sound) of one batch; 0: 400 where CPU threads compute, otherwise
  // 8,000. A longer chunk runs alone.
  int max_batch_frames = 0;

  // Memory for keys and values in MiB; 0: kv_memory_fraction of the memory that is free after the model is
  // loaded.
  int64_t kv_memory_mb = 0;
  double kv_memory_fraction = 0.25;
  int kv_page_size = 32;  // tokens
  // Keep the keys and values of prompts for requests that begin alike.
  bool prefix_cache = true;
  // Voices whose prompt prefixes are kept.
  int kv_cache_size = 100;

  // Named voices: NAME/clip.wav with its words in NAME/clip.lab.
  std::string references_dir = "references";
  // Encoded clips kept in memory.
  int reference_cache_size = 1000;
  // Encoded clips on disk; empty: $XDG_CACHE_HOME/shoal or ~/.cache/shoal. "none": nowhere.
  std::string cache_dir;
  // Most MiB of them; the longest unused are removed. 0: no limit.
  int64_t cache_disk_mb = 256;
  // Voices encoded in the background once the engine is ready: "none", "all", or names separated by commas.
  std::string warm_voices = "none";
  // Load the codec's encoder, which reference clips need. Named voices without it are an error.
  bool with_encoder = true;

  // Kokoro: the voice of requests that name none; empty: the published one of their language.
  std::string default_voice;
  // Kokoro: the language of texts that name none ("a", "en-us", ...); empty: that of the voice.
  std::string default_language;
  // Kokoro: folder with misaki's us_gold.json, us_silver.json, gb_gold.json, gb_silver.json; empty: none.
  std::string dictionaries_dir;
  // Kokoro: the shoal-phonemizer program; empty: the one beside this program.
  std::string phonemizer;
  int phonemizer_helpers = 2;        // of its processes at most, and threads that read texts
  int phonemizer_timeout_ms = 5000;  // for one answer
  // Kokoro: words of the first chunk of a text at most, so that it is heard soon; 0: as many as fit.
  int first_chunk_words = 10;

  // Deadline of a request that names none; 0: none.
  int request_timeout_s = 60;
  // Seconds of sound that may wait for a slow reader before its sequence pauses.
  double prefetch_s = 20;
  // When memory runs out: drop cached voices and prefixes and try once more before failing any request.
  bool drop_cache_on_oom = true;
  // Speak a sentence before the engine says it is ready.
  bool warm_up = true;

  // Ranges and combinations, without touching disk or device. Throws Error(invalid_argument or unsupported)
  // naming the field, its range and its value.
  void validate() const;
  bool operator==(const EngineConfig&) const = default;
  int streams() const { return max_streams > 0 ? max_streams : 2 * max_batch_size; }
};

// "auto", "float32", "bfloat16", "float16". Throws Error(invalid_argument).
Precision parse_precision(std::string_view name);
std::string_view name_of(Precision precision);

// "auto", "int8", "int4", "fp8". Throws Error(invalid_argument).
WeightFormat parse_weight_format(std::string_view name);
std::string_view name_of(WeightFormat format);

// "auto", "model", "int8". Throws Error(invalid_argument); Error(unsupported) for "fp8".
KvPrecision parse_kv_precision(std::string_view name);
std::string_view name_of(KvPrecision precision);

// "auto", "int8". Throws Error(invalid_argument); Error(unsupported) for "int4" and "fp8".
CodecWeights parse_codec_weights(std::string_view name);
std::string_view name_of(CodecWeights weights);

}  // namespace shoal
