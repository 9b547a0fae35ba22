// Shoal for C, and for every language that can call it. The engine itself is described in engine.h,
// speech_request.h and speech.h, whose words are used here; docs/C.md is an introduction.
//
// Errors. A function that can fail returns a shoal_code: SHOAL_OK, a negative outcome that is no error
// (SHOAL_END, SHOAL_NOT_YET), or an error above zero. `error`, the last parameter, may be NULL; otherwise it
// receives the code and one sentence, also (empty) after success. Nothing is kept between calls, so threads
// never see each other's errors. No exception leaves the library. After an error outputs are NULL or
// unchanged.
//
// Handles. What *_new, *_open, submit and the like give is the caller's and ends with the *_free of its type,
// which accepts NULL. The free of a handle must be the last call with it. A handle keeps what it needs: a
// speech, a batch or voices may outlive the engine's handle. A NULL handle, or one of another type, is
// SHOAL_INVALID_ARGUMENT.
//
// Threads. Engines, speeches, batches, mailboxes and voices: every function from any thread, also at once.
// Configurations, requests, encoders, items and buffers: one thread at a time. Blocking functions say so.
//
// Callbacks run on threads of the engine. They must not block, must not throw, must not stop, reload or free
// an engine or end the process, and must not wait for another request. The end of the process (exit, the end
// of main) stops what runs.
//
// Structs begin with their size as the caller knows it (the *_INIT macros set it). Later versions append
// fields. The library reads a smaller struct as if the missing fields were zero, which always means the
// default; it refuses a larger one with SHOAL_UNSUPPORTED if what it does not know is not zero. It writes no
// more than fits, and zeros beyond what it knows.
//
// fork. The threads of an engine exist only in the process that started it. While one runs, the child of a
// fork gets SHOAL_UNAVAILABLE from every function that can fail, and free does nothing there (exec is fine).
// A process without running engines may fork, and its children may start their own.
//
// Texts are UTF-8 and end with a NUL. Samples are mono floats in [-1, 1]. Reports are JSON texts in buffers:
// later versions may add members.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SHOAL_API __attribute__((visibility("default")))
#else
#define SHOAL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Grows by one when functions or fields are added. Nothing is ever taken away under the same soname.
#define SHOAL_ABI_VERSION 1
SHOAL_API int32_t shoal_abi_version(void);  // of the library, at least that of this header
SHOAL_API const char* shoal_version(void);  // "0.1.0"; static

// ------------------------------------------------------------------------------------------------- errors
typedef int32_t shoal_code;
enum {
  SHOAL_NOT_YET = -2,  // nothing within the time given
  SHOAL_END = -1,      // nothing more will come
  SHOAL_OK = 0,
  SHOAL_INVALID_ARGUMENT = 1,    // the caller's value is wrong: field, expected, got
  SHOAL_NOT_FOUND = 2,           // a file, voice or tensor that was named does not exist
  SHOAL_ALREADY_EXISTS = 3,      // the name is taken
  SHOAL_UNSUPPORTED = 4,         // well-formed, but not something this build or model can do
  SHOAL_CORRUPT_FILE = 5,        // a file's bytes contradict its format or themselves
  SHOAL_TOO_LARGE = 6,           // over a stated limit
  SHOAL_CANCELLED = 7,           // the caller cancelled it
  SHOAL_DEADLINE_EXCEEDED = 8,   // the request's time was up
  SHOAL_RESOURCE_EXHAUSTED = 9,  // memory, disk or a queue is full
  SHOAL_IO = 10,                 // the operating system refused a read or a write
  SHOAL_UNAVAILABLE = 11,        // no such device, engine not running or stopped meanwhile, or after a fork
  SHOAL_INTERNAL = 12            // our fault
};

typedef struct shoal_error {
  size_t size;
  shoal_code code;
  int32_t reserved;
  char message[1008];  // one sentence, UTF-8, NUL-terminated; longer ones are cut
} shoal_error;
#define SHOAL_ERROR_INIT {sizeof(shoal_error), 0, 0, {0}}

// "ok", "invalid_argument", ...; "unknown" for other numbers. Static.
SHOAL_API const char* shoal_code_name(shoal_code code);
// 1 when the caller (the person, the file they gave) is at fault rather than the program or the machine.
SHOAL_API int32_t shoal_is_callers_fault(shoal_code code);

// ------------------------------------------------------------------------------------------------ buffers
// Bytes that the library made: samples (float), codes (int32_t), a sound file, or a JSON text, which a NUL
// follows that is not counted. Aligned for any of them; unchanged until freed.
typedef struct shoal_buffer shoal_buffer;
SHOAL_API const void* shoal_buffer_data(const shoal_buffer* buffer);  // NULL for NULL only
SHOAL_API size_t shoal_buffer_size(const shoal_buffer* buffer);       // in bytes
SHOAL_API void shoal_buffer_free(shoal_buffer* buffer);

// ---------------------------------------------------------------------------------------------------- log
enum { SHOAL_LOG_DEBUG = 0, SHOAL_LOG_INFO = 1, SHOAL_LOG_WARNING = 2, SHOAL_LOG_ERROR = 3 };

// Called from any thread, one call at a time, for the whole process. `message` is valid during the call. It
// must call nothing of the library.
typedef void (*shoal_log_function)(void* user, int32_t level, const char* message);
// NULL: messages are dropped, as at the start. Returns when the former function is not running any more.
SHOAL_API shoal_code shoal_set_log(shoal_log_function function, void* user, shoal_error* error);

// ---------------------------------------------------------------------------------------- configurations
// Everything that can be set about an engine: the settings of docs/SETTINGS.md under their names, with the
// same values and checks ("kv_memory_mb", "64"; "device", "cuda"; "prefix_cache", "false").
typedef struct shoal_config shoal_config;
// With the defaults: the built-in voice. Neither a file nor the environment is read.
SHOAL_API shoal_code shoal_config_new(shoal_config** config, shoal_error* error);
SHOAL_API void shoal_config_free(shoal_config* config);
// `value` as in a settings file, without quotes. NULL: the default again. The value alone is checked here,
// its agreement with others when an engine is made. SHOAL_INVALID_ARGUMENT: no such setting, type, range.
SHOAL_API shoal_code shoal_config_set(shoal_config* config, const char* name, const char* value,
                                      shoal_error* error);
// The value as text.
SHOAL_API shoal_code shoal_config_get(const shoal_config* config, const char* name, shoal_buffer** value,
                                      shoal_error* error);
// Replaces all values by those that `shoal say` would have: of a TOML file (NULL: none), and, if
// `environment` is not 0, of the variables SHOAL_* (SHOAL_CONFIG names the file then). Settings of the server
// are checked and otherwise ignored. Values set afterwards win.
SHOAL_API shoal_code shoal_config_load(shoal_config* config, const char* toml_path, int32_t environment,
                                       shoal_error* error);
// All settings, in order: [{"name", "type": "text" | "integer" | "number" | "true or false", "default": text,
// "range", "group", "help"}].
SHOAL_API shoal_code shoal_config_fields(shoal_buffer** json, shoal_error* error);

// --------------------------------------------------------------------------------------- models, unloaded
// `model` as the setting: a folder, or NULL or "" for the built-in voice.
// What a folder contains, with or without its list of tensors: {"dir", "family", "precision", ...}, and
// "problem", a sentence, if it cannot be used. precision: NULL or "" for automatic.
SHOAL_API shoal_code shoal_inspect_model(const char* model, const char* precision, int32_t with_tensors,
                                         shoal_buffer** json, shoal_error* error);
// What an engine would need of its device: {"device", the formats of shoal_engine_health, "bytes": {part:
// bytes}, "total_bytes", "available_bytes", "fits", ...}. Nothing is allocated.
SHOAL_API shoal_code shoal_estimate_memory(const shoal_config* config, shoal_buffer** json,
                                           shoal_error* error);
// "cpu" or "cuda:N": what the setting `device` means on this machine.
SHOAL_API shoal_code shoal_resolve_device(const char* device, shoal_buffer** text, shoal_error* error);

// ------------------------------------------------------------------------------------------------ requests
// What to say, and how: the fields of SpeechRequest (speech_request.h).
typedef struct shoal_request shoal_request;
SHOAL_API shoal_code shoal_request_new(shoal_request** request, shoal_error* error);
SHOAL_API void shoal_request_free(shoal_request* request);
// A field by its name. Numbers in decimal ("0.7"), truth as "true" or "false"; NULL: the default again.
//   text, voice, language, phonemes, client   texts; voices   a text, too: "0=clara,1=hugo"
//   seed, top_k, max_new_tokens, chunk_length, timeout_ms   integers
//   temperature, top_p, repetition_penalty, speed, volume   numbers
//   normalise, special_tokens, strict, strict_phonemes, trim_joins   true or false
//   penalise_window_semantics, check_first_frame_end, keep_last_frame_without_end   true or false (quirks)
//   delivery   streaming, whole (streaming pieces are small and come early)
// A reference to another field, or a range that depends on the model, is checked when the request is
// submitted. SHOAL_INVALID_ARGUMENT: no such field, not a value of its type.
SHOAL_API shoal_code shoal_request_set(shoal_request* request, const char* name, const char* value,
                                       shoal_error* error);
// A recording of a voice to follow: bytes of a wav, flac, ogg, mp3 or aiff file, and the words spoken in it.
SHOAL_API shoal_code shoal_request_add_reference(shoal_request* request, const void* audio, size_t size,
                                                 const char* text, shoal_error* error);
// The same as codes [frames, codebooks] of shoal_engine_encode: costs no encoding. Placed after the clips.
SHOAL_API shoal_code shoal_request_add_codes(shoal_request* request, const int32_t* codes, size_t count,
                                             const char* text, shoal_error* error);
// Every field, in order: [{"name", "type": "text" | "integer" | "number" | "true or false", "default": text
// or null, "help"}]. null: the model's own.
SHOAL_API shoal_code shoal_request_fields(shoal_buffer** json, shoal_error* error);
// All that can be checked without loading `model`. json (or NULL): warnings, one per field without effect.
SHOAL_API shoal_code shoal_request_check(const shoal_request* request, const char* model, shoal_buffer** json,
                                         shoal_error* error);

// ------------------------------------------------------------------------------------------------- engines
// One model that serves many requests at once. The samples of a request depend only on the model, its
// precision, the kind of device and the request with its seed, and are those of `shoal say`.
typedef struct shoal_engine shoal_engine;
typedef struct shoal_speech shoal_speech;
typedef struct shoal_batch shoal_batch;
typedef struct shoal_voices shoal_voices;
typedef struct shoal_mailbox shoal_mailbox;

// Checks the configuration (NULL: the defaults), which may then be freed; loads nothing.
SHOAL_API shoal_code shoal_engine_new(const shoal_config* config, shoal_engine** engine, shoal_error* error);
// Loads the model and warms up. Blocks until the engine is ready.
SHOAL_API shoal_code shoal_engine_start(shoal_engine* engine, shoal_error* error);
// Refuses new requests, gives those that run `grace_ms` to end (negative: as long as they take), cancels the
// rest. Blocks until all have ended; another thread's stop with 0 ends the grace. The engine may start again.
SHOAL_API shoal_code shoal_engine_stop(shoal_engine* engine, int64_t grace_ms, shoal_error* error);
// Loads the model again, or another one (config not NULL), beside the old one, and hands over; requests in
// flight end on the old one. Blocks until the hand-over. After an error the old one serves on.
SHOAL_API shoal_code shoal_engine_reload(shoal_engine* engine, const shoal_config* config,
                                         shoal_error* error);
// Cancels everything and frees. Blocks until all have ended: about one step of the model.
SHOAL_API void shoal_engine_free(shoal_engine* engine);
// The same without blocking: a thread of the library does it, which the end of the process waits for.
SHOAL_API void shoal_engine_free_later(shoal_engine* engine);

// Every function below gives SHOAL_UNAVAILABLE while the engine does not run, except health and voices.
SHOAL_API shoal_code shoal_engine_sample_rate(const shoal_engine* engine, int32_t* hz, shoal_error* error);
// What the model understands: {"family", "phonemes", "own_voices", "references", "speakers", "tags",
// "sample_rate_hz", "codec": {"codebooks", "semantic_entries", "residual_entries", "samples_per_frame"} or
// null}.
SHOAL_API shoal_code shoal_engine_traits(const shoal_engine* engine, shoal_buffer** json, shoal_error* error);
// {"state": "stopped", "starting", "ready", "reloading" or "stopping", "model", "precision", "weights" (of
// the layers: "int8", ..., or the precision), "kv_precision" and "codec_weights" (likewise; null: it has
// none), "device", "uptime_s", "gpu_available", "memory": {part: bytes}, "device_memory": {"used_bytes",
// "total_bytes"} or null on a CPU, "resident_bytes"}. From "model" to "device" all are null while it does not
// run.
SHOAL_API shoal_code shoal_engine_health(const shoal_engine* engine, shoal_buffer** json, shoal_error* error);
// What GET /v1/stats counts: "queue", "requests", "frames", "first_audio_s", "kv", ...; null: not measured.
SHOAL_API shoal_code shoal_engine_statistics(const shoal_engine* engine, shoal_buffer** json,
                                             shoal_error* error);
// Whether the device computes correctly: {"device", "gpu_available", "gpu_memory_bytes", "error": null or a
// sentence}. Milliseconds.
SHOAL_API shoal_code shoal_engine_self_test(const shoal_engine* engine, shoal_buffer** json,
                                            shoal_error* error);

// A clip (bytes of a sound file) to codes, int32 [frames, codebooks], and back to samples. Both block.
SHOAL_API shoal_code shoal_engine_encode(shoal_engine* engine, const void* audio, size_t size,
                                         shoal_buffer** codes, int32_t* codebooks, shoal_error* error);
SHOAL_API shoal_code shoal_engine_decode(shoal_engine* engine, const int32_t* codes, size_t count,
                                         shoal_buffer** samples, shoal_error* error);
// How a text would be read (models of phonemes): {"chunks": [{"phonemes", "ids", "pause_after_s"}],
// "warnings": []}. language: NULL or "" for the engine's. Blocks, milliseconds for a sentence.
SHOAL_API shoal_code shoal_engine_phonemize(const shoal_engine* engine, const char* text,
                                            const char* language, int32_t normalise, shoal_buffer** json,
                                            shoal_error* error);
// The styles of a voice or mix of a model with voices of its own: float [510, 256] for Kokoro.
SHOAL_API shoal_code shoal_engine_voice_styles(const shoal_engine* engine, const char* voice,
                                               shoal_buffer** styles, shoal_error* error);

// ------------------------------------------------------------------------------------------------ speeches
// The cost and outcome of a request; complete once the speech has ended.
typedef struct shoal_summary {
  size_t size;
  uint64_t seed;  // that was used
  int64_t samples;
  int64_t frames;            // spoken
  int64_t utterances;        // pieces of text spoken
  int64_t prompt_columns;    // of all utterances
  int64_t cached_columns;    // of these, found in the prefix cache
  int64_t computed_columns;  // prefilled, also again after a preemption
  int64_t preemptions;
  int64_t cut_at_frames;  // length of the last utterance that ran out of frames before its end; 0: none
  int64_t underruns;      // pieces that came after a real-time listener had run dry
  // Seconds since submit.
  double prepared_s;     // references encoded, prompt made
  double admitted_s;     // prepared_s to here: waited in the queue
  double first_audio_s;  // the first samples could be read
  double total_s;
  double audio_s;  // seconds of sound
  int32_t sample_rate_hz;
  int32_t reserved;
} shoal_summary;
#define SHOAL_SUMMARY_INIT {sizeof(shoal_summary), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

typedef struct shoal_progress {
  size_t size;
  double fraction;  // 0 to 1, estimated from the text spoken so far
  int64_t frames;   // generated
  double audio_s;   // decoded
} shoal_progress;
#define SHOAL_PROGRESS_INIT {sizeof(shoal_progress), 0, 0, 0}

// Receives the sound by calls, one call at a time for one speech. Either may be NULL.
typedef struct shoal_callbacks {
  size_t size;
  void* user;
  void (*on_audio)(void* user, const float* samples, size_t count);
  // The last call. error: NULL after success. Both are valid during the call.
  void (*on_end)(void* user, const shoal_summary* summary, const shoal_error* error);
} shoal_callbacks;
#define SHOAL_CALLBACKS_INIT {sizeof(shoal_callbacks), NULL, NULL, NULL}

// Queues a request, which may then be changed or freed, and returns at once. Errors: those of
// Engine::submit (engine.h); what fails later ends the speech. callbacks: NULL to read the sound. With
// callbacks the speech cannot be read or watched; keep it until on_end.
SHOAL_API shoal_code shoal_engine_submit(shoal_engine* engine, const shoal_request* request,
                                         const shoal_callbacks* callbacks, shoal_speech** speech,
                                         shoal_error* error);
// Cancels unless it has ended, waits for a running callback, and frees.
SHOAL_API void shoal_speech_free(shoal_speech* speech);
// Takes all samples that are there, waiting for some at most `timeout_ms` (negative: without limit; 0: not
// at all). SHOAL_OK: at least one. SHOAL_NOT_YET: none came in time. SHOAL_END: all were taken. An error: it
// ended with that one, after the samples that came before.
SHOAL_API shoal_code shoal_speech_next(shoal_speech* speech, int64_t timeout_ms, shoal_buffer** samples,
                                       shoal_error* error);
// Waits to the end and takes everything that was not read.
SHOAL_API shoal_code shoal_speech_read_all(shoal_speech* speech, shoal_buffer** samples, shoal_error* error);
// Ends it with SHOAL_CANCELLED unless it has ended. Never blocks.
SHOAL_API shoal_code shoal_speech_cancel(shoal_speech* speech, shoal_error* error);
// How it ended: SHOAL_OK, or the error. SHOAL_NOT_YET while it runs.
SHOAL_API shoal_code shoal_speech_status(const shoal_speech* speech, shoal_error* error);
SHOAL_API shoal_code shoal_speech_sample_rate(const shoal_speech* speech, int32_t* hz, shoal_error* error);
SHOAL_API shoal_code shoal_speech_summary(const shoal_speech* speech, shoal_summary* summary,
                                          shoal_error* error);
SHOAL_API shoal_code shoal_speech_progress(const shoal_speech* speech, shoal_progress* progress,
                                           shoal_error* error);
// An array of texts: what the caller should know about an accepted request.
SHOAL_API shoal_code shoal_speech_warnings(const shoal_speech* speech, shoal_buffer** json,
                                           shoal_error* error);
// The codes of everything spoken, int32 [frames, codebooks]; complete once it has ended.
SHOAL_API shoal_code shoal_speech_codes(const shoal_speech* speech, shoal_buffer** codes, shoal_error* error);
// Words from number `first` on, of models that know: [{"word", "start_s", "end_s"}]; each as its sound ends.
SHOAL_API shoal_code shoal_speech_words(const shoal_speech* speech, size_t first, shoal_buffer** json,
                                        shoal_error* error);

// ----------------------------------------------------------------------------------------------- mailboxes
// Tells an event loop, or a thread, which of many speeches and batches have something to take: a file
// descriptor that is readable while there is, and the tokens that the caller gave them. No thread of the
// engine runs the caller's code.
SHOAL_API shoal_code shoal_mailbox_new(shoal_mailbox** mailbox, shoal_error* error);
SHOAL_API void shoal_mailbox_free(shoal_mailbox* mailbox);
// For poll, epoll or select; only to wait for. -1 for a NULL handle. It is closed by shoal_mailbox_free.
SHOAL_API int32_t shoal_mailbox_fd(const shoal_mailbox* mailbox);
// Takes at most `capacity` tokens, each once however often its speech called; waits for one at most
// `timeout_ms` (as shoal_speech_next). SHOAL_NOT_YET: none. That of a freed speech may still come, and that
// of one whose end was read already: reading it says SHOAL_END again.
SHOAL_API shoal_code shoal_mailbox_take(shoal_mailbox* mailbox, int64_t timeout_ms, uint64_t* tokens,
                                        size_t capacity, size_t* count, shoal_error* error);
// Posts `token` when samples have arrived and at the end, and at once if there is something already: read
// with timeout 0 until SHOAL_NOT_YET, SHOAL_END or an error. NULL: stops that.
SHOAL_API shoal_code shoal_speech_watch(shoal_speech* speech, shoal_mailbox* mailbox, uint64_t token,
                                        shoal_error* error);

// ------------------------------------------------------------------------------------------------- batches
typedef struct shoal_batch_options {
  size_t size;
  uint64_t seed;           // with has_seed: item i without a seed of its own gets one derived from (seed, i)
  int32_t has_seed;        // 0 or 1
  int32_t max_in_flight;   // items in the engine at once; 0: as many as fit
  double max_item_s;       // an item whose sound grows longer ends with SHOAL_TOO_LARGE; 0: no limit
  shoal_mailbox* mailbox;  // told of every item that ends and of the end; NULL: none
  uint64_t token;
} shoal_batch_options;
#define SHOAL_BATCH_OPTIONS_INIT {sizeof(shoal_batch_options), 0, 0, 0, 0, NULL, 0}

// An item of a batch that has ended.
typedef struct shoal_item shoal_item;

// Speaks all items through the engine's queue, leaving most of it to others; returns at once. The requests
// may then be freed. One bad item never fails another: its error is its own. options: NULL for the defaults.
SHOAL_API shoal_code shoal_engine_batch(shoal_engine* engine, const shoal_request* const* requests,
                                        size_t count, const shoal_batch_options* options, shoal_batch** batch,
                                        shoal_error* error);
// Cancels what has not ended, and frees, without blocking.
SHOAL_API void shoal_batch_free(shoal_batch* batch);
// Every item that has not ended ends with SHOAL_CANCELLED, within a step of the engine. Never blocks.
SHOAL_API shoal_code shoal_batch_cancel(shoal_batch* batch, shoal_error* error);
// The next item that has ended, in order of completion; each is given once. Waits at most `timeout_ms` (as
// shoal_speech_next). SHOAL_END: all were given.
SHOAL_API shoal_code shoal_batch_next(shoal_batch* batch, int64_t timeout_ms, shoal_item** item,
                                      shoal_error* error);
SHOAL_API void shoal_item_free(shoal_item* item);
SHOAL_API size_t shoal_item_index(const shoal_item* item);  // of its request
// Its error, or SHOAL_OK.
SHOAL_API shoal_code shoal_item_status(const shoal_item* item, shoal_error* error);
// The samples, given once; empty after an error.
SHOAL_API shoal_code shoal_item_samples(shoal_item* item, shoal_buffer** samples, shoal_error* error);
SHOAL_API shoal_code shoal_item_summary(const shoal_item* item, shoal_summary* summary, shoal_error* error);
SHOAL_API shoal_code shoal_item_warnings(const shoal_item* item, shoal_buffer** json, shoal_error* error);

// -------------------------------------------------------------------------------------------------- voices
// The named voices of an engine: a folder of clips, or those that the model has itself (voices.h).
SHOAL_API shoal_code shoal_engine_voices(shoal_engine* engine, shoal_voices** voices, shoal_error* error);
// The same folder of clips without an engine.
SHOAL_API shoal_code shoal_voices_open(const shoal_config* config, shoal_voices** voices, shoal_error* error);
SHOAL_API void shoal_voices_free(shoal_voices* voices);
// Sorted by name: [{"name", "clips", "transcripts": [], "language", "fixed"}]. fixed: it came with the model
// and cannot be changed.
SHOAL_API shoal_code shoal_voices_list(const shoal_voices* voices, shoal_buffer** json, shoal_error* error);
SHOAL_API shoal_code shoal_voices_get(const shoal_voices* voices, const char* name, shoal_buffer** json,
                                      shoal_error* error);
// Stores the bytes of a sound file with the words spoken in it, after decoding it once.
SHOAL_API shoal_code shoal_voices_add(shoal_voices* voices, const char* name, const void* audio, size_t size,
                                      const char* text, shoal_error* error);
SHOAL_API shoal_code shoal_voices_rename(shoal_voices* voices, const char* name, const char* new_name,
                                         shoal_error* error);
SHOAL_API shoal_code shoal_voices_remove(shoal_voices* voices, const char* name, shoal_error* error);

// --------------------------------------------------------------------------------------------- sound files
// Samples as 16-bit integers, rounded as in every file that `shoal say` writes. `pcm`: [count].
SHOAL_API shoal_code shoal_to_pcm16(const float* samples, size_t count, int16_t* pcm, shoal_error* error);
// A whole file, byte for byte that of `shoal say`. format: wav, pcm (16-bit little-endian), flac, opus, mp3,
// aac, or of 8000 Hz ulaw, alaw (G.711). bitrate_bps: 0 for the format's default.
SHOAL_API shoal_code shoal_encode_sound(const char* format, int32_t sample_rate_hz, int32_t bitrate_bps,
                                        const float* samples, size_t count, shoal_buffer** bytes,
                                        shoal_error* error);
// A stream of the same formats, whose header cannot know the length.
typedef struct shoal_encoder shoal_encoder;
SHOAL_API shoal_code shoal_encoder_new(const char* format, int32_t sample_rate_hz, int32_t bitrate_bps,
                                       shoal_encoder** encoder, shoal_error* error);
SHOAL_API void shoal_encoder_free(shoal_encoder* encoder);
// Gives the bytes that the format can complete so far, possibly none.
SHOAL_API shoal_code shoal_encoder_write(shoal_encoder* encoder, const float* samples, size_t count,
                                         shoal_buffer** bytes, shoal_error* error);
// The last bytes. Once; nothing can be written afterwards.
SHOAL_API shoal_code shoal_encoder_finish(shoal_encoder* encoder, shoal_buffer** bytes, shoal_error* error);
// A clip of any format that references may have, as samples at its own rate, channels averaged.
SHOAL_API shoal_code shoal_decode_sound(const void* audio, size_t size, shoal_buffer** samples,
                                        int32_t* sample_rate_hz, shoal_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
