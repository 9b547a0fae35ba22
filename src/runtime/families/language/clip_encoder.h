// The thread that decodes and encodes reference clips which no cache has.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/families/language/clip_work.h"
#include "runtime/families/language/speech_model.h"
#include "runtime/voices/code_store.h"

namespace shoal::runtime {

// Thread-safe. Clips that wait are encoded together, each once however many ask for it.
class ClipEncoder {
 public:
  // Clips encoded in one call; longer queues are split, so that the first clip does not wait for the last.
  static constexpr size_t kClipsAtATime = dac::Codec::kClipsAtATime;

  ClipEncoder(const SpeechModel& model, CodeStore& store, ClipWork& work);
  ~ClipEncoder();  // clips that wait get Error(unavailable)
  ClipEncoder(const ClipEncoder&) = delete;
  ClipEncoder& operator=(const ClipEncoder&) = delete;

  struct Result {
    std::shared_ptr<const ClipCodes> codes;
    std::exception_ptr error;  // if there are none: corrupt_file, too_large, invalid_argument, ...
  };
  struct Listener {
    std::function<void(const Result&)> done;  // must not throw
    // Whether nobody waits for the codes any more: then the clip need not be encoded nor `done` called.
    // Called under a lock: it must not call the encoder, block or throw.
    std::function<bool()> gone;
  };
  // Calls `done` once: at once when a cache has the codes of a clip with this hash, otherwise later from the
  // encoder's thread. audio: the bytes of the file. name: starts the messages. Throws Error(unsupported) when
  // the model was loaded without its encoder, and std::bad_alloc; then `done` is not called.
  void encode(const ClipHash& hash, std::string audio, std::string name, Listener listener);

 private:
  struct Clip {
    ClipHash hash;
    std::string audio, name;
    std::vector<Listener> listeners;
  };
  std::shared_ptr<const ClipCodes> find_or_queue(const ClipHash& hash, std::string& audio, std::string& name,
                                                 Listener& listener);
  void run();
  void forget_unwanted();
  void encode_in_work();
  std::vector<std::vector<int32_t>> codes_in_work(ops::Context& ctx, std::vector<std::vector<float>> decoded);
  std::vector<std::vector<float>> samples_in_work(ThreadTeam& team);
  std::vector<std::vector<int32_t>> encode_together(ops::Context& ctx,
                                                    const std::vector<std::vector<float>>& samples);
  std::vector<float> samples_of(const Clip& clip) const;

  const SpeechModel& model_;
  CodeStore& store_;
  ClipWork& work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Clip> waiting_;
  // Only the encoder's thread changes it, except for new listeners. Its memory and that of finished_ is
  // allocated at the start.
  std::vector<Clip> in_work_;
  std::vector<Clip> finished_;
  std::array<Result, kClipsAtATime> results_;
  bool exit_ = false;
  std::thread thread_;
};

}  // namespace shoal::runtime
