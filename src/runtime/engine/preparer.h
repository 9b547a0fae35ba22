// From a request to a job: voice found, clips encoded, text split and tokenised.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/engine/clip_encoder.h"
#include "runtime/engine/speech_job.h"
#include "runtime/voices/voice_folder.h"
#include "shoal/speech_request.h"

namespace shoal::runtime {

// Thread-safe.
class Preparer {
 public:
  Preparer(const SpeechModel& model, const VoiceFolder& voices, ClipEncoder& encoder);

  struct Listener {
    // Called once with the job. If it throws, the request has failed.
    std::function<void(std::shared_ptr<SpeechJob>)> ready;
    // Called once, if it fails after prepare() has returned or in its last moment. Must not throw.
    std::function<void(const std::exception_ptr&)> failed;
  };
  // Makes the job of a validated request: at once when all its clips are in a cache, otherwise later from the
  // encoder's thread. Throws Error: not_found (voice), invalid_argument, too_large, unsupported; then the
  // listener is not called.
  void prepare(const SpeechRequest& request, std::shared_ptr<SpeechState> state, uint64_t seed,
               Listener listener);

  // The clip's codes, waiting for the encoder. Throws Error as decoding and encoding do.
  std::shared_ptr<const ClipCodes> encode(const std::string& audio);

 private:
  struct Preparation;
  struct ClipSource {
    ClipHash hash;
    std::string audio, name, text;
  };
  std::vector<ClipSource> sources_of(const SpeechRequest& request);
  ClipSource source_of_file(const NamedClip& clip);
  void check_encoded(const SpeechRequest& request) const;
  std::shared_ptr<SpeechJob> make_job(Preparation& preparation) const;
  void one_less(Preparation& preparation) const;

  // Remembers the hash of a file for as long as its size and times stay the same.
  struct FileHash {
    int64_t size = 0, modified_ns = 0;
    uint64_t inode = 0;
    ClipHash hash;
  };

  const SpeechModel& model_;
  const VoiceFolder& voices_;
  ClipEncoder& encoder_;
  std::mutex mutex_;  // guards file_hashes_
  std::unordered_map<std::string, FileHash> file_hashes_;
};

}  // namespace shoal::runtime
