// The engine: one model that serves many requests at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "shoal/engine_config.h"
#include "shoal/speech.h"
#include "shoal/speech_request.h"
#include "shoal/statistics.h"
#include "shoal/voices.h"

namespace shoal {

// One item of a batch: samples, or the error that it ended with.
struct BatchResult {
  std::vector<float> samples;
  std::optional<Error> error;
  SpeechSummary summary;
};

struct BatchOptions {
  // Item i without a seed of its own gets one derived from (seed, i).
  std::optional<uint64_t> seed;
  // Called when an item ends, in order of completion, one call at a time. If it throws, the remaining items
  // are cancelled and the batch throws the same exception. It may move the samples out of the result; the
  // returned result then has none.
  std::function<void(size_t index, BatchResult& result)> on_item;
  // An item whose sound grows longer ends with Error(too_large); 0: no limit.
  double max_item_s = 0;
  // Items in the engine at once, including those in its queue; 0: as many as fit.
  int max_in_flight = 0;
  // Called on the thread of on_item with the number of samples received for an item, before they are stored.
  // An exception ends only that item.
  std::function<void(size_t index, size_t samples)> on_samples;
  // Called on the thread of on_item before an item is submitted. While it returns true no item is submitted;
  // those already submitted continue.
  std::function<bool()> hold_back;
  // Once it is stopped, every item that has not ended ends with Error(cancelled), within one step of the
  // engine.
  std::stop_token cancel;
};

// Codes of a clip, and back.
struct EncodedClip {
  std::vector<int32_t> codes;  // [frames, codebooks]
  int64_t frames = 0;
  int codebooks = 0;
};

// Whether the device computes correctly.
struct SelfTest {
  std::string device;            // that the engine runs on
  bool gpu_available = false;    // this build and machine have one, whether it is used or not
  int64_t gpu_memory_bytes = 0;  // the engine's own on the GPU, as planned; 0 on a CPU
  std::string error;             // what went wrong; empty: nothing
};

// The shape of a codec's codes.
struct CodecShape {
  int codebooks = 0;         // codes of a frame
  int semantic_entries = 0;  // of the first codebook: its codes are 0 to this, exclusive
  int residual_entries = 0;  // of every other
  int samples_per_frame = 0;
};

// Which parts of a request the serving model understands.
struct ModelTraits {
  std::string family;       // "s1", "s2", "kokoro"
  bool phonemes = false;    // phonemize(), SpeechRequest's phonemes and language, Speech::words()
  bool own_voices = false;  // voices are files of the model's folder, and may be mixed
  bool references = true;   // follows clips: references, encode(), decode(), voices that can be added
  bool speakers =
      false;  // several in one text: "<|speaker:0|>Hello. <|speaker:1|>Hi.", SpeechRequest::voices
  // How a text says in what manner to speak: "brackets" (free words, "[whispers]"), "parentheses" (known
  // words,
  // "(excited)"), "" (it cannot).
  std::string tags;
};

// How a text would be spoken.
struct PhonemeChunk {
  std::string phonemes;      // what the model reads in one pass; empty: only a pause
  std::vector<int32_t> ids;  // of the model's vocabulary, without its pads
  double pause_after_s = 0;  // that the text asks for
};

struct Phonemized {
  std::vector<PhonemeChunk> chunks;
  std::vector<std::string> warnings;  // phonemes that the model lacks, which are dropped
};

// Thread-safe. The codes and samples of a request depend only on the model, its precision, the kind of device
// and the request (including its seed): not on load, order or other requests.
class Engine {
 public:
  // Checks the configuration; loads nothing. Throws the Errors of EngineConfig::validate.
  explicit Engine(EngineConfig config);
  ~Engine();  // stop() without grace
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Loads the model, makes the memory plan, warms up; returns when the engine is ready. Throws Error:
  // whatever loading throws, resource_exhausted with figures when the memory plan does not fit.
  void start();
  // Refuses new requests, gives running ones `grace` to end, cancels the rest, and returns when all have
  // ended.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds{0});
  // Loads the model again (or, with a configuration, another one) beside the old, warms it up and hands over:
  // requests in flight end on the old, new ones go to the new. Returns after the hand-over. If it throws, the
  // old serves on. Both models are in memory meanwhile. references_dir cannot change.
  void reload();
  void reload(EngineConfig config);

  // Takes the model from memory, unless it serves a request, is held, or was last used less than `unused_for`
  // ago. Returns whether it did, once the memory is free. Calls that need the model then throw
  // Error(unavailable); start() loads it again.
  bool unload(std::chrono::milliseconds unused_for);
  // Whether a call has needed the model since unload(), or start() is loading it again.
  bool is_wanted() const;
  // unload() does nothing as long as the result lives, which may outlive the engine. Throws
  // Error(unavailable) while the engine does not run.
  std::shared_ptr<void> hold();

  // Queues a request and returns at once. Throws Error before anything is queued: invalid_argument, too_large
  // (the text; a prompt that can never fit the KV memory, with figures), not_found (voice),
  // resource_exhausted (queue full), unavailable (not ready, or stopping). What fails later (a damaged clip)
  // is thrown by the Speech.
  Speech submit(SpeechRequest request);
  // The same, but the callbacks receive the sound. The returned handle can only cancel and report; keep it
  // until on_end.
  Speech submit(SpeechRequest request, SpeechCallbacks callbacks);

  // All items through the same queue; results in the order of the requests. One bad item never fails another.
  // Waits for room in the queue instead of failing items, and leaves most of the queue to others. Items
  // without a timeout have no deadline.
  std::vector<BatchResult> generate_batch(std::vector<SpeechRequest> requests, BatchOptions options = {});
  // The same without waiting; on_item is called on a thread of the batch. The future throws only for our own
  // faults and exceptions of on_item. It may outlive the engine. Its destructor waits for the batch: keep it.
  std::future<std::vector<BatchResult>> generate_batch_async(std::vector<SpeechRequest> requests,
                                                             BatchOptions options = {});

  // Wave -> codes -> wave, through the caches of the engine (encode) and past the queue. Calls of decode take
  // turns. Throws Error as clips and codecs do, unavailable.
  EncodedClip encode(const std::string& audio);
  std::vector<float> decode(const std::vector<int32_t>& codes);
  CodecShape codec_shape() const;  // throws Error(unavailable) while it does not run

  // Throws Error(unavailable) while it does not run, as all that follow.
  ModelTraits traits() const;
  // A text as a request with it would be read: `language` as SpeechRequest::language. Waits for the
  // phonemizer, milliseconds for a sentence. Throws Error: unsupported (the model speaks no phonemes; a
  // language without a front end), invalid_argument (UTF-8, markup, language), unavailable (no phonemizer),
  // resource_exhausted (all of them busy).
  Phonemized phonemize(const std::string& text, const std::string& language = {},
                       bool normalise = true) const;
  // The styles of a voice or mix in the model's layout, [510, 256] for Kokoro: the content of NAME.bin.
  // Throws Error: unsupported (the model has no voices of its own), invalid_argument, not_found.
  std::vector<float> voice_styles(const std::string& voice) const;

  Voices& voices();
  Health health() const;
  // Runs a small product on the device while other work continues, and compares it with the CPU's:
  // milliseconds. Throws Error(unavailable) while the engine does not run.
  SelfTest self_test() const;
  Statistics statistics() const;  // throws Error(unavailable) while it does not run
  EngineConfig config() const;
  int sample_rate_hz() const;  // the same

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // asynchronous batches hold it too
};

}  // namespace shoal
