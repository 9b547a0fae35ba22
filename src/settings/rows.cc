// The table itself.
#include "settings/table.h"

namespace shoal::settings {
namespace {

using E = EngineConfig;
using S = ServerConfig;

constexpr Allowed between(double low, double high) { return {low, high}; }
constexpr Allowed words(std::string_view list) { return {0, 0, list}; }
constexpr Allowed secret(std::string_view list) { return {0, 0, list, true}; }
constexpr Allowed kEither{};  // true or false
constexpr double kLongestPause = 24 * 3600;

constexpr Row kRows[] = {
    {"model", &E::model, "Model", words("a folder in an official layout"),
     "model to speak with; empty: the built-in voice"},
    {"device", &E::device, "Model", words("auto, cpu, cuda, cuda:N"), "where to compute"},
    {"precision", &E::precision, "Model", words("auto, float32, bfloat16, float16"),
     "of weights and activations; auto: bfloat16 for 16-bit checkpoints, for Kokoro also where the device is "
     "made for it, else float32; float16 needs a GPU"},
    {"weights", &E::weights, "Model", words("auto, int8, int4, fp8"),
     "of a language model's layers; auto: in the precision; int8: half the memory of bfloat16; int4: 28 % "
     "of it; fp8: as int8, on GPUs"},
    {"kv_precision", &E::kv_precision, "Model", words("auto, model, int8"),
     "of a language model's keys and values; auto: the model's; int8: half the memory of bfloat16"},
    {"codec_weights", &E::codec_weights, "Model", words("auto, int8"),
     "of a language model's codec; auto: in the precision, or as the folder has them; int8: half the memory "
     "of bfloat16, on a GPU"},
    {"cuda_graphs", &E::cuda_graphs, "Model", kEither,
     "CUDA graphs; plain launches are for debugging; no effect on a CPU"},
    {"semantic_only", &E::semantic_only, "Model", kEither,
     "never draw text tokens (the official S1 code may)"},

    {"threads", &E::threads, "Threads", between(0, 1024),
     "CPU threads in all, no more than CPUs that this process may use; 0: as many"},
    {"codec_threads", &E::codec_threads, "Threads", between(-1, 1024),
     "of these, threads of the codec alone; 0: none; -1: three eighths, or none of fewer than eight"},
    {"codec_multiprocessors", &E::codec_multiprocessors, "Threads", between(-1, 1024),
     "of a GPU, for a language model's codec alone while 48 to 80 speak; 0: none; -1: 64 of 132 (H100, "
     "H200) beside a model of S1-mini's size, otherwise none"},

    {"max_batch_size", &E::max_batch_size, "Batching", between(1, 1024),
     "sequences that one step advances by a frame"},
    {"max_streams", &E::max_streams, "Batching", between(0, 4096),
     "requests in generation at a time, slow readers included; 0: twice max_batch_size"},
    {"max_queue", &E::max_queue, "Batching", between(1, 1 << 20),
     "requests that may wait; one more is refused"},
    {"batch_timeout_ms", &E::batch_timeout_ms, "Batching", between(0, 60'000),
     "how long a request may be held back for company; with continuous batching waiting gains little"},
    {"batch_grouping", &E::batch_grouping, "Batching", kEither,
     "admit waiting requests of one voice together"},
    {"prefill_columns", &E::prefill_columns, "Batching", between(0, 1 << 16),
     "prompt columns that one step may prefill beside the running sequences; 0: 256 where CPU threads "
     "compute, otherwise so many that a step has at most 32 rows for each of max_batch_size, 256 to 2048 in "
     "all, running sequences included"},
    {"min_wait_ms", &E::min_wait_ms, "Batching", between(0, 60'000),
     "Kokoro: least wait for company of a text that comes while nothing runs"},
    {"max_wait_ms", &E::max_wait_ms, "Batching", between(0, 60'000),
     "Kokoro: the longest such wait, while recent arrivals promise company"},
    {"max_batch_frames", &E::max_batch_frames, "Batching", between(0, 1 << 20),
     "Kokoro: frames (25 ms of sound) of one batch; 0: 400 where CPU threads compute, otherwise 8000"},

    {"kv_memory_mb", &E::kv_memory_mb, "Memory", between(0, 1 << 24),
     "MiB for keys and values; 0: kv_memory_fraction of what is free"},
    {"kv_memory_fraction", &E::kv_memory_fraction, "Memory", between(0.01, 0.95),
     "share of the memory free after loading that keys and values take"},
    {"kv_page_size", &E::kv_page_size, "Memory", between(1, 1024), "tokens in a page of keys and values"},
    {"prefix_cache", &E::prefix_cache, "Memory", kEither,
     "keep keys and values of prompts for requests that begin alike"},
    {"kv_cache_size", &E::kv_cache_size, "Memory", between(1, 1 << 20),
     "most voices whose prompt prefixes are kept, within the memory for keys and values"},

    {"references_dir", &E::references_dir, "Voices", words("a folder"),
     "named voices: NAME/clip.wav with its words in NAME/clip.lab"},
    {"reference_cache_size", &E::reference_cache_size, "Voices", between(1, 1 << 24),
     "most encoded clips kept in memory"},
    {"cache_dir", &E::cache_dir, "Voices", words("a folder, none"),
     "encoded clips on disk; empty: $XDG_CACHE_HOME/shoal or ~/.cache/shoal; none: nowhere"},
    {"cache_disk_mb", &E::cache_disk_mb, "Voices", between(0, 1 << 24),
     "most MiB of encoded clips on disk, the longest unused are removed; 0: no limit"},
    {"warm_voices", &E::warm_voices, "Voices", words("none, all, names with commas between"),
     "voices encoded in the background once the engine is ready"},
    {"with_encoder", &E::with_encoder, "Voices", kEither,
     "load the codec's encoder, which reference clips need"},

    {"default_voice", &E::default_voice, "Phonemes", words("a voice, a mix of voices"),
     "Kokoro: voice of requests that name none; empty: the published one of their language"},
    {"default_language", &E::default_language, "Phonemes",
     words("a, b, e, f, h, i, p, en-us, en-gb, es, fr-fr, hi, it, pt-br"),
     "Kokoro: language of texts that name none; empty: that of the voice"},
    {"dictionaries_dir", &E::dictionaries_dir, "Phonemes", words("a folder"),
     "Kokoro: misaki's us_gold.json, us_silver.json, gb_gold.json, gb_silver.json; empty: none"},
    {"phonemizer", &E::phonemizer, "Phonemes", words("a program"),
     "Kokoro: shoal-phonemizer; empty: the one beside this program"},
    {"phonemizer_helpers", &E::phonemizer_helpers, "Phonemes", between(1, 64),
     "Kokoro: its processes at most, and threads that read texts"},
    {"phonemizer_timeout_ms", &E::phonemizer_timeout_ms, "Phonemes", between(1, 600'000),
     "Kokoro: for one answer of the phonemizer"},
    {"first_chunk_words", &E::first_chunk_words, "Phonemes", between(0, 100),
     "Kokoro: words of a text's first chunk at most, so that it is heard soon; 0: as many as fit"},

    {"request_timeout_s", &E::request_timeout_s, "Requests", between(0, 24 * 3600),
     "deadline of a request that names none, but not of a batch, which has max_timeout_s; a reader's own "
     "time "
     "does not count; 0: none"},
    {"prefetch_s", &E::prefetch_s, "Requests", between(1, 3600),
     "seconds of sound that may wait for a slow reader before its sequence pauses"},
    {"drop_cache_on_oom", &E::drop_cache_on_oom, "Requests", kEither,
     "out of memory: drop cached voices and prefixes and retry once before failing a request"},
    {"warm_up", &E::warm_up, "Requests", kEither, "speak a sentence before the engine says it is ready"},

    {"listen", &S::listen, "Server", words("host:port, [v6]:port"),
     "address of the server; 0.0.0.0:8080 and [::]:8080 are every interface; port 0: any that is free"},
    {"operator_listen", &S::operator_listen, "Server", words("host:port, [v6]:port"),
     "a second address, which answers /health, /ready, /ping, /metrics, statistics and /v1/admin alone, with "
     "connections and a thread of its own; empty: none"},
    {"wyoming", &S::wyoming, "Server", words("tcp://host:port, unix:///path, with commas between"),
     "where Home Assistant and others that speak the Wyoming protocol are answered; empty: nowhere"},
    {"wyoming_without_key", &S::wyoming_without_key, "Server", kEither,
     "allow addresses of wyoming beyond this machine although clients of HTTP need a key; the protocol has "
     "none"},
    {"ping_tells_loading", &S::ping_tells_loading, "Server", kEither,
     "GET /ping is 204 until the models are loaded, as RunPod reads it, not 503; to others 204 is healthy"},
    {"health_route", &S::health_route, "Server", words("a path"),
     "a further path that answers as /ready does, without a key; empty: none"},
    {"predict_route", &S::predict_route, "Server", words("a path"),
     "a path that speaks the instances of a Vertex AI prediction; empty: none"},
    {"http_threads", &S::http_threads, "Server", between(0, 256),
     "threads that move bytes; 0: one for every eight CPUs, at least one"},
    {"model_name", &S::model_name, "Server", words("a name"),
     "what clients call the model; empty: the model folder's name, shoal for the built-in voice"},
    {"models", &S::models, "Server", words("NAME=FOLDER with commas between"),
     "further models of the same process, each with an engine of its own; a request's model chooses"},
    {"model_ttl_s", &S::model_ttl_s, "Server", between(0, kLongestPause),
     "seconds after which a model of several that nobody has used is unloaded; its next request waits until "
     "it is loaded again; 0: never"},
    {"models_root", &S::models_root, "Server", words("a folder"),
     "models below it come by POST /models and go by DELETE /models/NAME, as SageMaker's multi-model "
     "endpoints "
     "ask; empty: those routes do not exist"},
    {"strict", &S::strict, "Server", kEither,
     "refuse by name what a model has no use for or has not learned; otherwise it has no effect, and the "
     "answer's warnings say so"},
    {"voice_aliases", &S::voice_aliases, "Server", words("NAME=VOICE with commas between"),
     "voices under further names, before OpenAI's (alloy, ...), which stand for voices that come with the "
     "model; of a name that stands there twice the first voice that a model has"},

    {"api_key", &S::api_key, "Keys and TLS", secret("printable ASCII without blanks"),
     "the key that clients send; empty, and no api_key_file: no key is asked for"},
    {"api_key_file", &S::api_key_file, "Keys and TLS", words("a file"),
     "keys of clients, a line for each: KEY or NAME:KEY, and limits behind it; lines that begin with # are "
     "remarks"},
    {"admin_key", &S::admin_key, "Keys and TLS", secret("printable ASCII without blanks"),
     "opens /v1/admin; empty, and no admin_key_file: those routes do not exist"},
    {"admin_key_file", &S::admin_key_file, "Keys and TLS", words("a file"),
     "the same as api_key_file for /v1/admin"},
    {"tls_certificate", &S::tls_certificate, "Keys and TLS", words("a PEM file"),
     "certificate and those that vouch for it; empty: plain HTTP"},
    {"tls_key", &S::tls_key, "Keys and TLS", words("a PEM file"), "private key of the certificate"},
    {"list_without_key", &S::list_without_key, "Keys and TLS", kEither,
     "GET /v1/audio/voices and /v1/audio/models ask for no key, as Open WebUI expects"},
    {"cors_origins", &S::cors_origins, "Keys and TLS", words("*, origins with commas between"),
     "web pages of other origins that may use the server; empty: none"},

    {"max_connections", &S::max_connections, "Limits", between(1, 1 << 20), "connections at a time"},
    {"max_body_mb", &S::max_body_mb, "Limits", between(1, 4096), "MiB of one request's body"},
    {"max_body_memory_mb", &S::max_body_memory_mb, "Limits", between(1, 1 << 20),
     "MiB of all bodies that are being received or handled; as much again for answers that are sent whole, "
     "and for the sound of batches"},
    {"max_concurrency", &S::max_concurrency, "Limits", between(0, 1 << 20),
     "requests at a time that speak or keep a model busy otherwise, waiting ones included; one more is "
     "answered 429; a batch is one; 0: max_queue and twice max_streams of each model"},
    {"max_concurrency_per_key", &S::max_concurrency_per_key, "Limits", between(0, 1 << 20),
     "of these, requests of one API key; also the items that one batch has in the engine at a time; 0: no "
     "limit of its own"},
    {"max_text_length", &S::max_text_length, "Limits", between(0, 256 << 10),
     "characters of a text, and of a live utterance in all; 0: the engine's limit of 256 KiB for a text, "
     "none for a live utterance"},
    {"max_reference_s", &S::max_reference_s, "Limits", between(1, 120), "seconds of one decoded clip"},
    {"max_references", &S::max_references, "Limits", between(1, 16), "clips of one request"},
    {"max_batch_items", &S::max_batch_items, "Limits", between(1, 1024),
     "texts of one request to /v1/tts/batch"},

    {"max_timeout_s", &S::max_timeout_s, "Time limits", between(1, kLongestPause),
     "longest deadline that a request may ask for"},
    {"header_timeout_s", &S::header_timeout_s, "Time limits", between(1, 3600), "for the head of a request"},
    {"body_timeout_s", &S::body_timeout_s, "Time limits", between(1, 3600), "without progress of a body"},
    {"min_body_rate", &S::min_body_rate, "Time limits", between(0, 1 << 20),
     "bytes a second that a body must average once body_timeout_s is over; 0: any"},
    {"idle_timeout_s", &S::idle_timeout_s, "Time limits", between(1, kLongestPause),
     "between the requests of a connection"},
    {"write_timeout_s", &S::write_timeout_s, "Time limits", between(1, kLongestPause),
     "without a byte taken by the client"},
    {"grace_s", &S::grace_s, "Time limits", between(0, kLongestPause),
     "that requests may take to end after SIGTERM"},

    {"metrics", &S::metrics, "Pages and logs", kEither, "GET /metrics for Prometheus"},
    {"web_page", &S::web_page, "Pages and logs", kEither, "the page to try it, at /"},
    {"log_format", &S::log_format, "Pages and logs", words("text, json"), "lines on standard error"},
    {"log_level", &S::log_level, "Pages and logs", words("debug, info, warning, error"),
     "least that is logged"},
    {"trace", &S::trace, "Pages and logs", words("a file"),
     "record the engine's steps for Perfetto or chrome://tracing; empty: none"},
};

constexpr Alias kAliases[] = {
    {Source::environment, "S1_MINI_DEVICE", "device"},
    {Source::environment, "S1_MINI_PRECISION", "precision"},
    {Source::environment, "S1_MINI_COMPILE", "cuda_graphs"},
    {Source::environment, "S1_MINI_ENABLE_BATCHING", "max_batch_size", true, "", "1"},
    {Source::environment, "S1_MINI_BATCH_SIZE", "max_batch_size"},
    {Source::environment, "S1_MINI_BATCH_TIMEOUT", "batch_timeout_ms"},
    {Source::environment, "S1_MINI_BATCH_TIMEOUT_MS", "batch_timeout_ms"},
    {Source::environment, "S1_MINI_BATCH_GROUPING", "batch_grouping"},
    {Source::environment, "S1_MINI_KV_CACHE_SIZE", "kv_cache_size"},
    {Source::environment, "S1_MINI_REFERENCE_CACHE_SIZE", "reference_cache_size"},
    {Source::environment, "S1_MINI_REQUEST_TIMEOUT_S", "request_timeout_s"},
    {Source::environment, "S1_MINI_VRAM_CLEAR_ON_OOM", "drop_cache_on_oom"},
    {Source::environment, "S1_MINI_METRICS_ENABLED", "metrics"},
    {Source::file, "enable_batching", "max_batch_size", true, "", "1"},
    {Source::file, "enable_kokoro_batching", "max_batch_size", true, "", "1"},
    {Source::flag, "half", "precision", true, "float16", ""},
    {Source::flag, "compile", "cuda_graphs"},
    {Source::flag, "runtime_int8", "weights", true, "int8", ""},
    {Source::file, "runtime_int8", "weights", true, "int8", ""},
    {Source::flag, "runtime_int4", "weights", true, "int4", ""},
    {Source::file, "runtime_int4", "weights", true, "int4", ""},
    {Source::flag, "quantize_int8", "codec_weights", true, "int8", ""},
    {Source::file, "quantize_int8", "codec_weights", true, "int8", ""},
    {.source = Source::flag, .name = "llama_checkpoint_path", .key = "model", .of_server = true},
};

constexpr std::string_view kOtherVariables[] = {"SHOAL_CONFIG", "SHOAL_MODEL_MOUNT", "SHOAL_VOICE_DIR",
                                                "SHOAL_CPU_ISA"};

}  // namespace

std::span<const Row> rows() { return kRows; }
std::span<const Alias> aliases() { return kAliases; }
std::span<const std::string_view> other_variables() { return kOtherVariables; }

}  // namespace shoal::settings
